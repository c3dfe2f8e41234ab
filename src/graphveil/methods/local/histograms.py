"""What the server makes of noisy histograms: degrees it was not told, class likelihoods, columns for the heads.

All of it reads reports only. Tests: ``tests/methods/test_local.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from graphveil.methods.common.denoise import HistogramFit, fit_histograms
from graphveil.privacy.noise import Array


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """One round of histograms: a row of noisy counts for every vertex, and the variance of the noise on each count."""

    counts: Array
    noise: float

    def fit(self, degrees: Array, likelihoods: Array, start: Array, dispersion: float) -> HistogramFit:
        """Expectation maximisation for P(bin | class)."""
        return fit_histograms(self.counts, degrees, self.noise, likelihoods, start, dispersion=dispersion)

    def standard(self, degrees: Array) -> Array:
        """Counts about their mean, over the standard deviation of a count in a list of that length."""
        return np.asarray((self.counts - self.counts.mean(axis=0)) / np.sqrt(degrees[:, None] + self.noise))

    @property
    def sums(self) -> Array:
        return np.asarray(self.counts.sum(axis=1))


def noisy_degrees(rounds: Sequence[NoisyCounts]) -> Array:
    """The lengths of the lists from the sums of the noisy counts alone.

    Every sum is the length plus noise of known variance; sums of several rounds are weighted by precision, the result is
    drawn towards the mean by tau^2/(tau^2 + noise), tau^2 = variance of the sums less the noise, and kept at 0 or above.
    """
    precision = np.array([1 / (one.noise * one.counts.shape[1]) for one in rounds])
    found = sum(share * one.sums for share, one in zip(precision / precision.sum(), rounds, strict=True))
    spread = max(float(found.var()) - 1 / float(precision.sum()), 0.0)
    kept = spread / (spread + 1 / float(precision.sum()))
    return np.asarray(np.maximum(found.mean() + kept * (found - found.mean()), 0.0))
