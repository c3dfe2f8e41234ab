"""The released labels of one's contacts, counted, with Laplace noise on every count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit, check_budget, check_width, is_one_list
from graphveil.privacy.noise import Array, Noise, grid


@dataclass(frozen=True)
class LabelHistogram(Randomizer):
    """Counts of the ``bins`` values in the broadcast over one's own list, plus Laplace(2/epsilon) each.

    The broadcast gives every slot a bin 0..bins-1 (released label, or one bin for "none"); it is public. Lemma: swapping one
    contact moves two counts by 1, L1 sensitivity 2, so the list costs epsilon; counts are whole numbers and lie on the
    public grid, so rounding moves nothing. Adding or dropping a contact moves one count: epsilon/2. An undirected edge stands
    in two lists; rewiring it costs 2 epsilon in all (:attr:`edge_units`), if the lengths of the lists are public.

    With ``lengths="hidden"`` nobody learns a length but through the sum of the noisy counts, so an edge may also come or go:
    that moves one count by 1 in each of two lists, epsilon/2 + epsilon/2 = epsilon in all, and rewiring is one edge less and
    one more. The noise is the same; what changes is what may be compared, and what the server may use.
    Tests: ``tests/exchange/test_edge_randomizers.py``, ``tests/methods/test_local.py``.
    """

    kind: ClassVar[str] = "label-histogram"
    unit: ClassVar[Unit] = Unit.LIST
    budget: float
    bins: int
    lengths: str = "public"

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_width("the number of bins", self.bins, 2)
        if self.lengths not in ("public", "hidden"):
            raise InputError(f"the lengths of contact lists are public or hidden, got {self.lengths!r}")

    @property
    def scale(self) -> float:
        return 2 / self.budget

    @property
    def epsilon(self) -> float:
        return 2 / self.scale if grid(self.scale) <= 1 else (2 + self.bins * grid(self.scale)) / self.scale

    @property
    def tells_lengths(self) -> bool:
        return self.lengths == "public"

    @property
    def edge_change(self) -> str:
        return "added or removed" if self.lengths == "hidden" else super().edge_change

    @property
    def edge_units(self) -> float:
        """What one undirected edge costs over all lists it touches.

        Public lengths: rewiring it, epsilon + epsilon/2 + epsilon/2. Hidden lengths: adding or removing it, epsilon/2 twice.
        """
        return 1.0 if self.lengths == "hidden" else 2.0

    def counts(self, records: Any, broadcast: Any) -> Array:
        """The clean counts, one row per list."""
        bin_of = np.asarray(broadcast, dtype=np.int64)
        if bin_of.size and (bin_of.min() < 0 or bin_of.max() >= self.bins):
            raise InputError(f"the broadcast must give every slot a bin in 0..{self.bins - 1}")
        lists = Contacts.of([records] if is_one_list(records) else records)
        if lists.targets.size and (lists.targets.min() < 0 or lists.targets.max() >= len(bin_of)):
            raise InputError(f"a contact list names a slot outside 0..{len(bin_of) - 1}")
        cells = lists.owners * self.bins + bin_of[lists.targets]
        return np.bincount(cells, minlength=len(lists) * self.bins).reshape(len(lists), self.bins).astype(np.float64)

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Array:
        clean = self.counts(records, broadcast)
        reports = rng.add(clean, rng.laplace(self.scale, clean.shape), self.scale)
        return reports[0] if is_one_list(records) else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        distance = np.abs(np.asarray(report) - self.counts(np.asarray(record, dtype=np.int64), broadcast)[0]).sum()
        return -float(distance) / self.scale - self.bins * math.log(2 * self.scale)

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        return np.asarray(reports)

    def variance(self, record: Any = None) -> Array:
        return np.full(self.bins, 2 * self.scale**2)
