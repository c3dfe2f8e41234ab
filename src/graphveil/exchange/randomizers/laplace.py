"""Laplace noise on every attribute, and the noise itself as histograms add it, too."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.exchange.randomizers.base import Randomizer, RowRandomizer, table
from graphveil.privacy.noise import GRID_BITS, Array, Noise, grid


class AddsLaplace(Randomizer):
    """clean + Laplace(``scale``) per number, on the public grid."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Of the noise on each number."""

    @abstractmethod
    def clean(self, records: Any, broadcast: Any) -> tuple[Array, bool]:
        """The numbers that noise is added to, one row per record, and whether there is one record only."""

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Array:
        clean, one = self.clean(records, broadcast)
        reports = rng.add(clean, rng.laplace(self.scale, clean.shape), self.scale)
        return reports[0] if one else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        clean, cell = self.clean(np.asarray(record), broadcast)[0][0], grid(self.scale)
        distance = np.abs(np.asarray(report) - np.rint(clean / cell) * cell).sum()
        return -float(distance) / self.scale - len(clean) * math.log(2 * self.scale)

    def variance(self, record: Any = None) -> float:
        return 2 * self.scale**2


@dataclass(frozen=True)
class LaplaceRows(AddsLaplace, RowRandomizer):
    """row + Laplace(b) per attribute, b = sensitivity/epsilon.

    Two rows differ in L1 by at most d (upper - lower), or by 2 ``norm`` if rows are first scaled to an L1 norm of at most
    ``norm``. Rounding to the public grid adds one cell per attribute, which b covers. Lemma: pure epsilon, attained (up to
    that cell) by rows at opposite corners. Tests: ``tests/exchange/test_randomizers.py``.
    """

    kind: ClassVar[str] = "laplace-rows"
    norm: float | None = None

    @property
    def sensitivity(self) -> float:
        return self.width * (self.upper - self.lower) if self.norm is None else 2 * self.norm

    @property
    def scale(self) -> float:
        return self.sensitivity / (self.budget - self.width * 2.0**-GRID_BITS) * (1 + 1e-15)

    @property
    def epsilon(self) -> float:
        return (self.sensitivity + self.width * grid(self.scale)) / self.scale

    def clean(self, records: Any, broadcast: Any) -> tuple[Array, bool]:
        rows, one = table(records, self.width)
        rows = rows.toarray() if sp.issparse(rows) else rows
        if self.norm is None:
            return np.clip(rows, self.lower, self.upper), one
        size = np.abs(rows).sum(axis=1, keepdims=True)
        return rows * np.minimum(1.0, self.norm * (1 - 2.0**-40) / np.maximum(size, 1e-300)), one
