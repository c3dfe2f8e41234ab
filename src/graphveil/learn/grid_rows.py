"""Centred unit rows on a public grid, with which sums of products are exact: the same in any order and any blocks.

A row is ``s (u - m)``: u the features divided by their norm, m a released centre, ``s = 1 / max(|u - m|, floor)``, 0 where there
are no features. Dense rows are truncated towards zero to multiples of 2^-a; of sparse rows u and m are, and s is kept apart. What
a record adds to a sum is its row times coefficients that are truncated to multiples of 2^-b (``grids.py``), for sparse rows after
they were multiplied by s. Truncation makes neither factor longer, so a term that was at most L long stays so.

Sums of sparse rows are kept in whole numbers of 64 bits: before m is taken off, terms are up to s times as long,
and where rows are nearly m, coefficients are bounded by the constant beside them alone: 1/(floor bias) = 1000 < 2^10 in all.
Scores are exact as well where weights are rounded (``grids.rounded_weights``).
Tests: ``tests/learn/test_grid_rows.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from graphveil.graph.rows import DenseRows, SparseRows, blocks
from graphveil.graph.unit import unit_rows
from graphveil.learn import grid_kernels as kernels
from graphveil.learn.centred_sums import FLOOR

if TYPE_CHECKING:
    from graphveil.graph.blocks import Block

NARROW = 16  # columns up to which our own loops are faster than matrix products
CHUNK = 2048


@dataclass(frozen=True, eq=False)
class DenseGridRows:
    """Rows (m, d) as float32, their squared norms as they are on the grid."""

    values: np.ndarray
    squares: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.squares.nbytes

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """``X @ weights``, exact for rounded weights."""
        found = np.empty((len(self.values), weights.shape[1]))
        if weights.shape[1] > NARROW:
            for part in self._parts():
                np.matmul(self.values[part].astype(np.float64), weights, out=found[part])
            return found
        kernels.dense_scores(self.values, np.ascontiguousarray(weights.T), found)
        return found

    def sums(self, coefficients: np.ndarray, unit: float, shares: np.ndarray | None = None) -> np.ndarray:
        """``X.T @ (shares coefficients)``, truncated to ``unit``."""
        total = np.zeros((coefficients.shape[1], self.values.shape[1]))
        if coefficients.shape[1] <= NARROW and shares is None:
            kernels.dense_sums(self.values, np.ascontiguousarray(coefficients), unit, total)
            return total.T
        whole = cut(coefficients, np.ones(len(coefficients)) if shares is None else shares, unit)
        if coefficients.shape[1] <= NARROW:
            kernels.dense_sums(self.values, whole, unit, total)
            return total.T
        for part in self._parts():
            total += whole[part].T @ self.values[part].astype(np.float64)
        return total.T

    def _parts(self) -> list[slice]:
        """So few rows at a time that in double precision they stay in the cache."""
        return [slice(first, first + CHUNK) for first in range(0, len(self.values), CHUNK)]


@dataclass(frozen=True, eq=False)
class SparseGridRows:
    """Rows in CSR: u in whole numbers of 2^-bits, and s; ``middle`` is the centre, in the same whole numbers."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    scales: np.ndarray
    squares: np.ndarray
    middle: np.ndarray
    bits: int

    @property
    def nbytes(self) -> int:
        return self.columns.nbytes + self.values.nbytes + self.starts.nbytes + 2 * self.squares.nbytes

    @cached_property
    def grid(self) -> float:
        return math.ldexp(1.0, -self.bits)

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """``X @ weights``; products are exact for rounded weights."""
        if weights.shape[1] > NARROW:
            found = self._matrix @ weights
            kernels.moved_and_scaled(found, self.offsets(weights), self.scales)
            return np.asarray(found)
        found = np.empty((len(self.scales), weights.shape[1]))
        where = self.starts, self.columns, self.values, self.scales
        kernels.sparse_scores(*where, self.grid, in_fours(weights), self.offsets(weights), found)
        return found

    @cached_property
    def _matrix(self) -> sp.csr_matrix:
        """u as it is."""
        shape = len(self.scales), len(self.middle)
        return sp.csr_matrix((self.values * self.grid, self.columns, self.starts), shape=shape)

    @cached_property
    def _turned(self) -> list[tuple[slice, sp.csr_matrix]]:
        """Its transpose, so many rows at a time."""
        return [(part, self._matrix[part].T.tocsr()) for part in blocks(len(self.scales))]

    def offsets(self, weights: np.ndarray) -> np.ndarray:
        """``m @ weights``, exact for rounded weights."""
        return np.asarray((self.middle * self.grid) @ weights)

    def sums(self, coefficients: np.ndarray, unit: float, shares: np.ndarray | None = None) -> np.ndarray:
        """``X.T @ (shares coefficients)``, truncated to ``unit`` after s is in them."""
        classes = coefficients.shape[1]
        scales = self.scales if shares is None else self.scales * shares
        if classes > NARROW and not self.middle.any():  # nothing is taken off later: terms are as long as they end up
            whole = cut(coefficients, scales, unit)
            return np.asarray(sum(turned @ whole[part] for part, turned in self._turned))
        total = self.nothing(classes)
        where = self.starts, self.columns, self.values, scales
        kernels.sparse_sums(*where, np.ascontiguousarray(coefficients), unit, total)
        return self.finished(total, classes, unit)

    def nothing(self, classes: int) -> np.ndarray:
        """Sums of no rows: one whole number per column and class (their number rounded up to fours), and one row for m."""
        return np.zeros((len(self.middle) + 1, -(-classes // 4) * 4), dtype=np.int64)

    def finished(self, total: np.ndarray, classes: int, unit: float) -> np.ndarray:
        """Sums (d, C) of added up whole numbers."""
        total = total[:, :classes]
        return np.asarray((total[:-1] - self.middle[:, None] * total[-1]) * (self.grid * unit))


GridRows = DenseGridRows | SparseGridRows


def cut(coefficients: np.ndarray, shares: np.ndarray, unit: float) -> np.ndarray:
    """Rows times their shares, truncated towards zero to multiples of ``unit``, a power of two."""
    found = np.empty_like(coefficients)
    kernels.cut(coefficients, shares, unit, found)
    return found


def in_fours(weights: np.ndarray) -> np.ndarray:
    """Weights (d, C) with columns of zeros up to a multiple of four."""
    padded = np.zeros((len(weights), -(-weights.shape[1] // 4) * 4))
    padded[:, : weights.shape[1]] = weights
    return padded


def grid_rows(block: Block, chosen: np.ndarray, centre: np.ndarray, bits: int) -> GridRows:
    """The rows of a block at these rising positions; every number of a row depends on that row and released numbers alone."""
    rows = block.rows
    if isinstance(rows, DenseRows):
        values = np.empty((len(chosen), len(centre)), dtype=np.float32)
        squares = np.empty(len(chosen))
        kernels.dense_rows(rows.values.numpy(), chosen, centre, FLOOR, 2.0**bits, values, squares)
        return DenseGridRows(values, squares)
    unit = unit_rows(rows if len(chosen) == len(block) else rows.take(chosen))
    assert isinstance(unit, SparseRows)
    entries = unit.values
    middle = np.trunc(np.ldexp(centre, bits)).astype(np.int64)
    finite = np.nan_to_num(entries.data, nan=0.0, posinf=0.0, neginf=0.0)  # as whole numbers they would pass for finite
    whole = np.trunc(np.ldexp(finite, bits)).astype(np.int32)
    scales, squares = np.empty(len(chosen)), np.empty(len(chosen))
    occupied = unit.occupied().numpy()
    kernels.sparse_scales(entries.indptr, entries.indices, whole, occupied, middle, FLOOR, 2.0**-bits, scales, squares)
    return SparseGridRows(entries.indptr, entries.indices, whole, scales, squares, middle, bits)
