"""The multi-bit mechanism (Sajadmanesh and Gatica-Perez 2021): one bit for each of m of d attributes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.exchange.randomizers.base import RowRandomizer, SampledRows
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.response import BitFlips


@dataclass(frozen=True)
class MultiBit(SampledRows):
    """m of d attributes, chosen by coins that do not see the record; each becomes +1 or -1, the others are 0.

        P(+1 | x) = q + (1 - 2q) (x - lower)/(upper - lower),      q = 1/(e^(epsilon/m) + 1).

    Lemma: given the chosen set the report is a product of m coins with ratio at most (1-q)/q each, so epsilon in all; the
    set itself carries nothing. Attained by two records at opposite ends of the range. Values outside the public range
    are clipped to it. Default m = max(1, min(d, floor(epsilon/2.18))). Test: ``test_multi_bit_attains_epsilon...``.
    """

    kind: ClassVar[str] = "multi-bit"
    sizes: ClassVar = {**RowRandomizer.sizes, "m": ("the number of sampled attributes", 1)}
    sampled: int | None = None

    @property
    def m(self) -> int:
        if self.sampled is not None:
            return min(self.sampled, self.width)
        return max(1, min(self.width, math.floor(self.budget / 2.18)))

    @property
    def q(self) -> float:
        """The probability of the unlikely bit at an end of the range."""
        return BitFlips(self.budget / self.m).flip

    @property
    def epsilon(self) -> float:
        return self.m * math.log((1 - self.q) / self.q)

    def drawn(self, values: Array, rng: Noise) -> np.ndarray:
        up = rng.uniform(values.size).reshape(values.shape) < self.up(values)
        return np.where(up, 1, -1).astype(np.int8)

    def possible(self, values: Array) -> np.ndarray:
        return np.asarray(np.abs(values) == 1)

    def log_masses(self, values: Array, reports: Array) -> Array:
        up = self.up(values)
        return np.log(np.where(reports > 0, up, 1 - up))

    def up(self, values: Array) -> Array:
        """P(+1) of each."""
        share = (np.clip(values, self.lower, self.upper) - self.lower) / (self.upper - self.lower)
        return np.clip(self.q + (1 - 2 * self.q) * share, self.q, 1 - self.q)

    @property
    def scale(self) -> float:
        """The estimate is so many times the report, plus the middle of the range (LPGNN's rectifier)."""
        return self.width * (self.upper - self.lower) / (2 * self.m * (1 - 2 * self.q))

    def estimate(self, reports: Any, broadcast: Any = None) -> Any:
        """Unbiased rows, dense."""
        dense = reports.toarray() if sp.issparse(reports) else np.asarray(reports)
        return self.scale * dense.astype(np.float64) + self.middle

    def variance(self, record: Any = None) -> Array:
        """Of each coordinate of the estimate: (d/m) (range/(2(1-2q)))^2 - (x - middle)^2."""
        x = np.clip(np.asarray(record, dtype=np.float64), self.lower, self.upper) - self.middle
        return self.width / self.m * (self.reach / (1 - 2 * self.q)) ** 2 - x**2
