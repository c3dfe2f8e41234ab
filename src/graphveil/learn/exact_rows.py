"""What the layers of a network read where sums over records are exact (``exact_gradients.py``).

Records bring rows on a fixed grid (``grid_rows.py``), perhaps with a constant beside them. Rows of any length, as between layers,
are scaled to a norm from 1/2 to 1 by a power of two of their own before they are rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from graphveil.learn import grid_kernels as kernels
from graphveil.learn.grid_rows import GridRows, cut


class ExactRows(Protocol):
    """Rows whose products with rounded weights, and sums of products with truncated coefficients, are exact."""

    @property
    def squares(self) -> np.ndarray:
        """The squared norm of every row."""

    @property
    def nbytes(self) -> int:
        """Without copies that are made for wide layers."""

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """``X @ weights``."""

    def sums(self, coefficients: np.ndarray, unit: float, shares: np.ndarray) -> np.ndarray:
        """``X.T @ (shares coefficients)``, a share per row, truncated so that no term grows longer."""


@dataclass(frozen=True, eq=False)
class ConstantRows:
    """Rows and one more column of the same number for everybody, which is on their grid, too."""

    rows: GridRows
    constant: float

    @classmethod
    def of(cls, rows: GridRows, constant: float, bits: int) -> ConstantRows:
        return cls(rows, math.ldexp(math.trunc(math.ldexp(constant, bits)), -bits))

    @property
    def squares(self) -> np.ndarray:
        return self.rows.squares + self.constant**2

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes

    def scores(self, weights: np.ndarray) -> np.ndarray:
        found = self.rows.scores(np.ascontiguousarray(weights[:-1]))
        found += self.constant * weights[-1]
        return found

    def sums(self, coefficients: np.ndarray, unit: float, shares: np.ndarray) -> np.ndarray:
        last = self.constant * cut_sum(coefficients, shares, unit)
        return np.concatenate([self.rows.sums(coefficients, unit, shares), last[None]])


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Rows of any length: 2^e times rows of norm 1/2 to 1, which are rounded to the grid 2^-bits; e is the row's own.

    In a sum the coefficients take the 2^e along, before they are truncated.
    """

    values: np.ndarray
    factors: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, bits: int, coins: Coins | None = None) -> ScaledRows:
        """``coins`` say which numbers are kept."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        values, factors, squares = np.empty_like(rows), np.empty(len(rows)), np.empty(len(rows))
        if coins is not None:
            coins.keep(rows, values)
        kernels.scaled_rows(rows if coins is None else values, 2.0**bits, values, factors, squares)
        return cls(values, factors, squares)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + 2 * self.squares.nbytes

    def scores(self, weights: np.ndarray) -> np.ndarray:
        found = self.values @ weights
        kernels.scaled(found, self.factors)
        return np.asarray(found)

    def sums(self, coefficients: np.ndarray, unit: float, shares: np.ndarray) -> np.ndarray:
        return np.asarray(self.values.T @ cut(coefficients, self.factors * shares, unit))


@dataclass(frozen=True, eq=False)
class Coins:
    """Which numbers of rows are kept: those whose coin shows at least ``least``, times ``scale``; the others become 0."""

    shown: np.ndarray
    least: int
    scale: float

    def keep(self, rows: np.ndarray, out: np.ndarray) -> None:
        """``out`` may be ``rows``."""
        kernels.kept(rows, self.shown, self.least, self.scale, out)


def cut_sum(coefficients: np.ndarray, shares: np.ndarray, unit: float) -> np.ndarray:
    """The sum of all rows of :func:`cut`."""
    total = np.zeros(coefficients.shape[1])
    kernels.cut_sum(coefficients, shares, unit, total)
    return total
