"""The released labels of one's contacts, counted, with Laplace noise on every count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Unit, contact_lists
from graphveil.exchange.randomizers.laplace import AddsLaplace
from graphveil.privacy.noise import Array, grid


@dataclass(frozen=True)
class LabelHistogram(AddsLaplace):
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
    sizes: ClassVar = {"bins": ("the number of bins", 2)}
    bins: int
    lengths: str = "public"

    def __post_init__(self) -> None:
        super().__post_init__()
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
        lists = contact_lists(records)[0].within(len(bin_of))
        cells = lists.owners * self.bins + bin_of[lists.targets]
        return np.bincount(cells, minlength=len(lists) * self.bins).reshape(len(lists), self.bins).astype(np.float64)

    def clean(self, records: Any, broadcast: Any) -> tuple[Array, bool]:
        return self.counts(records, broadcast), contact_lists(records)[1]
