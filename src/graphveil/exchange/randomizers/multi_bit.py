"""The multi-bit mechanism (Sajadmanesh and Gatica-Perez 2021): one bit for each of m of d attributes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.exchange.randomizers.base import (
    Randomizer,
    Unit,
    check_budget,
    check_width,
    choose_columns,
    entries,
    sparse_rows,
    table,
)
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.response import BitFlips


@dataclass(frozen=True)
class MultiBit(Randomizer):
    """m of d attributes, chosen by coins that do not see the record; each becomes +1 or -1, the others are 0.

        P(+1 | x) = q + (1 - 2q) (x - lower)/(upper - lower),      q = 1/(e^(epsilon/m) + 1).

    Lemma: given the chosen set the report is a product of m coins with ratio at most (1-q)/q each, so epsilon in all; the
    set itself carries nothing. Attained by two records at opposite ends of the range. Values outside the public range
    are clipped to it. Default m = max(1, min(d, floor(epsilon/2.18))). Test: ``test_multi_bit_attains_epsilon...``.
    """

    kind: ClassVar[str] = "multi-bit"
    unit: ClassVar[Unit] = Unit.VERTEX
    budget: float
    width: int
    lower: float = 0.0
    upper: float = 1.0
    sampled: int | None = None

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_width("the number of attributes", self.width)
        check_width("the number of sampled attributes", self.m)

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

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """int8 rows with entries -1, 0, 1: an array for one record, a sparse matrix for many."""
        rows, one = table(records, self.width)
        columns = choose_columns(rows.shape[0], self.width, self.m, rng)
        up = rng.uniform(columns.size).reshape(columns.shape) < self._up(entries(rows, columns))
        report = sparse_rows(columns, np.where(up, 1, -1).astype(np.int8), self.width)
        return report.toarray()[0] if one else report

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        report = np.asarray(report)
        chosen = np.flatnonzero(report)
        up = self._up(np.asarray(record, dtype=np.float64)[chosen])
        bits = np.log(np.where(report[chosen] > 0, up, 1 - up))
        return float(bits.sum()) - math.log(math.comb(self.width, self.m))

    def estimate(self, reports: Any, broadcast: Any = None) -> Any:
        """Unbiased rows; sparse reports give ``(sparse part, offset)`` added up, i.e. a dense array."""
        scale = self.width * (self.upper - self.lower) / (2 * self.m * (1 - 2 * self.q))
        dense = reports.toarray() if sp.issparse(reports) else np.asarray(reports)
        return scale * dense.astype(np.float64) + (self.lower + self.upper) / 2

    def variance(self, record: Any = None) -> Array:
        """Of each coordinate of the estimate: (d/m) (range/(2(1-2q)))^2 - (x - middle)^2."""
        half = (self.upper - self.lower) / 2
        x = np.clip(np.asarray(record, dtype=np.float64), self.lower, self.upper) - (self.lower + self.upper) / 2
        return self.width / self.m * (half / (1 - 2 * self.q)) ** 2 - x**2

    def _up(self, values: Array) -> Array:
        share = (np.clip(values, self.lower, self.upper) - self.lower) / (self.upper - self.lower)
        return np.clip(self.q + (1 - 2 * self.q) * share, self.q, 1 - self.q)
