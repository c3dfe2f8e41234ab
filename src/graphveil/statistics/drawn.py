"""Do numbers have the law they should, and are they independent? Exact p-values, or bounds on them; nothing is estimated.

*Normals.* For a table whose entries are independent N(0, 1), one row per draw, the squares of a column, of the row sums (over the
root of the width) and of the sums of two successive rows (over the root of 2) add up to chi-squared numbers: they find a wrong
scale in any one column, a part that columns share, and a draw that leans on the one before. The law as a whole is compared by the
inequality of Dvoretzky, Kiefer, Wolfowitz and Massart, ``P(D > t) <= 2 exp(-2 n t^2)``, which holds for every n and every law.
Other continuous laws are turned into normals first (:func:`normal_scores`). In a row of independent N(0, 1), the m products of
numbers so far apart add up to S = x'Bx, B of eigenvalues within -1 .. 1 that add up to 0 and whose squares add up to m/2. So
log E exp(tS) = -1/2 sum log(1 - 2 t b) <= t^2 m / (2 - 4 |t|), and by Chernoff P(|S| > s) <= 2 exp(-s^2 / (2 m + 4 s)).
*Coins.* For a table of independent coins of one rate, the counts of a column, of two columns that both show and of
successive rows that both show are binomial, and the number of coins that show in a row is binomial, too (the inequality again).
Tests: ``tests/statistics/test_drawn.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import binom, chi2

Array = NDArray[np.float64]
RATE = 1e-9  # with which a check of correct draws fails, however many comparisons it makes
COMPARED = 100_000  # numbers of which the whole law is compared
PAIRED = 300  # coins that are compared two by two


def plausible(p_values: Any, rate: float = RATE) -> bool:
    """Whether no p-value is below its equal share of ``rate``: correct draws fail with probability at most ``rate``."""
    found = np.atleast_1d(np.asarray(p_values, dtype=np.float64))
    return bool(found.size == 0 or np.nanmin(found) * found.size >= rate) and not bool(np.isnan(found).any())


def binomial_p_values(counts: Any, trials: Any, chances: Any) -> Array:
    """Exact two-sided p-values: twice the smaller tail."""
    tails = np.minimum(binom.cdf(counts, trials, chances), binom.sf(np.asarray(counts) - 1, trials, chances))
    return np.atleast_1d(np.minimum(1.0, 2 * tails))


def chi_squared_p_values(sums: Any, squares: Any) -> Array:
    """Of sums of so many squares of independent N(0, 1): twice the smaller tail."""
    return np.atleast_1d(np.minimum(1.0, 2 * np.minimum(chi2.cdf(sums, squares), chi2.sf(sums, squares))))


def distance_p_value(below: Array, at_most: Array, draws: int) -> float:
    """A bound on the p-value of a sample from its law: ``below`` and ``at_most`` are, at every place where the sample steps, how
    far its distribution function lies from the stated one just before and at the step."""
    distance = max(float(np.abs(below).max()), float(np.abs(at_most).max()))
    return min(1.0, 2 * math.exp(-2 * draws * distance**2))


def normal_scores(numbers: Array, law: Callable[[Any], Array]) -> Array:
    """Numbers of a symmetric continuous law as numbers of N(0, 1), by their place in it; exact far out, too."""
    return numbers if law is ndtr else np.copysign(ndtri(law(-np.abs(numbers))), numbers)


def lag_p_values(numbers: Array) -> Array:
    """Bounds on the p-values of numbers in a row that should be independent N(0, 1): one for every distance up to 15/16
    of the row. They find stretches of numbers that come again, wherever, as they are or with other signs or scales."""
    size = len(numbers)
    spectrum = np.fft.rfft(numbers, 2 * size)
    products = np.fft.irfft(spectrum * spectrum.conj())[1 : 15 * size // 16 + 1]
    sums, pairs = np.abs(products), size - np.arange(1, len(products) + 1)
    return np.asarray(np.minimum(1.0, 2 * np.exp(-np.square(sums) / (2 * pairs + 4 * sums))))


class NormalTable:
    """A table of numbers that should be independent N(0, 1), added in blocks of rows; each row is one draw."""

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self._columns, self._paired, self._of_pairs, self._of_rows = columns, 0, 0.0, 0.0
        self.squares: Array = np.zeros(columns)
        self._kept: list[Array] = []

    def add(self, block: Array) -> None:
        self.squares += np.einsum("ij,ij->j", block, block)
        self._of_rows += float(np.square(block.sum(axis=1)).sum()) / self._columns
        pairs = block[0 : len(block) - 1 : 2] + block[1::2]
        self._of_pairs += float(np.square(pairs).sum()) / 2
        self._paired += pairs.size
        if self.rows * self._columns < COMPARED:
            self._kept.append(block.ravel()[:COMPARED])
        self.rows += len(block)

    def p_values(self) -> dict[str, Array]:
        """By what a small one means."""
        found = {"its scale is not the declared one": chi_squared_p_values(self.squares, self.rows)}
        numbers = np.sort(np.concatenate(self._kept))
        size, law = len(numbers), ndtr(numbers)
        steps = np.arange(size + 1) / size
        found["it does not have the declared law"] = np.array(
            [distance_p_value(law - steps[:-1], steps[1:] - law, size)]
        )
        if self._columns > 1:
            found["its numbers lean on each other"] = chi_squared_p_values(self._of_rows, self.rows)
        if self._paired:
            found["a draw leans on the one before"] = chi_squared_p_values(self._of_pairs, self._paired)
        return found


def coin_p_values(table: NDArray[np.bool_], rate: float) -> dict[str, Array]:
    """Of a table of coins of one rate, one row per toss of all of them, by what a small p-value means."""
    rows, columns = table.shape
    found = {"some take part more or less often than the others": binomial_p_values(table.sum(axis=0), rows, rate)}
    if columns > 1:
        counts = table[:, :PAIRED].astype(np.float64)
        both = (counts.T @ counts)[np.triu_indices(counts.shape[1], 1)]
        sizes = np.bincount(table.sum(axis=1), minlength=columns + 1).cumsum() / rows
        apart = sizes - binom.cdf(np.arange(columns + 1), columns, rate)
        found["coins lean on each other"] = binomial_p_values(both, rows, rate**2)
        found["their number varies too little or too much"] = np.array([distance_p_value(apart, apart, rows)])
    if rows > 1:
        first = table[0 : rows - 1 : 2]
        again = (first & table[1::2]).sum()
        found["a toss leans on the one before"] = binomial_p_values(again, first.size, rate**2)
    return found
