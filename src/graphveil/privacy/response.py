"""Randomised response, once: a category that is mostly kept, and bits that flip now and then.

Coins are multiples of 2^-53 (``Noise.uniform``), so probabilities are rounded to that grid towards the safe side, step by step
until the ratio of the numbers that are really drawn is at most e^budget, not only that of the formula.
Tests: ``tests/privacy/test_response.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphveil.privacy.noise import COIN, Array, Noise

GAP_ERROR = 4e-14  # in log-ratios, of bits that are flipped by their gaps (``Noise.positions``)


def coin_below(probability: float) -> float:
    """A coin probability one to two grid steps below this one."""
    return math.floor(probability / COIN - 1) * COIN


def coin_above(probability: float) -> float:
    """A coin probability one to two grid steps above this one."""
    return math.ceil(probability / COIN + 1) * COIN


@dataclass(frozen=True)
class CategoryResponse:
    """One of k categories is kept with e^budget/(e^budget + k - 1), else it becomes one of the k - 1 others.

    Lemma: every response has one of two probabilities whose ratio is at most e^budget.
    """

    budget: float
    categories: int

    @cached_property
    def keep(self) -> float:
        keep = coin_below(1 / (1 + (self.categories - 1) * math.exp(-self.budget)))
        while math.log(keep / self._other(keep)) > self.budget:
            keep -= COIN
        return keep

    @property
    def other(self) -> float:
        """The probability of each single other category."""
        return self._other(self.keep)

    @property
    def epsilon(self) -> float:
        """The log-ratio that is really drawn."""
        return abs(math.log(self.keep / self.other))

    def _other(self, keep: float) -> float:
        return (1 - keep) / (self.categories - 1)

    @cached_property
    def channel(self) -> Array:
        """T[c, r] = P(response r | category c)."""
        size = self.categories
        return np.full((size, size), self.other) + (self.keep - self.other) * np.eye(size)

    def draw(self, values: Any, noise: Noise) -> NDArray[np.int64]:
        """Responses for categories 0 .. k - 1, entry by entry."""
        values = np.asarray(values, dtype=np.int64)
        kept = noise.coins(self.keep, values.size).reshape(values.shape)
        shift = 1 + noise.integers(self.categories - 1, values.size).reshape(values.shape)
        return np.asarray(np.where(kept, values, (values + shift) % self.categories))

    def log_density(self, value: int, response: int) -> float:
        return math.log(self.keep if value == response else self.other)


@dataclass(frozen=True)
class BitFlips:
    """Every bit flips with probability 1/(e^budget + 1). Lemma: one bit has the log-ratio ``budget`` at most."""

    budget: float

    @cached_property
    def flip(self) -> float:
        flip = coin_above(1 / (math.exp(self.budget) + 1) if self.budget < 700 else 0.0)
        while math.log((1 - flip) / flip) > max(self.budget - GAP_ERROR, 0.0):
            flip += COIN
        return flip

    @property
    def epsilon(self) -> float:
        """The log-ratio that is really drawn, at most."""
        return min(math.log((1 - self.flip) / self.flip) + GAP_ERROR, self.budget)

    def draw(self, ones: Any, bits: int, noise: Noise) -> NDArray[np.int64]:
        """The sorted places of the ones among ``bits`` bits after the flips; ``ones`` are sorted places, too.

        Flips are drawn by their gaps: the cost is the number of flips, not that of the bits.
        """
        return np.setxor1d(ones, noise.positions(self.flip, bits), assume_unique=True)

    def log_density(self, flipped: int, bits: int) -> float:
        return flipped * math.log(self.flip) + (bits - flipped) * math.log1p(-self.flip)
