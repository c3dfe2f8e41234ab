"""Products of a few sparse rows with a matrix, as it is stored.

A batch of rows of a wide sparse matrix meets few of its columns. SciPy would copy the whole weight to turn it and make a whole
matrix of the product; these loops read and write only what the batch meets. Where the weight lies by columns of the
result, one of these at a time, so that the part of the weight that is read stays in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def rows_at(indptr: Any, indices: Any, data: Any, chosen: Any) -> tuple[Any, Any, Any]:
    """These rows of a matrix in CSR, in CSR."""
    starts = np.zeros(len(chosen) + 1, dtype=indptr.dtype)
    for row in range(len(chosen)):
        if not 0 <= chosen[row] < len(indptr) - 1:
            raise IndexError("there is no such row")
        starts[row + 1] = starts[row] + indptr[chosen[row] + 1] - indptr[chosen[row]]
    columns, values = np.empty(starts[-1], dtype=indices.dtype), np.empty(starts[-1], dtype=data.dtype)
    for row in range(len(chosen)):
        here, there = indptr[chosen[row]], slice(starts[row], starts[row + 1])
        columns[there] = indices[here : indptr[chosen[row] + 1]]
        values[there] = data[here : indptr[chosen[row] + 1]]
    return starts, columns, values


@njit(cache=True)
def times(indptr: Any, indices: Any, data: Any, weight: Any, out: Any) -> None:
    """``out = X @ weight`` for X in CSR and ``weight`` of shape (d, k); terms of a row are added in their order."""
    out[:] = 0.0
    for row in range(len(out)):
        part = out[row]
        for at in range(indptr[row], indptr[row + 1]):
            factor, near = data[at], weight[indices[at]]
            for column in range(len(part)):
                part[column] += factor * near[column]


@njit(cache=True)
def times_turned(indptr: Any, indices: Any, data: Any, weight: Any, out: Any) -> None:
    """``out = X @ weight.T`` for X in CSR and ``weight`` of shape (k, d); terms of a row are added in their order."""
    near = np.empty(weight.shape[1])
    for column in range(len(weight)):
        near[:] = weight[column]  # in order: to fetch entries as they come would wait for each of them
        for row in range(len(out)):
            total = 0.0
            for at in range(indptr[row], indptr[row + 1]):
                total += data[at] * near[indices[at]]
            out[row, column] = total


@njit(cache=True)
def turned_product(indptr: Any, indices: Any, data: Any, gradient: Any, out: Any) -> None:
    """``out = gradient.T @ X`` for X in CSR, ``gradient`` of shape (n, k) and ``out`` of shape (k, d)."""
    for column in range(len(out)):
        part = out[column]
        part[:] = 0.0
        for row in range(len(gradient)):
            factor = gradient[row, column]
            for at in range(indptr[row], indptr[row + 1]):
                part[indices[at]] += data[at] * factor


@njit(cache=True)
def product_by_columns(indptr: Any, indices: Any, data: Any, gradient: Any, out: Any) -> None:
    """``out = X.T @ gradient`` for X in CSR, ``gradient`` of shape (n, k) and ``out`` of shape (d, k)."""
    out[:] = 0.0
    for row in range(len(gradient)):
        part = gradient[row]
        for at in range(indptr[row], indptr[row + 1]):
            factor, target = data[at], out[indices[at]]
            for column in range(len(part)):
                target[column] += factor * part[column]


@njit(cache=True)
def sums_of_squares(indptr: Any, data: Any, out: Any) -> None:
    """The squared norm of every row of a CSR matrix."""
    for row in range(len(out)):
        total = 0.0
        for at in range(indptr[row], indptr[row + 1]):
            total += data[at] * data[at]
        out[row] = total
