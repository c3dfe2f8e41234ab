"""Means over seeds and their uncertainty; epsilons read off a curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from graphveil.experiments.summary import Estimate

Values = Mapping[float, Sequence[float]]  # per epsilon a list over seeds
ENOUGH_SEEDS = 5  # below, a bootstrap of the mean says little: the range is shown instead


def interval(values: Sequence[float], bootstrap: bool) -> tuple[float, float]:
    """The bootstrap interval of the mean, or the smallest and the largest value."""
    found = Estimate.of(values)
    if not bootstrap or found.low is None or found.high is None:
        return min(values), max(values)
    return found.low, found.high


def enough(values: Sequence[Sequence[float]]) -> bool:
    """Whether every one of these means has seeds enough for a bootstrap."""
    counts = [len(one) for one in values if len(one)]
    return bool(counts) and min(counts) >= ENOUGH_SEEDS


def band_words(values: Sequence[Sequence[float]]) -> str:
    """What the bands of a picture are."""
    counts = sorted({len(one) for one in values if len(one)})
    if not counts or counts == [1]:
        return "one seed each: no bands"
    seeds = f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
    what = "95 % bootstrap interval of the mean" if enough(values) else "smallest and largest"
    return f"bands: {what} over {seeds}"


def spread_words(values: Sequence[float]) -> str:
    """A mean with its standard deviation, in percent."""
    mean = 100 * float(np.mean(values))
    return f"{mean:.1f} ± {100 * float(np.std(values, ddof=1)):.1f}" if len(values) > 1 else f"{mean:.1f}"


def epsilon_needed(curve: Mapping[float, float], target: float) -> float | None:
    """The least epsilon at which a curve of means reaches ``target``, between two points along log epsilon.

    The smallest epsilon measured if it is reached there already; None if it is not reached at any.
    """
    points = sorted(curve.items())
    for (before, low), (after, high) in pairwise(points):
        if low >= target:
            return before
        if high >= target:
            part = (target - low) / (high - low)
            return math.exp(math.log(before) + part * math.log(after / before))
    return points[-1][0] if points and points[-1][1] >= target else None
