"""Randomised response on every bit of a contact list."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit, contact_lists
from graphveil.privacy.noise import Noise
from graphveil.privacy.response import BitFlips


@dataclass(frozen=True)
class EdgeListResponse(Randomizer):
    """Each of the n slots is in the list or not; that bit flips with probability 1/(e^epsilon + 1).

    Lemma: one bit costs epsilon; a swap is two bits, 2 epsilon (gap G6 has it the other way round). If both ends of an
    undirected edge report, the edge costs 2 epsilon: let each pair be reported by one owner, or halve the budget. Flips
    are drawn by their gaps: the cost is the number of flips. The length of the list is protected, too. A report is the set of
    the ones, sorted: it says nothing but the bits. Tests: ``tests/exchange/test_edge_randomizers.py``, ``test_whole_lists.py``.
    """

    kind: ClassVar[str] = "edge-list-response"
    unit: ClassVar[Unit] = Unit.EDGE
    sizes: ClassVar = {"slots": ("the number of slots", 1)}
    swap_units: ClassVar[float] = 2.0  # bits
    edge_units = 2.0  # both ends report it; rewiring moves two bits in either end's list and costs twice as much
    edge_change = "added or removed"
    slots: int

    @cached_property
    def flips(self) -> BitFlips:
        return BitFlips(self.budget)

    @property
    def flip(self) -> float:
        return self.flips.flip

    @property
    def epsilon(self) -> float:
        return self.flips.epsilon

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        yield from checks.sorted_lists(reports, min(slots, self.slots), twice=False)

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """Noisy lists, sorted."""
        lists, one = contact_lists(records)
        joined = np.unique(lists.owners * self.slots + lists.within(self.slots).targets)
        noisy = self.flips.draw(joined, len(lists) * self.slots, rng)
        reports = Contacts.of_pairs(noisy // self.slots, noisy % self.slots, len(lists))
        return reports[0] if one else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        flipped = len(np.setxor1d(np.asarray(record, dtype=np.int64), np.asarray(report, dtype=np.int64)))
        return self.flips.log_density(flipped, self.slots)

    def estimate(self, reports: Any, broadcast: Any = None) -> np.ndarray:
        """Unbiased bits of one list: (bit - flip)/(1 - 2 flip)."""
        bits = np.zeros(self.slots)
        bits[np.asarray(reports, dtype=np.int64)] = 1.0
        return (bits - self.flip) / (1 - 2 * self.flip)

    def variance(self, record: Any = None) -> float:
        return self.flip * (1 - self.flip) / (1 - 2 * self.flip) ** 2
