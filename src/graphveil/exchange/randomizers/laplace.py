"""Laplace noise on every attribute of a row (the baseline Lap-GNN)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.exchange.randomizers.base import Randomizer, Unit, check_budget, check_width, table
from graphveil.privacy.noise import GRID_BITS, Array, Noise, grid


@dataclass(frozen=True)
class LaplaceRows(Randomizer):
    """row + Laplace(b) per attribute, b = sensitivity/epsilon.

    Two rows differ in L1 by at most d (upper - lower), or by 2 ``norm`` if rows are first scaled to an L1 norm of at most
    ``norm``. Rounding to the public grid adds one cell per attribute, which b covers. Lemma: pure epsilon, attained (up to
    that cell) by rows at opposite corners. Tests: ``tests/exchange/test_randomizers.py``.
    """

    kind: ClassVar[str] = "laplace-rows"
    unit: ClassVar[Unit] = Unit.VERTEX
    budget: float
    width: int
    lower: float = 0.0
    upper: float = 1.0
    norm: float | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_width("the number of attributes", self.width)

    @property
    def sensitivity(self) -> float:
        return self.width * (self.upper - self.lower) if self.norm is None else 2 * self.norm

    @property
    def scale(self) -> float:
        return self.sensitivity / (self.budget - self.width * 2.0**-GRID_BITS) * (1 + 1e-15)

    @property
    def epsilon(self) -> float:
        return (self.sensitivity + self.width * grid(self.scale)) / self.scale

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Array:
        rows, one = table(records, self.width)
        clean = self._bounded(rows.toarray() if sp.issparse(rows) else rows)
        reports = rng.add(clean, rng.laplace(self.scale, clean.shape), self.scale)
        return reports[0] if one else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        clean = self._bounded(np.asarray(record, dtype=np.float64)[None, :])[0]
        cell = grid(self.scale)
        distance = np.abs(np.asarray(report) - np.rint(clean / cell) * cell).sum()
        return -float(distance) / self.scale - self.width * math.log(2 * self.scale)

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        return np.asarray(reports)

    def variance(self, record: Any = None) -> Array:
        return np.full(self.width, 2 * self.scale**2)

    def _bounded(self, rows: Array) -> Array:
        if self.norm is None:
            return np.clip(rows, self.lower, self.upper)
        size = np.abs(rows).sum(axis=1, keepdims=True)
        return rows * np.minimum(1.0, self.norm * (1 - 2.0**-40) / np.maximum(size, 1e-300))
