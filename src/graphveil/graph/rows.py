"""Feature rows, dense or sparse, behind the three products that training needs.

A model's first layer only ever multiplies the feature matrix from the right (forward), from the left (gradient)
and asks for row norms (clipping). Keeping those three behind one interface lets sparse features stay sparse.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 8192
"""Rows whose terms are added up before they join the sum: rounding grows with the longest chain of additions."""


def blocks(rows: int) -> list[slice]:
    """The rows in blocks."""
    return [slice(start, start + BLOCK) for start in range(0, rows, BLOCK)] or [slice(0, 0)]


def tensor(values: np.ndarray) -> Tensor:
    """A tensor that shares the memory of ``values``; torch is imported here, with the first product, and not before."""
    import torch

    return torch.from_numpy(values)


@runtime_checkable
class Rows(Protocol):
    """An ``n x d`` matrix of float64 rows, one per node."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def matmul(self, weight: Tensor) -> Tensor:
        """``X @ weight`` for ``weight`` of shape ``(d, k)``."""

    def transpose_matmul(self, gradient: Tensor) -> Tensor:
        """``X.T @ gradient`` for ``gradient`` of shape ``(n, k)``, added up in blocks."""

    def squared_norms(self) -> Tensor:
        """Squared Euclidean norm of every row."""

    def occupied(self) -> Tensor:
        """Which rows have an entry other than zero (read from the entries: squares of tiny ones vanish)."""

    def take(self, index: np.ndarray) -> Rows:
        """The rows with these numbers (or under this boolean mask)."""


class RecordRows(Rows, Protocol):
    """The features of records, which can be read block by block."""

    def block(self, slots: slice) -> DenseRows | SparseRows:
        """The rows of these slots, without a copy where they are in memory."""

    def take(self, index: np.ndarray) -> RecordRows: ...


class DenseRows:
    """Rows stored as a dense tensor."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def __reduce__(self) -> tuple[Any, ...]:  # as an array, whose memory several processes can share
        return _restored, (type(self), self.values.numpy())

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    def matmul(self, weight: Tensor) -> Tensor:
        return self.values @ weight

    def transpose_matmul(self, gradient: Tensor) -> Tensor:
        # this way round it is two to three times as fast as values.T @ gradient for few columns
        parts = [gradient[block].T @ self.values[block] for block in blocks(len(self.values))]
        return sum(parts[1:], start=parts[0]).T

    def squared_norms(self) -> Tensor:
        import torch

        norms: Tensor = torch.linalg.vector_norm(self.values, dim=1)
        return norms.square_()

    def occupied(self) -> Tensor:
        return (self.values != 0).any(dim=1)

    def take(self, index: np.ndarray) -> DenseRows:
        return DenseRows(self.values[tensor(np.asarray(index))])

    def block(self, slots: slice) -> DenseRows:
        return DenseRows(self.values[slots])


def _restored(kind: type[DenseRows], values: np.ndarray) -> DenseRows:
    """Rows that were sent here; their memory may be another's and must not be written to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, about exactly that
        return kind(tensor(values))


class SparseRows:
    """Rows stored as a SciPy CSR matrix."""

    def __init__(self, values: sp.csr_matrix | sp.csr_array) -> None:
        self.values = sp.csr_matrix(values)
        self._columns: list[tuple[slice, sp.csr_matrix]] = []

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def meets_few_columns(self) -> bool:
        """Whether it is worth while to touch only those columns: so in small batches of wide rows."""
        return bool(self.values.nnz < self.values.shape[1])

    def matmul(self, weight: Tensor) -> Tensor:
        turned = weight.numpy(force=True).T
        if turned.shape[1] != self.shape[1]:
            raise InputError(f"rows of {self.shape[1]} columns were to be multiplied by a weight for {turned.shape[1]}")
        by_rows = turned.flags.c_contiguous
        if not (self.meets_few_columns and (by_rows or turned.T.flags.c_contiguous)):
            return tensor(self.values @ turned.T)
        from graphveil.graph.kernels.sparse_rows import times, times_turned

        values, product = self.values, np.empty((self.shape[0], len(turned)))
        multiply, factor = (times_turned, turned) if by_rows else (times, turned.T)
        multiply(values.indptr, values.indices, values.data, factor, product)
        return tensor(product)

    def turned_product(self, gradient: Tensor, out: Tensor) -> None:
        """Write ``gradient.T @ X`` into ``out`` of shape ``(k, d)``, which may lie by columns."""
        from graphveil.graph.kernels.sparse_rows import product_by_columns, turned_product

        values, total = self.values, out.numpy()
        by_rows = total.flags.c_contiguous
        product, target = (turned_product, total) if by_rows else (product_by_columns, total.T)
        product(values.indptr, values.indices, values.data, gradient.numpy(force=True), target)

    def transpose_matmul(self, gradient: Tensor) -> Tensor:
        if not self._columns:  # about twice as fast as multiplying by the CSC view, every step
            self._columns = [(block, self.values[block].T.tocsr()) for block in blocks(self.shape[0])]
        values = gradient.numpy(force=True)
        parts = [columns @ values[block] for block, columns in self._columns]
        return tensor(sum(parts[1:], start=parts[0]))

    def squared_norms(self) -> Tensor:
        from graphveil.graph.kernels.sparse_rows import sums_of_squares

        squares = np.empty(self.shape[0], dtype=self.values.dtype)
        sums_of_squares(self.values.indptr, self.values.data, squares)
        return tensor(squares)

    def occupied(self) -> Tensor:
        filled = sp.csr_matrix((self.values.data != 0, self.values.indices, self.values.indptr), shape=self.shape)
        return tensor(np.asarray(filled.sum(axis=1)).ravel() > 0)

    def take(self, index: np.ndarray) -> SparseRows:
        from graphveil.graph.kernels.sparse_rows import rows_at

        values, index = self.values, np.asarray(index)
        if index.ndim != 1 or (index.dtype == bool and len(index) != self.shape[0]):
            raise IndexError(f"an index of shape {index.shape} does not choose among {self.shape[0]} rows")
        chosen = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64, copy=False)
        starts, columns, taken = rows_at(values.indptr, values.indices, values.data, chosen)
        return SparseRows(sp.csr_matrix((taken, columns, starts), shape=(len(chosen), values.shape[1])))

    def block(self, slots: slice) -> SparseRows:
        return self if slots == slice(0, self.shape[0]) else SparseRows(self.values[slots])
