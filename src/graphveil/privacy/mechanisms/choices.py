"""Coins and choices: randomised response of categories, flipped pairs, and the largest of noisy scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphveil.errors import PrivacyError
from graphveil.privacy.accounting.loss import Loss, Pure, Zcdp
from graphveil.privacy.laws import Flips, Law, Picks, Responses
from graphveil.privacy.mechanisms.base import Noisy, change, least_noise
from graphveil.privacy.noise import Noise, gumbel_overhead
from graphveil.privacy.response import BitFlips, CategoryResponse


@dataclass(frozen=True)
class RandomizedResponse(Noisy):
    """Each entry keeps its category with e^eps/(e^eps + c - 1), else becomes one of the others: pure eps per entry.

    ``sensitivity`` counts the entries one record can change (1 for a label). The law: ``response.py``.
    """

    kind: ClassVar[str] = "randomized-response"
    epsilon: float
    categories: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.categories < 2:
            raise PrivacyError(f"randomised response needs at least two categories, got {self.categories}")

    def loss(self, sensitivity: float) -> Loss:
        return Pure(self.epsilon * sensitivity)

    def apply(self, value: Any, noise: Noise) -> Any:
        labels = np.asarray(value, dtype=np.int64)
        if labels.size and (labels.min() < 0 or labels.max() >= self.categories):
            raise PrivacyError(f"randomised response got a category outside 0..{self.categories - 1}")
        return self.response.draw(labels, noise)

    @property
    def response(self) -> CategoryResponse:
        return CategoryResponse(self.epsilon, self.categories)

    def words(self) -> str:
        return f"randomised response, epsilon {self.epsilon:.4g}, {self.categories} categories"

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return float(np.count_nonzero(before != after))

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        differs = before != after
        return [Responses(self.response, before[differs], after[differs])] if differs.any() else []

    def worst_pair(self, bound: float) -> list[Law]:
        changed = round(bound)
        return [Responses(self.response, np.zeros(changed, dtype=np.int64), np.ones(changed, dtype=np.int64))]


@dataclass(frozen=True)
class EdgeFlips(Noisy):
    """One coin per pair of slots: the pair changes between friends and strangers with probability 1/(e^eps + 1).

    Value and result are sorted pair numbers (``graph`` codes of the pairs that are joined), out of ``pairs`` possible ones.
    Flips are drawn by their gaps (``response.py``), so the cost is the number of flips, never n x n. Pure eps per pair that can
    differ; ``sensitivity`` counts those pairs. Tests: ``tests/methods/test_edge_rand.py``.
    """

    kind: ClassVar[str] = "edge-flips"
    shaped: ClassVar[bool] = False
    epsilon: float
    pairs: int

    @property
    def flips(self) -> BitFlips:
        return BitFlips(self.epsilon)

    def loss(self, sensitivity: float) -> Loss:
        return Pure(self.epsilon * sensitivity)

    def apply(self, value: Any, noise: Noise) -> Any:
        joined = np.asarray(value, dtype=np.int64)
        if joined.size and (joined[0] < 0 or joined[-1] >= self.pairs or np.any(np.diff(joined) <= 0)):
            raise PrivacyError(f"edge flips need increasing pair numbers below {self.pairs}")
        return self.flips.draw(joined, self.pairs, noise)

    def words(self) -> str:
        return f"one coin for each of {self.pairs} pairs, epsilon {self.epsilon:.4g}"

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return float(np.setxor1d(before, after).size)

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        changed = np.setxor1d(before, after)
        return [Flips(self.flips, np.isin(changed, before))] if changed.size else []

    def worst_pair(self, bound: float) -> list[Law]:
        return [Flips(self.flips, np.ones(round(bound), dtype=bool))]


@dataclass(frozen=True)
class AskedFlips(EdgeFlips):
    """The coins of :class:`EdgeFlips` for some pairs only, where whoever reads the result would drop all others anyway.

    The value has two rows: increasing numbers of the pairs asked for, and 1 where a pair is joined; the result is the sorted
    numbers of those that are joined after the flips. Each of them has the law it has in ``EdgeFlips``, and the cost is the number
    asked for. Which ones are asked for must not depend on private data, or be accounted elsewhere. Tests:
    ``tests/methods/test_nip_published.py``.
    """

    kind: ClassVar[str] = "asked-flips"

    def apply(self, value: Any, noise: Noise) -> Any:
        asked, joined = np.asarray(value, dtype=np.int64)
        if asked.size and (asked[0] < 0 or asked[-1] >= self.pairs or np.any(np.diff(asked) <= 0)):
            raise PrivacyError(f"edge flips need increasing pair numbers below {self.pairs}")
        return asked[self.flips.draw(np.flatnonzero(joined), asked.size, noise)]

    def words(self) -> str:
        return f"{super().words()}, drawn for the pairs asked for"

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return super().distance(*_joined_of_both(before, after))

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        return super().worlds(*_joined_of_both(before, after))


def _joined_of_both(before: NDArray[Any], after: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The joined pairs among those that both sides were asked for."""
    both = np.intersect1d(before[0], after[0])
    old, new = (np.intersect1d(side[0][side[1] > 0], both) for side in (before, after))
    return old, new


@dataclass(frozen=True)
class GumbelTop(Noisy):
    """In each of ``rows`` rows the ``picks`` columns of the largest values after Gumbel(scale) noise on every entry.

    The same law as ``picks`` successive choices by the exponential mechanism. One record moves entries by at most
    ``sensitivity``, in all rows; each choice then has range 2 sensitivity/scale and costs rho = (sensitivity/scale)^2/2
    (Durfee and Rogers 2019; Cesar and Rogers 2021). Every choice is drawn within a relative ``noise.ERROR`` of its ideal chance:
    that widens the range of log-ratios by four of them (``gumbel_overhead``). Tests: ``tests/methods/test_dpar.py``.
    """

    kind: ClassVar[str] = "gumbel-top"
    scale: float
    picks: int
    rows: int
    columns: int

    @classmethod
    def for_mu(cls, sensitivity: float, mu: float, picks: int, rows: int, columns: int) -> GumbelTop:
        """The least noise with which a record of this sensitivity pays at most rho = mu^2/2 for all choices."""
        each = mu / math.sqrt(max(rows * picks, 1)) - gumbel_overhead()
        return cls(least_noise(sensitivity, each), picks, rows, columns)

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Zcdp(0.0)
        return Zcdp(self.rows * self.picks * (sensitivity / self.scale + gumbel_overhead()) ** 2 / 2)

    def apply(self, value: Any, noise: Noise) -> Any:
        scores = np.asarray(value, dtype=np.float64)
        if scores.shape != (self.rows, self.columns):
            raise PrivacyError(f"the scores have shape {scores.shape}, the plan says {(self.rows, self.columns)}")
        picked = np.empty((self.rows, self.picks), dtype=np.int64)
        for number, row in enumerate(scores):
            noisy = row / self.scale + noise.gumbel(self.columns)
            best = np.argpartition(-noisy, self.picks - 1)[: self.picks]
            picked[number] = best[np.argsort(-noisy[best])]
        return picked

    def words(self) -> str:
        return f"{self.picks} picks in each of {self.rows} rows of {self.columns}, Gumbel noise {self.scale:.4g}"

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return float(np.abs(change(before, after)).max())

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        moved = np.flatnonzero(change(before, after).any(axis=1))
        return [Picks(self.scale, self.picks, before[row], after[row]) for row in moved]
