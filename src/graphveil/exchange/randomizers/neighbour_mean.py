"""The mean of one's contacts' released rows, with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit, contact_lists
from graphveil.graph.lists import on_grid
from graphveil.privacy.accounting.loss import gaussian_epsilon, gaussian_mu
from graphveil.privacy.noise import Array, Noise, gaussian_overhead, grid


@dataclass(frozen=True)
class NeighbourMean(Randomizer):
    """mean over the list of released rows of norm at most 1, plus N(0, sigma^2), sigma = (2/degree)/mu(epsilon, delta).

    Lemma: swapping one of ``degree`` contacts moves the mean by at most 2/degree, attained by opposite rows, so the list is
    mu-GDP: delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2), exactly. Rows are truncated to the grid
    2^-24, so that sums do not depend on an order; rounding of the mean is covered. The degree is public; somebody without
    contacts reports noise of degree 1. Test: ``test_edge_randomizers.py``.
    """

    kind: ClassVar[str] = "neighbour-mean"
    unit: ClassVar[Unit] = Unit.LIST
    sizes: ClassVar = {"width": ("the width of the rows", 1)}
    tells_lengths = True
    width: int
    delta: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < 1:
            raise InputError(f"delta must lie strictly between 0 and 1, got {self.delta}")

    @cached_property
    def mu(self) -> float:
        return gaussian_mu(self.budget, self.delta)

    @property
    def epsilon(self) -> float:
        """At ``delta``; there is no bound at delta 0."""
        return gaussian_epsilon(self.mu, self.delta)

    def sigma(self, degree: int) -> float:
        return 2 / max(int(degree), 1) / (self.mu - gaussian_overhead(self.width)) * (1 + 1e-12)

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        """The grid of the longest list, which those of shorter ones are part of."""
        yield from super().check_report(reports, slots)
        far, cell = 1 + checks.GAUSSIAN_REACH * self.sigma(1), grid(self.sigma(slots))
        yield from checks.within(reports, self.width, -far, far, cell)

    def means(self, lists: Contacts, broadcast: Any) -> Array:
        rows = np.asarray(broadcast, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise InputError(f"the broadcast must give every slot a row of {self.width} numbers")
        rows = on_grid(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0))  # so that sums are exact
        sums = lists.within(len(rows)).matrix(len(rows)) @ rows
        return np.asarray(sums / np.maximum(lists.degrees, 1)[:, None])

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Array:
        lists, one = contact_lists(records)
        clean = self.means(lists, broadcast)
        reports = np.empty_like(clean)
        for degree in np.unique(lists.degrees):  # public
            here, sigma = lists.degrees == degree, self.sigma(degree)
            reports[here] = rng.add(clean[here], rng.gaussian(sigma, clean[here].shape), sigma)
        return reports[0] if one else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        lists = Contacts.of([record])
        sigma = self.sigma(lists.degrees[0])
        cell = grid(sigma)
        centre = np.rint(self.means(lists, broadcast)[0] / cell) * cell
        squared = float(np.square(np.asarray(report) - centre).sum())
        return -squared / (2 * sigma**2) - self.width / 2 * math.log(2 * math.pi * sigma**2)

    def variance(self, record: Any = None) -> float:
        return self.sigma(len(record)) ** 2
