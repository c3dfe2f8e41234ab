"""Softmax regression on centred unit rows, block by block: exact sums of clipped gradients, and scores.

A sum of so many records is kept in whole units of ``grid``, so coarse that float64 adds without rounding: the result is the same
whatever the order of the records, the number of blocks and of workers, and one record moves it by its own term alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.graph.lists import GRID
from graphveil.graph.rows import DenseRows, Rows, SparseRows, tensor

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.graph.blocks import Block

FLOOR = 0.01  # least distance to the centre a row is divided by
BIAS = 0.1
ROOM = 1 << 25  # numbers: centred rows that are kept in memory, 256 MiB
LONGEST = 2 / (FLOOR * BIAS)  # before the centre is subtracted, terms are at most this many clipping norms long


def sum_grid(records: int, clip: float) -> float:
    """The public grid of a sum over so many records: 2^-24, or coarser where that sum would need more than 53 bits."""
    return max(GRID, 2.0 ** (math.ceil(math.log2(max(records, 1) * LONGEST * clip)) - 52))


def truncation_slack(records: int, features: int, classes: int, clip: float) -> float:
    """By how much a term may be longer than the clipping norm, for all that is rounded on the way.

    Dense rows are truncated towards zero and grow no longer. Sparse rows bring ``s u (p - y)`` and ``s (p - y)`` apart, each
    truncated by less than one step of the grid in every number, and ``m`` times the second is subtracted in the end (|m| <= 1):
    sqrt(C) (sqrt d + 1) steps. That subtraction rounds numbers up to records LONGEST clip by 2^-52, in either of two worlds.
    """
    steps = math.sqrt(classes) * (math.sqrt(features) + 1) * sum_grid(records, clip)
    return steps + 2.0**-51 * records * LONGEST * clip * math.sqrt((features + 1) * classes)


@dataclass(frozen=True)
class CentredSums:
    """The centre (d numbers, norm at most 1) and the weights (C, d + 1) with which rows are read; both are released."""

    centre: np.ndarray
    weights: np.ndarray

    def scores(self, rows: Rows, wanted: np.ndarray | None = None) -> np.ndarray:
        """One score per class for every row; zeros where a row is not wanted."""
        from graphveil.learn.centred_kernels import dense_scores, sparse_scores

        found = np.zeros((rows.shape[0], len(self.weights)))
        wanted = np.ones(len(found), dtype=bool) if wanted is None else wanted
        if len(wanted) != len(found):
            raise ValueError(f"{len(wanted)} of {len(found)} rows are wanted or not")
        by_row, read = _kernel(rows, dense_scores, sparse_scores), (FLOOR, BIAS, self.weights, found)
        by_row(wanted, self.centre, *read)
        return found

    def gradients(self, rows: Rows, labels: np.ndarray, clip: float, grid: float) -> np.ndarray:
        """The sum of clipped gradients of the rows with a label that is not negative, in units of ``grid`` and not finished."""
        from graphveil.learn.centred_kernels import dense_sums, sparse_sums

        classes, width = self.weights.shape
        if len(labels) != rows.shape[0]:  # a kernel does not look where it reads
            raise ValueError(f"{len(labels)} labels for {rows.shape[0]} rows")
        total = np.zeros((classes, width + isinstance(rows, SparseRows)))
        by_row = _kernel(rows, dense_sums, sparse_sums)
        by_row(labels, self.centre, FLOOR, BIAS, self.weights, clip, grid, total)
        return total

    def finished(self, total: np.ndarray, grid: float) -> np.ndarray:
        """The gradient sum (C, d + 1) of added up parts."""
        features = len(self.centre)
        if total.shape[1] == self.weights.shape[1]:
            return total * grid
        found = total[:, [*range(features), features + 1]]
        found[:, :features] -= total[:, features, None] * self.centre
        return found * grid


class ReadyRows(DenseRows):
    """Rows that are centred unit rows already; read only with the centre they were made for."""


class Reader:
    """The rows of every block for many steps with one centre: dense ones in memory are centred once, where there is room.

    A copy in another process has no room for them: rows are sent there once, not with the query of every step.
    """

    def __init__(self, private: Graph, centre: np.ndarray) -> None:
        self._ready: np.ndarray | None = None
        if not private.on_disk and isinstance(private.rows, DenseRows) and private.rows.values.numel() <= ROOM:
            from graphveil.learn.centred_kernels import dense_rows

            self._ready = np.empty(private.rows.shape)
            dense_rows(private.rows.values.numpy(), centre, FLOOR, self._ready)

    def __getstate__(self) -> dict[str, None]:
        return {"_ready": None}

    def rows(self, block: Block) -> DenseRows | SparseRows:
        return block.rows if self._ready is None else ReadyRows(tensor(self._ready[block.slots]))


def _kernel(rows: Rows, dense: Any, sparse: Any) -> Callable[..., None]:
    """The kernel for rows of this kind, bound to them."""
    if isinstance(rows, SparseRows):
        return partial(sparse, rows.values.indptr, rows.values.indices, rows.values.data)
    if isinstance(rows, DenseRows):
        return partial(dense, rows.values.numpy(), isinstance(rows, ReadyRows))
    raise TypeError(f"{type(rows).__name__} is not read row by row")
