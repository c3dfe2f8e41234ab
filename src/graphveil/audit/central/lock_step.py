"""Lock-step audit: both worlds on one history, every release sampled with real noise, log-likelihood ratios added up.

A recorded run fixes the history. On it, each release is a known mechanism around one clean value on the graph and another on
its neighbour, so the log-likelihood ratio of everything released is a sum over releases of known functions; the noise is drawn
by the same code that protects real runs. Poisson batches: the history is recorded with every row in every batch, each touched
row is measured alone, and its coin is tossed anew; the score is the likelihood ratio of the mixture (Lemma G's pair with the
measured sizes), projected on the direction in which the sums differ. A history in which every coin shows is one that the
accounting must cover (it holds for any history) but that real batches hardly ever produce: for Poisson batches the figure refutes
the accounting on this one history, not the law of the histories of real runs. Slots sampled for a whole run (DPAR) mix the two
worlds once. The adversary is told the coins of the others, as the accounting allows. Tests: ``tests/audit/test_lock_step.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphveil.privacy.mechanisms import DpGradient, EdgeFlips, Exact, Gaussian, GumbelTop, Laplace, RandomizedResponse
from graphveil.privacy.noise import Noise

Array = NDArray[np.float64]
CHUNK = 4_000_000  # numbers held at a time
BUDGET, LEAST, MOST = 20_000_000, 50_000, 2_000_000


@dataclass(frozen=True)
class Shift:
    """Gaussian noise around two values ``distance`` apart, ``steps`` of them equivalent to one of the root of their squares."""

    sigma: float
    distance: float

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        clean = np.full(samples, self.distance if here else 0.0)
        released = Gaussian(self.sigma, samples).apply(clean, noise)
        scores: Array = (released * self.distance - self.distance**2 / 2) / self.sigma**2
        return scores


@dataclass(frozen=True)
class SampledShift:
    """One Poisson step: if its coin shows, row j moves the sum by ``before[j]`` here and ``after[j]`` there, in one direction."""

    sigma: float
    rate: float
    before: Array
    after: Array

    @property
    def exact(self) -> bool:
        """Whether the score is the likelihood ratio itself: all rows of a side move the sum alike."""
        sides = [side[side != 0] for side in (self.before, self.after)]
        return all(not side.size or np.ptp(side) <= 1e-9 * np.abs(side).max() for side in sides)

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        moves = self.before if here else self.after
        coins = noise.coins(self.rate, samples * len(moves)).reshape(samples, len(moves))
        released = Gaussian(self.sigma, samples).apply(coins @ moves, noise)
        return self._log_density(released, self.before) - self._log_density(released, self.after)

    def _log_density(self, x: Array, moves: Array) -> Array:
        """Of a binomial mixture with the mean size of these moves: exact for one row, a good score for several."""
        taking_part = moves[moves != 0]
        rows = len(taking_part)
        size = float(taking_part.mean()) if rows else 0.0
        i = np.arange(rows + 1)
        weights = np.array([math.lgamma(rows + 1) - math.lgamma(k + 1) - math.lgamma(rows - k + 1) for k in i])
        weights += i * math.log(self.rate) + (rows - i) * math.log1p(-self.rate)
        terms = weights + (np.outer(x, i * size) - (i * size) ** 2 / 2) / self.sigma**2
        return _log_sum(terms)


@dataclass(frozen=True)
class LaplaceShift:
    """Laplace noise around values that differ by ``change`` in some coordinates."""

    scale: float
    change: Array

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        total = np.zeros(samples)
        for change in self.change:
            clean = np.full(samples, change if here else 0.0)
            x = Laplace(self.scale, samples).apply(clean, noise)
            total += (np.abs(x) - np.abs(x - change)) / self.scale
        return total


@dataclass(frozen=True)
class Responses:
    """Randomised response on entries that differ."""

    epsilon: float
    categories: int
    before: NDArray[np.int64]
    after: NDArray[np.int64]

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        total = np.zeros(samples)
        for a, b in zip(self.before, self.after, strict=True):
            x = RandomizedResponse(self.epsilon, self.categories).apply(np.full(samples, a if here else b), noise)
            total += self.epsilon * ((x == a).astype(np.float64) - (x == b))
        return total


@dataclass(frozen=True)
class Flips:
    """One coin for each pair that differs: ``joined`` here, the opposite there."""

    epsilon: float
    joined: NDArray[np.bool_]

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        mechanism, total = EdgeFlips(self.epsilon, samples), np.zeros(samples)
        for joined in self.joined:
            pairs = np.arange(samples if joined == here else 0)
            shown = np.zeros(samples, dtype=bool)
            shown[mechanism.apply(pairs, noise)] = True
            total += np.where(shown == joined, self.epsilon, -self.epsilon)
        return total


@dataclass(frozen=True)
class Picks:
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

    def _log_probability(self, order: NDArray[np.int64], row: Array) -> Array:
        logits = np.tile(row / self.scale, (len(order), 1))
        total = np.zeros(len(order))
        everyone = np.arange(len(order))
        for place in range(order.shape[1]):
            chosen = order[:, place]
            total += logits[everyone, chosen] - _log_sum(logits)
            logits[everyone, chosen] = -np.inf
        return total


@dataclass(frozen=True)
class Visible:
    """Two different values in the clear."""

    def scores(self, here: bool, samples: int, noise: Noise) -> Array:
        return np.full(samples, math.inf if here else -math.inf)


def _log_sum(terms: Array) -> Array:
    """log of the sum of exponentials of every row."""
    largest = terms.max(axis=1)
    total: Array = largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))
    return total


Part = Shift | SampledShift | LaplaceShift | Responses | Flips | Picks | Visible


def parts_of(mechanism: object, before: np.ndarray, after: np.ndarray) -> Iterator[Part]:
    """What one release looks like in the two worlds; nothing if it is the same in both."""
    if isinstance(mechanism, EdgeFlips):
        changed = np.setxor1d(before, after)
        if changed.size:
            yield Flips(mechanism.epsilon, np.isin(changed, before))
        return
    change = np.asarray(before, dtype=np.float64) - after
    if not np.any(change):
        return
    match mechanism:
        case Gaussian(sigma) | DpGradient(sigma):
            yield Shift(sigma, float(np.linalg.norm(change)))
        case Laplace(scale):
            yield LaplaceShift(scale, change[change != 0])
        case RandomizedResponse(epsilon, categories):
            yield Responses(epsilon, categories, before[change != 0], after[change != 0])
        case GumbelTop(scale, picks):
            for row in np.flatnonzero(change.any(axis=1)):
                yield Picks(scale, picks, before[row], after[row])
        case Exact():
            yield Visible()


def merged(parts: list[Part]) -> list[Part]:
    """Gaussian steps of one scale taken together: their scores have the law of one step of root-sum-square distance."""
    squares: dict[float, float] = {}
    rest: list[Part] = []
    for part in parts:
        if isinstance(part, Shift):
            squares[part.sigma] = squares.get(part.sigma, 0.0) + part.distance**2
        else:
            rest.append(part)
    return [*(Shift(sigma, math.sqrt(square)) for sigma, square in squares.items()), *rest]


def sample_scores(
    parts: list[Part],
    samples: int,
    noise: Noise,
    sampled: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Array, Array]:
    """Scores (log-likelihood ratios) of the whole transcript in either world; ``sampled``: the record's slot takes part in the
    first world with this probability and is blank otherwise."""
    together = merged(parts)
    here, there, mixed = np.zeros(samples), np.zeros(samples), np.zeros(samples)
    block = max(1000, CHUNK // 64)
    for number, part in enumerate(together):
        for start in range(0, samples, block):
            chosen = slice(start, min(start + block, samples))
            size = chosen.stop - chosen.start
            here[chosen] += part.scores(True, size, noise)
            there[chosen] += part.scores(False, size, noise)
            if sampled < 1:
                mixed[chosen] += part.scores(False, size, noise)
        if progress is not None:
            progress(number + 1, len(together))
    if sampled == 1:
        return here, there
    first = np.where(noise.coins(sampled, samples), here, mixed)
    blend = lambda score: np.logaddexp(math.log1p(-sampled), math.log(sampled) + score)
    return blend(first), blend(there)


def exact_scores(parts: list[Part]) -> bool:
    """Whether the scores of these parts are log-likelihood ratios."""
    return all(part.exact for part in parts if isinstance(part, SampledShift))


def affordable_samples(parts: list[Part]) -> int:
    """As many draws as ``BUDGET`` random numbers allow, within reason."""
    cost = 0
    for part in merged(parts):
        match part:
            case SampledShift(_, _, before, after):
                cost += 2 * (len(before) + len(after)) + 2
            case LaplaceShift(_, change):
                cost += len(change)
            case Responses(_, _, before, _):
                cost += len(before)
            case Flips(_, joined):
                cost += len(joined)
            case Picks(_, picks, before, _):
                cost += len(before) * (picks + 2)
            case _:
                cost += 1
    return int(min(max(BUDGET // max(cost, 1), LEAST), MOST))


def realised_mu(parts: list[Part]) -> float:
    """The Gaussian parameter that these parts are worth in this pair of worlds: exact for Gaussians, a guide for the others."""
    total = 0.0
    for part in parts:
        match part:
            case Shift(sigma, distance):
                total += (distance / sigma) ** 2
            case SampledShift(sigma, rate, before, after):
                total += (rate * float(np.sum(before - after)) / sigma) ** 2
            case LaplaceShift(scale, change):
                total += float(np.sum(np.minimum(np.abs(change) / scale, 1e3) ** 2))
            case Responses(epsilon, _, before, _):
                total += len(before) * epsilon**2
            case Flips(epsilon, joined):
                total += len(joined) * epsilon**2
            case Picks(scale, picks, before, after):
                total += picks * (float(np.abs(before - after).max()) / scale) ** 2
            case Visible():
                return math.inf
    return math.sqrt(total)
