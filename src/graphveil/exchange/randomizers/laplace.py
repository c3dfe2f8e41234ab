"""Laplace noise on every attribute, or on counts of released labels over one's contacts."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.base import Randomizer, RowRandomizer, Unit, contact_lists, table
from graphveil.privacy.mechanisms import ADDED
from graphveil.privacy.noise import Array, Noise, grid, laplace_overhead
from graphveil.privacy.promise import Relation, parse_name


class AddsLaplace(Randomizer):
    """clean + Laplace(``scale``) per number, on the public grid."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Of the noise on each number."""

    @abstractmethod
    def clean(self, records: Any, broadcast: Any) -> tuple[Array, bool]:
        """The numbers that noise is added to, one row per record, and whether there is one record only."""

    @abstractmethod
    def span(self, slots: int) -> tuple[float, float]:
        """The least and the largest clean number."""

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        yield from super().check_report(reports, slots)
        (lowest, highest), far = self.span(slots), checks.LAPLACE_REACH * self.scale
        yield from checks.within(reports, self.report_width, lowest - far, highest + far, grid(self.scale))

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
    ``norm``. Rounding to the public grid adds one cell per attribute; b covers that and the sampler's error. Lemma: pure
    epsilon, attained (up to that cell) by rows at opposite corners. Tests: ``tests/exchange/test_randomizers.py``.
    """

    kind: ClassVar[str] = "laplace-rows"
    norm: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.norm is not None and not (isinstance(self.norm, (int, float)) and 0 < self.norm < math.inf):
            raise InputError(f"the largest L1 norm of a row must be positive and finite, got {self.norm!r}")

    @property
    def sensitivity(self) -> float:
        return self.width * (self.upper - self.lower) if self.norm is None else 2 * self.norm

    @property
    def scale(self) -> float:
        return self.sensitivity / (self.budget - laplace_overhead(self.width)) * (1 + 1e-15)

    @property
    def epsilon(self) -> float:
        return self.sensitivity / self.scale + laplace_overhead(self.width)

    def span(self, slots: int) -> tuple[float, float]:
        return (self.lower, self.upper) if self.norm is None else (-self.norm, self.norm)

    def clean(self, records: Any, broadcast: Any) -> tuple[Array, bool]:
        rows, one = table(records, self.width)
        rows = rows.toarray() if sp.issparse(rows) else rows
        if self.norm is None:
            return np.clip(rows, self.lower, self.upper), one
        size = np.abs(rows).sum(axis=1, keepdims=True)
        return rows * np.minimum(1.0, self.norm * (1 - 2.0**-40) / np.maximum(size, 1e-300)), one


@dataclass(frozen=True)
class LabelHistogram(AddsLaplace):
    """Counts of the ``bins`` values in the broadcast over one's own list, plus Laplace(2/epsilon) (or 1/epsilon) each.

    The broadcast gives every slot a bin 0..bins-1 (released label, or one bin for "none"); it is public. Lemma: swapping one
    contact moves two counts by 1, L1 sensitivity 2, so the list costs epsilon (what the noise
    lacks of its ideal law included). Adding or dropping a contact moves one count: epsilon/2. An undirected edge stands
    in two lists; rewiring it costs 2 epsilon in all (:attr:`edge_units`), if the lengths of the lists are public.

    With ``lengths="hidden"`` nobody learns a length but through the sum of the noisy counts, so an edge may also come or go:
    that moves one count by 1 in each of two lists, epsilon/2 + epsilon/2 = epsilon in all, and rewiring is one edge less and
    one more. The noise is the same; what changes is what may be compared, and what the server may use.

    With ``relation="zero-out"`` the budget is for one entry that comes or goes, which moves one count by 1: Laplace(1/epsilon).
    Exchanging it costs 2 epsilon; an undirected edge that comes or goes moves one count in each of two lists, 2 epsilon in all,
    rewiring it 4 epsilon. Lengths must be hidden: a public one would show the entry.
    Tests: ``tests/exchange/test_edge_randomizers.py``, ``tests/methods/test_local.py``.
    """

    kind: ClassVar[str] = "label-histogram"
    unit: ClassVar[Unit] = Unit.LIST
    sizes: ClassVar = {"bins": ("the number of bins", 2)}
    bins: int
    lengths: str = "public"
    relation: str = field(default=Relation.REPLACE.value, metadata=ADDED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lengths not in ("public", "hidden"):
            raise InputError(f"the lengths of contact lists are public or hidden, got {self.lengths!r}")
        if parse_name(Relation, self.relation) is Relation.ZERO_OUT and self.tells_lengths:
            raise InputError(
                "a public length shows whether an entry is there: relation zero-out needs lengths 'hidden'"
            )

    @property
    def entry_relation(self) -> Relation:
        return Relation(self.relation)

    @property
    def moved(self) -> float:
        """L1 sensitivity: how far one entry moves the counts."""
        return 1.0 if self.entry_relation is Relation.ZERO_OUT else 2.0

    @property
    def scale(self) -> float:
        return self.moved / (self.budget - laplace_overhead(self.bins)) * (1 + 1e-15)

    @property
    def epsilon(self) -> float:
        return self.moved / self.scale + laplace_overhead(self.bins)

    @property
    def tells_lengths(self) -> bool:
        return self.lengths == "public"

    @property
    def edge_change(self) -> str:
        return "added or removed" if self.lengths == "hidden" else super().edge_change

    @property
    def edge_units(self) -> float:
        """What one undirected edge costs over all lists it touches.

        Public lengths: rewiring it, epsilon + epsilon/2 + epsilon/2. Hidden lengths: adding or removing it, in two lists
        epsilon/2 each; epsilon each where that is what the budget is for.
        """
        return 2.0 / self.moved if self.lengths == "hidden" else 2.0

    @property
    def report_width(self) -> int:
        return self.bins

    def span(self, slots: int) -> tuple[float, float]:
        return 0.0, float(slots)

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
