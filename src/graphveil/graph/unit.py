"""Unit rows in float64, safe for tiny, huge and empty rows.

Dividing by the largest entry first keeps squares away from overflow and underflow (a float32 row of subnormal squares
would otherwise come out with norm 26 instead of 1); zero rows stay zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from graphveil.graph.lists import on_grid
from graphveil.graph.rows import DenseRows, Rows, SparseRows, tensor

_LARGEST_INVERTIBLE = 2.0**-1000  # below this, 1/x overflows; such rows are treated as zero


def unit_rows(rows: Rows) -> DenseRows | SparseRows:
    """Every row divided by its Euclidean norm; the result has norm at most 1 in float64."""
    return _mapped(rows, unit_array, _unit_sparse)


def truncated(rows: Rows) -> DenseRows | SparseRows:
    """Every entry truncated towards zero to the grid 2^-24: rows never grow longer, and sums of up to 2^29 are exact."""
    return _mapped(rows, on_grid, lambda x: sp.csr_matrix((on_grid(x.data), x.indices, x.indptr), x.shape))


def _mapped(
    rows: Rows, dense: Callable[[np.ndarray], np.ndarray], sparse: Callable[..., sp.csr_matrix]
) -> DenseRows | SparseRows:
    if isinstance(rows, SparseRows):
        return SparseRows(sparse(rows.values))
    if isinstance(rows, DenseRows):
        return DenseRows(tensor(dense(rows.values.numpy(force=True))))
    raise TypeError(f"{type(rows).__name__} cannot be changed row by row")


def unit_array(values: np.ndarray) -> np.ndarray:
    """:func:`unit_rows` for a dense array."""
    values = np.asarray(values, dtype=np.float64)
    if values.shape[1] == 0:
        return values
    largest = np.abs(values).max(axis=1, keepdims=True)
    usable = largest > _LARGEST_INVERTIBLE
    scaled = np.where(usable, values / np.where(usable, largest, 1.0), 0.0)
    norms: np.ndarray = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.maximum(norms, 1.0) * (1 - 2.0**-52))


def _unit_sparse(values: sp.csr_matrix) -> sp.csr_matrix:
    unit = sp.csr_matrix(values, dtype=np.float64, copy=True)
    row = np.repeat(np.arange(unit.shape[0]), np.diff(unit.indptr))
    largest = np.zeros(unit.shape[0])
    np.maximum.at(largest, row, np.abs(unit.data))
    usable = largest > _LARGEST_INVERTIBLE
    unit.data = np.where(usable[row], unit.data / np.where(usable, largest, 1.0)[row], 0.0)
    norms = np.sqrt(np.bincount(row, weights=unit.data**2, minlength=unit.shape[0]))
    unit.data *= (1 - 2.0**-52) / np.maximum(norms, 1.0)[row]
    return unit
