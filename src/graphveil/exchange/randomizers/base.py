"""The contract of a randomizer, and the few helpers all of them share.

A randomizer is inert data: public numbers only. It is epsilon-local for its *unit* if for any two records a, b that differ
in one unit and every report r

    log P(r | a) - log P(r | b) <= epsilon.

Probabilities are rounded to the grid of coins towards the safe side (``privacy/response.py``), so the inequality holds for the
numbers that are really drawn, not only for the formula. Tests: ``tests/exchange/test_randomizers.py``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers import checks
from graphveil.privacy.accounting.loss import Loss, Pure, Stated, Unbounded
from graphveil.privacy.facts import EDGE
from graphveil.privacy.local import LIST_ENTRY, VERTEX
from graphveil.privacy.mechanisms import Mechanism
from graphveil.privacy.noise import LARGEST_LOCAL_EPSILON, Array, Noise
from graphveil.privacy.promise import Relation


class Unit(StrEnum):
    """What two neighbouring records may differ in."""

    VERTEX = "vertex"  # everything this randomizer reads of one vertex: all its features, or its label
    LIST = "list"  # one entry of one contact list: exchanged, or (`Randomizer.entry_relation`) there or not
    EDGE = "edge"  # one edge, wherever it is reported


@dataclass(frozen=True)
class Randomizer(Mechanism):
    """One round of one client: ``randomize`` its record, given the public ``broadcast`` of earlier rounds.

    ``budget`` is the epsilon it may cost; ``sizes`` has by name the whole numbers it is made of: what they are, and the least.
    """

    unit: ClassVar[Unit]
    sizes: ClassVar[Mapping[str, tuple[str, int]]] = {}
    swap_units: ClassVar[float] = (
        1.0  # how many units the change of one entry of one contact list (`entry_relation`) is
    )
    budget: float

    def __post_init__(self) -> None:
        if not (isinstance(self.budget, (int, float)) and 0 < self.budget <= LARGEST_LOCAL_EPSILON):
            raise InputError(
                f"epsilon must lie in (0, {LARGEST_LOCAL_EPSILON:g}], got {self.budget}; a part without protection is declared "
                "'raw'"
            )
        for name, (what, least) in self.sizes.items():
            value = getattr(self, name)
            if not (isinstance(value, (int, np.integer)) and value >= least):
                raise InputError(f"{what} must be a whole number of at least {least}, got {value}")

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The exact worst log-ratio for one unit; infinite if there is no bound."""

    @property
    def delta(self) -> float:
        return 0.0

    @property
    def tells_lengths(self) -> bool:
        """Whether a report comes with the (public) length of the list it is about."""
        return False

    @property
    def entry_relation(self) -> Relation:
        """What may happen to an entry of a contact list: it is exchanged for another, or (zero-out) comes or goes."""
        return Relation.REPLACE

    @property
    def edge_units(self) -> float:
        """How many units one undirected edge changes over all the reports it moves; infinite if that has no bound."""
        return math.inf

    @property
    def edge_change(self) -> str:
        """What happens to the edge that :attr:`edge_units` is for."""
        return "rewired"

    @property
    def changes(self) -> dict[str, float]:
        """Units changed by each change that a local certificate accounts for."""
        if self.unit is Unit.VERTEX:
            return {VERTEX: 1.0}
        return {LIST_ENTRY: self.swap_units, EDGE: self.edge_units}

    @property
    def cost(self) -> float:
        """What counts against the budget of its part: one vertex, or the change of one entry of a contact list."""
        return self.epsilon if self.unit is Unit.VERTEX else self.swap_units * self.epsilon

    def loss(self, sensitivity: float) -> Loss:
        """What a change of so many units costs."""
        if sensitivity == 0:
            return Pure(0.0)
        epsilon = sensitivity * self.epsilon
        if not math.isfinite(epsilon):
            return Unbounded()
        return Stated(epsilon, self.delta) if self.delta else Pure(epsilon)

    def words(self) -> str:
        shown = f"{self.epsilon:.6g}" if math.isfinite(self.epsilon) else "NO FINITE VALUE"
        unit = LIST_ENTRY if self.unit is Unit.LIST else self.unit  # never for the whole list
        return f"{self.kind}, epsilon {shown} per {unit}"

    def apply(self, value: Any, noise: Noise) -> Any:
        return self.randomize(value, None, noise)

    @property
    def report_width(self) -> int:
        """How many numbers a report has; 0 if it is a class or a list of contacts."""
        return int(getattr(self, "width", 0))

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        """Which of these reports, of people who take part in so many slots, this randomizer cannot have made, and why."""
        yield from checks.numbers(reports, self.report_width)

    def own(self, records: Any, ids: np.ndarray) -> Any:
        """The part of the records of the slots ``ids`` that this randomizer reports; a public rule. Default: all of it."""
        return records

    def outside(self, records: Any) -> int:
        """How many attributes miss the public range and are clipped; for the owner's eyes, never sent."""
        return 0

    @abstractmethod
    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """The report of one record, or the reports of many."""

    @abstractmethod
    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        """Log-probability (or log-density) of one report of one record; minus infinity where it cannot occur."""

    def estimate(self, reports: Any, broadcast: Any = None) -> Any:
        """What the reports say about the records, without bias; the reports themselves where noise was added to them."""
        return np.asarray(reports)

    def variance(self, record: Any = None) -> Any:
        """The exact variance of each number of the estimate for this record."""
        raise InputError(f"{type(self).__name__} has no unbiased estimate, hence no variance")

    def log_ratio(self, a: Any, b: Any, report: Any, broadcast: Any = None) -> float:
        """``log P(report | a) - log P(report | b)``; nan if neither record can produce the report."""
        left, right = self.log_density(a, report, broadcast), self.log_density(b, report, broadcast)
        return math.nan if left == right == -math.inf else left - right


@dataclass(frozen=True)
class RowRandomizer(Randomizer):
    """Of the ``width`` attributes of one vertex, each clipped to the public range ``lower`` to ``upper``."""

    unit: ClassVar[Unit] = Unit.VERTEX
    sizes: ClassVar[Mapping[str, tuple[str, int]]] = {"width": ("the number of attributes", 1)}
    width: int
    lower: float = 0.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = all(isinstance(end, (int, float)) for end in (self.lower, self.upper))
        if not (numbers and 0 < self.upper - self.lower < math.inf):
            raise InputError(f"the public range of attributes has two finite ends, got {self.lower!r}..{self.upper!r}")

    @property
    def middle(self) -> float:
        return (self.lower + self.upper) / 2

    @property
    def reach(self) -> float:
        """Half the length of the range."""
        return (self.upper - self.lower) / 2

    def outside(self, records: Any) -> int:
        values = records.data if sp.issparse(records) else records
        zeros = records.shape[0] * records.shape[1] - records.nnz if sp.issparse(records) else 0
        missed = int(np.count_nonzero((values < self.lower) | (values > self.upper)))
        return missed + (0 if self.lower <= 0 <= self.upper else zeros)


@dataclass(frozen=True)
class SampledRows(RowRandomizer):
    """m attributes, chosen by coins that do not see the record, are reported; the others are 0."""

    @property
    @abstractmethod
    def m(self) -> int:
        """How many are chosen."""

    @abstractmethod
    def drawn(self, values: Array, rng: Noise) -> np.ndarray:
        """Reports of chosen attributes; none is 0."""

    @abstractmethod
    def log_masses(self, values: Array, reports: Array) -> Array:
        """Log-probability of each of them."""

    def unchosen(self, rows: Any) -> Any:
        """What is sent at attributes that are not chosen."""
        return 0.0

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """An array for one record, a sparse matrix for many (dense if attributes that are not chosen are not 0)."""
        rows, one = table(records, self.width)
        columns = choose_columns(rows.shape[0], self.width, self.m, rng)
        noisy = self.drawn(entries(rows, columns), rng)
        rest = self.unchosen(rows)
        if isinstance(rest, np.ndarray):
            np.put_along_axis(rest, columns, noisy, axis=1)
            return rest[0] if one else rest
        starts = np.arange(len(columns) + 1) * self.m
        report = sp.csr_matrix((noisy.ravel(), columns.ravel(), starts), shape=rows.shape)
        return report.toarray()[0] if one else report

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        row, report = np.asarray(record, dtype=np.float64), np.asarray(report)
        chosen = np.flatnonzero(report != self.unchosen(row))
        if len(chosen) > self.m:
            return -math.inf
        return float(self.log_masses(row[chosen], report[chosen]).sum()) - math.log(math.comb(self.width, self.m))

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        """m numbers that are not 0, each one of the alphabet."""
        yield from super().check_report(reports, slots)
        owners, values = checks.filled(reports, self.width)
        yield checks.some(owners, ~self.possible(values), reports), "a number that is never drawn"
        yield checks.how_many(reports, self.width) != self.m, f"another number of attributes than {self.m}"

    @abstractmethod
    def possible(self, values: Array) -> np.ndarray:
        """Whether each of these numbers can be drawn."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """Many contact lists: list v is ``targets[starts[v]:starts[v + 1]]``, ids of slots."""

    starts: np.ndarray
    targets: np.ndarray

    @classmethod
    def of(cls, lists: Contacts | Sequence[Any] | np.ndarray) -> Contacts:
        """Many lists from a sequence of them."""
        if isinstance(lists, Contacts):
            return lists
        arrays = [whole_numbers(one, "a contact") for one in lists]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in arrays])]).astype(np.int64)
        return cls(starts, np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64))

    @classmethod
    def of_pairs(cls, owners: np.ndarray, targets: np.ndarray, lists: int) -> Contacts:
        """So many lists from pairs that are sorted by owner."""
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=lists))])
        return cls(starts.astype(np.int64), np.asarray(targets, dtype=np.int64))

    def take(self, numbers: np.ndarray) -> Contacts:
        """Some of the lists."""
        degrees = self.degrees[numbers]
        starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        return Contacts(
            starts, self.targets[np.repeat(self.starts[numbers] - starts[:-1], degrees) + np.arange(starts[-1])]
        )

    def sorted(self) -> Contacts:
        """The same lists, each in the order of the slots: what is left is how often a list names whom."""
        return Contacts(self.starts, self.targets[np.lexsort((self.targets, self.owners))])

    def where(self, kept: np.ndarray) -> Contacts:
        """The contacts that the mask ``kept`` keeps."""
        return Contacts.of_pairs(self.owners[kept], self.targets[kept], len(self))

    def within(self, slots: int) -> Contacts:
        """Themselves, or an error if they name somebody outside the slots."""
        if self.targets.size and (self.targets.min() < 0 or self.targets.max() >= slots):
            raise InputError(f"a contact list names a slot outside 0..{slots - 1}")
        return self

    def matrix(self, slots: int, values: np.ndarray | None = None) -> sp.csr_matrix:
        """A row for every list, with ``values`` (default: 1) at its contacts."""
        entries = np.ones(len(self.targets)) if values is None else values
        return sp.csr_matrix((entries, self.targets, self.starts), (len(self), slots))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: Any) -> np.ndarray:
        return self.targets[self.starts[number] : self.starts[number + 1]]

    @property
    def degrees(self) -> np.ndarray:
        return np.diff(self.starts)

    @property
    def owners(self) -> np.ndarray:
        """The number of the list every target is in."""
        return np.repeat(np.arange(len(self)), self.degrees)

    @property
    def arcs(self) -> np.ndarray:
        """Everybody hears the contacts of their own list: arcs contact -> owner, once each, without loops."""
        pairs = np.stack([self.targets, self.owners])
        return np.unique(pairs[:, pairs[0] != pairs[1]], axis=1)


def contact_lists(records: Any) -> tuple[Contacts, bool]:
    """Contact lists, and whether there was only one (ids, one after the other)."""
    if isinstance(records, Contacts):
        return records, False
    one = isinstance(records, np.ndarray) or all(isinstance(entry, (int, np.integer)) for entry in records)
    return Contacts.of([records] if one else records), one


def each_contact(records: Any, draw: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Reports of contacts by themselves, in the shape the records have: one id, a list of ids, or many lists.

    Within a list they are sorted: which report is whose contact's would tell more than the reports do.
    """
    if isinstance(records, Contacts):
        return Contacts(records.starts, draw(records.targets)).sorted()
    contacts = np.asarray(records, dtype=np.int64)
    reports = draw(contacts.ravel())
    return np.sort(reports.reshape(contacts.shape)) if contacts.ndim else int(reports[0])


def table(records: Any, width: int) -> tuple[Any, bool]:
    """Feature rows as a two-dimensional array (sparse stays sparse), and whether there was only one; finite, or an error."""
    if sp.issparse(records):
        rows, one = sp.csr_matrix(records), False
    else:
        rows = plain_numbers(records)
        one = rows.ndim == 1
        rows = rows[None, :] if one else rows
    if rows.ndim != 2 or rows.shape[1] != width:
        raise InputError(f"a record has {rows.shape[-1]} attributes, the randomizer is for {width}")
    if not np.isfinite(rows.data if sp.issparse(rows) else rows).all():
        raise InputError("an attribute is empty or not finite: fill it in, or leave the record out")
    return rows, one


def plain_numbers(values: Any) -> Array:
    """Numbers, or an error that does not quote what is none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("an attribute is not a number, or records have different numbers of them") from None


def whole_numbers(values: Any, what: str) -> np.ndarray:
    """Whole numbers, or an error that does not quote what is none."""
    refusal = InputError(f"{what} is not a whole number")
    try:
        found = np.asarray(values)
    except (TypeError, ValueError):
        raise refusal from None
    if found.dtype.kind == "i":
        return found.astype(np.int64, copy=False)
    with np.errstate(invalid="ignore"):
        whole = found.astype(np.int64) if found.dtype.kind in "uf" else None
    if whole is None or (found != whole).any():
        raise refusal
    return whole


def entries(rows: Any, columns: np.ndarray) -> Array:
    """``rows[i, columns[i, j]]`` for dense or sparse rows."""
    numbers = np.repeat(np.arange(rows.shape[0]), columns.shape[1])
    return np.asarray(rows[numbers, columns.ravel()], dtype=np.float64).reshape(columns.shape)


def choose_columns(records: int, width: int, chosen: int, rng: Noise) -> np.ndarray:
    """``chosen`` different columns of ``width`` for every record, uniformly (Floyd's method, all records at once)."""
    if chosen == width:
        return np.tile(np.arange(width), (records, 1))
    if chosen > 64:
        keys = rng.uniform(records * width).reshape(records, width)
        return np.sort(np.argpartition(keys, chosen, axis=1)[:, :chosen], axis=1)
    picked = np.full((records, chosen), -1, dtype=np.int64)
    for place, last in enumerate(range(width - chosen, width)):
        drawn = rng.integers(last + 1, records)
        taken = (picked[:, :place] == drawn[:, None]).any(axis=1)
        picked[:, place] = np.where(taken, last, drawn)
    return np.sort(picked, axis=1)
