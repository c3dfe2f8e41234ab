"""From samples of a score in two neighbouring worlds to a lower bound on epsilon, with a stated confidence.

For an (epsilon, delta)-private output and any set of outputs, ``P(set) <= exp(epsilon) Q(set) + delta``. Hence
``epsilon >= log((TPR - delta) / FPR)`` for the set "score >= threshold", with TPR under one world and FPR under the other. A
quarter of the samples chooses threshold and direction, the rest is counted; TPR is replaced by its Clopper-Pearson lower and FPR
by its upper limit, each at half the allowed error. The bound exceeds the true epsilon with probability at most
``1 - confidence``. Tests: ``tests/statistics/test_lower_bounds.py``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

Array = NDArray[np.float64]

CONFIDENCE = 0.9999
THRESHOLDS = 400
CHOOSING = 0.25  # of the samples choose the threshold


@dataclass(frozen=True)
class LowerBound:
    """``epsilon`` is at least this much, unless an event of probability ``1 - confidence`` happened."""

    epsilon: float
    delta: float
    confidence: float
    samples: int
    threshold: float
    hits: int
    false_hits: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"threshold": self.threshold if math.isfinite(self.threshold) else None}


def clopper_pearson(hits: Any, trials: int, error: float) -> tuple[Array, Array]:
    """One-sided exact limits of a probability: each misses it with probability at most ``error``."""
    hits = np.asarray(hits, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        lower = np.where(hits > 0, beta.ppf(error, hits, trials - hits + 1), 0.0)
        upper = np.where(hits < trials, beta.ppf(1 - error, hits + 1, trials - hits), 1.0)
    return lower, upper


def rate_bounds(hits: Any, trials: int, false_hits: Any, others: int, delta: float, error: float) -> Array:
    """``log((TPR - delta) / FPR)`` with the limits of both rates; -inf where the first does not exceed delta."""
    least = np.maximum(clopper_pearson(hits, trials, error)[0] - delta, 0.0)
    with np.errstate(divide="ignore"):
        bounds: Array = np.log(least) - np.log(clopper_pearson(false_hits, others, error)[1])
    return bounds


def epsilon_lower_bound(first: Array, second: Array, delta: float = 0.0, confidence: float = CONFIDENCE) -> LowerBound:
    """The bound from scores drawn in the first world (they should be larger) and in the second; equally many of each."""
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or len(first) < 4:
        raise ValueError("the two worlds need equally many scores, at least four")
    half, error = max(1, int(CHOOSING * len(first))), (1 - confidence) / 2
    sides = (1, first, second), (-1, second, first)
    found = [(*_best(sign * a[:half], sign * b[:half], delta, error), sign, a, b) for sign, a, b in sides]
    _, threshold, sign, a, b = max(found, key=lambda side: side[0])
    rest = len(first) - half
    hits = int(np.count_nonzero(sign * a[half:] >= threshold))
    false_hits = int(np.count_nonzero(sign * b[half:] >= threshold))
    epsilon = max(0.0, float(rate_bounds(hits, rest, false_hits, rest, delta, error)))
    return LowerBound(epsilon, delta, confidence, rest, float(sign * threshold), hits, false_hits)


def likelihood_lower_bound(
    first: Array, second: Array, delta: float, seed: int, confidence: float = CONFIDENCE
) -> LowerBound:
    """A sharper bound for scores that *are* log-likelihood ratios L of the first world to the second.

    Then ``delta(epsilon) = E_first[(1 - exp(epsilon - L))_+]``. With a uniform U, ``1 - exp(epsilon - L) > U`` is a coin of this
    very probability and happens iff ``L + log(1 - U) > epsilon``; so the count of such draws has a Clopper-Pearson limit, and the
    largest epsilon at which it exceeds delta is a lower bound. Counts fall with epsilon for every sample, hence one limit
    covers all epsilons. The mirror image holds for -L in the second world. Only valid if the noise has its stated law, which is
    checked apart.
    """
    rng, error, trials = np.random.default_rng([0x5C0, seed]), (1 - confidence) / 2, len(first)
    least, most = 1, trials
    while least < most:  # the smallest count whose limit exceeds delta
        middle = (least + most) // 2
        beyond = clopper_pearson(middle, trials, error)[0] > delta
        least, most = (least, middle) if beyond else (middle + 1, most)
    found = []
    for losses in (first, -second):
        reached = losses + np.log1p(-rng.random(trials))
        found.append(float(np.partition(reached, trials - least)[trials - least]))
    epsilon = max(max(found), 0.0)
    return LowerBound(epsilon, delta, confidence, trials, epsilon, least, 0)


def _best(a: Array, b: Array, delta: float, error: float) -> tuple[float, float]:
    """The threshold with the best bound on these samples: quantiles of both worlds, dense in their tails."""
    tails = np.geomspace(4 / len(a), 0.5, THRESHOLDS // 4)
    levels = np.concatenate([tails, 1 - tails])
    places = np.clip(np.ceil(levels * len(a)).astype(np.int64) - 1, 0, len(a) - 1)
    a, b = np.sort(a), np.sort(b)
    pooled = np.concatenate([a[places], b[places]])
    values = np.unique(pooled[~np.isnan(pooled)])
    hits, false_hits = (len(side) - np.searchsorted(side, values, side="left") for side in (a, b))
    bounds = np.maximum(rate_bounds(hits, len(a), false_hits, len(a), delta, error), 0.0)
    best = int(np.argmax(bounds))
    return float(bounds[best]), float(values[best])
