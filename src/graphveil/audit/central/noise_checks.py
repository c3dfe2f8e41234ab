"""Attacks on the noise itself: last digits, and dependence between numbers that should be independent.

*Last digits* (Mironov 2012): the doubles that ``value + noise`` can reach depend on ``value``. The attack looks only at the
place of the last set bit of each output. It must succeed on noise added in plain floating point, and fail on the public grid of
``privacy/noise.py``, where the last bit is decided by the noise alone. Tests: ``tests/audit/test_noise_checks.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from graphveil.audit.central.conformance import Failure, additions
from graphveil.audit.central.replay import Event
from graphveil.privacy.noise import Array, Noise
from graphveil.statistics.lower_bounds import CONFIDENCE, LowerBound, epsilon_lower_bound

Sampler = Callable[[float, int], Array]  # a clean value and a number of draws -> released values

SIX_SIGMA = 6.0


def last_bit(values: Array) -> NDArray[np.int64]:
    """The exponent e of the lowest set bit: values are odd multiples of 2^e."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = whole & -whole
    places: NDArray[np.int64] = np.where(whole > 0, np.log2(np.maximum(lowest, 1)).astype(np.int64) + exponent - 53, 0)
    return places


def last_digits_bound(
    release: Sampler, delta: float, value: float = 1.0, samples: int = 400_000, confidence: float = CONFIDENCE
) -> LowerBound:
    """What the last set bits alone reveal about whether the clean value was 0 or ``value``."""
    scores = [-last_bit(release(clean, samples)).astype(np.float64) for clean in (0.0, value)]
    return epsilon_lower_bound(scores[0], scores[1], delta, confidence)


def naive_gaussian(sigma: float, seed: int) -> Sampler:
    """Gaussian noise added the ordinary way: what this library does not do."""
    rng = np.random.default_rng(seed)
    return lambda clean, samples: clean + sigma * rng.standard_normal(samples)


def grid_gaussian(sigma: float, seed: int) -> Sampler:
    """Gaussian noise as this library adds it."""
    noise = Noise(seed)
    return lambda clean, samples: noise.add_gaussian(np.full(samples, clean), sigma)


def correlations(events: list[Event]) -> Iterable[Failure]:
    """Noise is independent across releases, across steps and along every release: six standard errors per correlation."""
    before: list[tuple[str, Array]] = []
    for event, added in additions(events):
        name, residual = event.name, added.residual(event.clean, event.released)
        if len(residual) < 32:
            continue
        pairs = [("the numbers before it", residual[:-1], residual[1:])]
        pairs += [(f"the noise of {other}", *_common(past, residual)) for other, past in before[-3:]]
        for what, first, second in pairs:
            if abs(_correlation(first, second)) > SIX_SIGMA / math.sqrt(len(first)):
                yield Failure("noise", name, f"it depends on {what}: correlation {_correlation(first, second):.3g}")
        before.append((name, residual))


def _common(first: Array, second: Array) -> tuple[Array, Array]:
    size = min(len(first), len(second))
    return first[:size], second[:size]


def _correlation(first: Array, second: Array) -> float:
    scale = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / scale if scale > 0 else 0.0
