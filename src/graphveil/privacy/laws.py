"""What one release looks like in two neighbouring worlds, as something that can be drawn and scored.

``scores`` draws a release in either world, with the noise that protects real runs, and returns its log-likelihood ratio
of the first world to the second. Audits add these up (``audit/central/lock_step.py``). Tests: ``tests/audit/test_lock_step.py``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphveil.privacy.accounting.group_loss import log_binomial, log_sum
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.response import BitFlips, CategoryResponse


class Law(ABC):
    """A pair of laws for one release, the first world's and the second's."""

    @abstractmethod
    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        """Log-likelihood ratios of so many releases, drawn in the first world (``here``) or in the second."""

    @property
    def cost(self) -> int:
        """How many random numbers one draw takes, about."""
        return 1

    @property
    @abstractmethod
    def squared_mu(self) -> float:
        """The squared Gaussian parameter that the pair is worth: exact for Gaussians, a guide for the others."""

    @property
    def exact(self) -> bool:
        """Whether the scores are the likelihood ratios themselves."""
        return True


@dataclass(frozen=True)
class Shift(Law):
    """Gaussian noise around two values ``distance`` apart, ``steps`` of them equivalent to one of the root of their squares."""

    sigma: float
    distance: float

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        released = noise.add_gaussian(np.full(samples, self.distance if here else 0.0), self.sigma)
        return np.asarray((released * self.distance - self.distance**2 / 2) / self.sigma**2)

    @property
    def squared_mu(self) -> float:
        return (self.distance / self.sigma) ** 2


@dataclass(frozen=True)
class SampledShift(Law):
    """One Poisson step: if its coin shows, row j moves the sum by ``before[j]`` here and ``after[j]`` there, in one direction."""

    sigma: float
    rate: float
    before: Array
    after: Array

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        moves = self.before if here else self.after
        coins = noise.coins(self.rate, samples * len(moves)).reshape(samples, len(moves))
        released = noise.add_gaussian(coins @ moves, self.sigma)
        return self._log_density(released, self.before) - self._log_density(released, self.after)

    @property
    def cost(self) -> int:
        return 2 * (len(self.before) + len(self.after)) + 2

    @property
    def squared_mu(self) -> float:
        return (self.rate * float(np.sum(self.before - self.after)) / self.sigma) ** 2

    @property
    def exact(self) -> bool:
        """Exact if all rows of a side move the sum alike."""
        sides = [side[side != 0] for side in (self.before, self.after)]
        return all(not side.size or np.ptp(side) <= 1e-9 * np.abs(side).max() for side in sides)

    def _log_density(self, x: Array, moves: Array) -> Array:
        """Of a binomial mixture with the mean size of these moves: exact for one row, a good score for several."""
        taking_part = moves[moves != 0]
        rows = len(taking_part)
        size = float(taking_part.mean()) if rows else 0.0
        means = size * np.arange(rows + 1)
        return log_sum(log_binomial(rows, self.rate) + (np.outer(x, means) - means**2 / 2) / self.sigma**2)[0]


@dataclass(frozen=True)
class LaplaceShift(Law):
    """Laplace noise around values that differ by ``change`` in some coordinates."""

    scale: float
    change: Array

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        total = np.zeros(samples)
        for change in self.change:
            x = noise.add_laplace(np.full(samples, change if here else 0.0), self.scale)
            total += (np.abs(x) - np.abs(x - change)) / self.scale
        return total

    @property
    def cost(self) -> int:
        return len(self.change)

    @property
    def squared_mu(self) -> float:
        return float(np.sum(np.minimum(np.abs(self.change) / self.scale, 1e3) ** 2))


@dataclass(frozen=True)
class Responses(Law):
    """Randomised response on entries that differ."""

    response: CategoryResponse
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        total = np.zeros(samples)
        for a, b in zip(self.before, self.after, strict=True):
            x = self.response.draw(np.full(samples, a if here else b), noise)
            total += self.response.epsilon * ((x == a).astype(np.float64) - (x == b))
        return total

    @property
    def cost(self) -> int:
        return len(self.before)

    @property
    def squared_mu(self) -> float:
        return len(self.before) * self.response.budget**2


@dataclass(frozen=True)
class Flips(Law):
    """One coin for each pair that differs: ``joined`` here, the opposite there."""

    flips: BitFlips
    joined: NDArray[np.bool_]

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        total = np.zeros(samples)
        for joined in self.joined:
            ones = np.arange(samples if joined == here else 0)
            shown = np.zeros(samples, dtype=bool)
            shown[self.flips.draw(ones, samples, noise)] = True
            total += np.where(shown == joined, self.flips.epsilon, -self.flips.epsilon)
        return total

    @property
    def cost(self) -> int:
        return len(self.joined)

    @property
    def squared_mu(self) -> float:
        return len(self.joined) * self.flips.budget**2


@dataclass(frozen=True)
class Picks(Law):
    """Successive choices by Gumbel noise from one row of scores that differs."""

    scale: float
    picks: int
    before: Array
    after: Array

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        row, columns = (self.before if here else self.after) / self.scale, len(self.before)
        noisy = row + noise.gumbel(samples * columns).reshape(samples, columns)
        order = np.argsort(-noisy, axis=1)[:, : self.picks]
        return self._log_probability(order, self.before) - self._log_probability(order, self.after)

    @property
    def cost(self) -> int:
        return len(self.before) * (self.picks + 2)

    @property
    def squared_mu(self) -> float:
        return self.picks * (float(np.abs(self.before - self.after).max()) / self.scale) ** 2

    def _log_probability(self, order: NDArray[np.int64], row: Array) -> Array:
        logits = np.tile(row / self.scale, (len(order), 1))
        total = np.zeros(len(order))
        everyone = np.arange(len(order))
        for place in range(order.shape[1]):
            chosen = order[:, place]
            total += logits[everyone, chosen] - log_sum(logits)[0]
            logits[everyone, chosen] = -np.inf
        return total


@dataclass(frozen=True)
class Visible(Law):
    """Two different values in the clear."""

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        return np.full(samples, math.inf if here else -math.inf)

    @property
    def squared_mu(self) -> float:
        return math.inf


def realised_mu(laws: Iterable[Law]) -> float:
    """The Gaussian parameter that these laws are worth together."""
    return math.sqrt(sum(law.squared_mu for law in laws))
