"""The cap mechanism on the sphere, after a public projection: one unit vector for a whole row of features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.base import Randomizer, Unit, table
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.response import coin_above

LEAST_CAP = 1e-4  # a public floor on the measure of the cap, so that candidates are found; binds only above epsilon 16
PUBLIC_PROJECTION = 0xD1EC


@dataclass(frozen=True)
class Direction(Randomizer):
    """x = unit(P row) is released as v on the unit sphere, e^epsilon times as likely in the cap <v, x> >= gamma as outside.

    Candidates are drawn from the uniform law, which does not see the record, and one is kept if it lies in the cap or else
    with probability e^-epsilon. Lemma: the density is hi in the cap and lo = hi e^-epsilon outside, with the same hi for
    every x (the sphere looks alike from everywhere; for normals on a grid of 2^-40, up to about that), so the ratio is
    e^epsilon; the digits of v come from a draw that was made before x was looked at. An empty row is answered by a uniform
    direction, lo <= 1 <= hi. Unbiased: E[v] = mean x; gamma maximises ``mean``. ``projected=None`` keeps the d attributes;
    else P is a public Gaussian matrix to so many dimensions, drawn from ``projection_seed``. Tests: ``test_direction.py``.
    """

    kind: ClassVar[str] = "direction"
    unit: ClassVar[Unit] = Unit.VERTEX
    sizes: ClassVar = {
        "width": ("the number of attributes", 1),
        "dimension": ("the dimension of the sphere's space", 2),
    }
    width: int
    projected: int | None = 64
    projection_seed: int = 0

    @property
    def dimension(self) -> int:
        return self.width if self.projected is None else self.projected

    @property
    def report_width(self) -> int:
        return self.dimension

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        yield from super().check_report(reports, slots)
        owners, values = checks.filled(reports, self.dimension)
        sizes = np.sqrt(np.bincount(owners, values**2, minlength=checks.count(reports)))
        yield ~(np.abs(sizes - 1) <= 1e-9), "a vector that is not of length 1"

    @cached_property
    def reject(self) -> float:
        """The probability with which a candidate outside the cap is kept."""
        return coin_above(math.exp(-self.budget))

    @property
    def epsilon(self) -> float:
        return -math.log(self.reject)

    @cached_property
    def cap(self) -> float:
        """The uniform measure s of the cap, chosen for the largest mean."""
        from scipy.optimize import (
            minimize_scalar,
        )  # slow to import, and no other randomizer needs it

        best = minimize_scalar(lambda log_s: -self._mean(math.exp(log_s)), bounds=(math.log(LEAST_CAP), math.log(0.5)))
        return math.exp(best.x)

    @cached_property
    def threshold(self) -> float:
        """gamma: the cap is <v, x> >= gamma."""
        return self._threshold(self.cap)

    @cached_property
    def mean(self) -> float:
        """The factor m in E[v] = m x."""
        return self._mean(self.cap)

    @cached_property
    def projection(self) -> Array | None:
        """The public matrix, width x projected."""
        if self.projected is None:
            return None
        coins = np.random.default_rng([PUBLIC_PROJECTION, self.projection_seed])
        return coins.standard_normal((self.width, self.projected)) / math.sqrt(self.projected)

    def directions(self, records: Any) -> Array:
        """The unit vectors that are randomised; empty rows stay zero."""
        from graphveil.graph.unit import unit_array

        rows, _ = table(records, self.width)
        if self.projection is not None:
            rows = rows @ self.projection
        return unit_array(rows.toarray() if sp.issparse(rows) else rows)

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Array:
        """Unit vectors, one row each."""
        x = self.directions(records)
        reports = np.empty_like(x)
        empty = np.asarray(~x.any(axis=1))
        waiting = np.arange(len(x))
        while len(waiting):
            candidates = rng.gaussian(1.0, (len(waiting), self.dimension))
            candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
            inside = np.einsum("ij,ij->i", candidates, x[waiting]) >= self.threshold
            kept = inside | rng.coins(self.reject, len(waiting)) | empty[waiting]
            reports[waiting[kept]] = candidates[kept]
            waiting = waiting[~kept]
        return reports[0] if np.ndim(records) == 1 else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        """Relative to the uniform law on the sphere."""
        x = self.directions(record)[0]
        if not x.any():
            return 0.0
        low = -math.log(self.cap / self.reject + 1 - self.cap)
        return low - (math.log(self.reject) if float(np.dot(report, x)) >= self.threshold else 0.0)

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        """Unbiased for the unit vectors of :meth:`directions`."""
        return np.asarray(reports) / self.mean

    def variance(self, record: Any = None) -> float:
        """Mean squared error of the whole estimated vector: 1/m^2 - 1 (for a row that is not empty)."""
        return 1 / self.mean**2 - 1

    def _threshold(self, measure: float) -> float:
        from scipy.special import betaincinv

        shape = (self.dimension - 1) / 2
        return 1 - 2 * float(betaincinv(shape, shape, measure))

    def _mean(self, measure: float) -> float:
        """(E[u; u >= gamma]) (hi - lo), u = <v, x> with density proportional to (1 - u^2)^((p-3)/2)."""
        from scipy.special import betaln

        p, gamma = self.dimension, self._threshold(measure)
        above = math.exp((p - 1) / 2 * math.log1p(-(gamma**2)) - betaln(0.5, (p - 1) / 2)) / (p - 1)
        low = 1 / (measure / self.reject + 1 - measure)
        return above * low * (1 / self.reject - 1)
