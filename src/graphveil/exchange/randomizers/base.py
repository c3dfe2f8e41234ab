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
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.privacy.accounting.loss import Loss, Pure, Stated, Unbounded
from graphveil.privacy.facts import EDGE
from graphveil.privacy.local import LIST_ENTRY, VERTEX
from graphveil.privacy.mechanisms import Mechanism
from graphveil.privacy.noise import LARGEST_LOCAL_EPSILON, Array, Noise

if TYPE_CHECKING:
    from graphveil.graph import Lists

LARGEST_EPSILON = LARGEST_LOCAL_EPSILON


class Unit(StrEnum):
    """What two neighbouring records may differ in."""

    VERTEX = "vertex"  # everything this randomizer reads of one vertex: all its features, or its label
    LIST = "list"  # one entry of one contact list is swapped for another; the length is public
    EDGE = "edge"  # one edge, wherever it is reported


class Randomizer(Mechanism):
    """One round of one client: ``randomize`` its record, given the public ``broadcast`` of earlier rounds."""

    unit: ClassVar[Unit]
    delta: float = 0.0

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The exact worst log-ratio for one unit; infinite if there is no bound."""

    @property
    def tells_lengths(self) -> bool:
        """Whether a report comes with the (public) length of the list it is about."""
        return False

    @property
    def swap_units(self) -> float:
        """How many units exchanging one entry of one contact list changes."""
        return 0.0 if self.unit is Unit.VERTEX else 1.0

    @property
    def edge_units(self) -> float:
        """How many units one undirected edge changes over all the reports it moves; infinite if that has no bound."""
        return 0.0 if self.unit is Unit.VERTEX else math.inf

    @property
    def changes(self) -> dict[str, float]:
        """Units changed by each change that a local certificate accounts for."""
        if self.unit is Unit.VERTEX:
            return {VERTEX: 1.0}
        return {LIST_ENTRY: self.swap_units, EDGE: self.edge_units}

    def loss(self, sensitivity: float) -> Loss:
        """What a change of so many units costs."""
        if sensitivity == 0:
            return Pure(0.0)
        epsilon = sensitivity * self.epsilon
        if not math.isfinite(epsilon):
            return Unbounded()
        return Stated(epsilon, self.delta) if self.delta else Pure(epsilon)

    def words(self) -> str:
        """The randomizer on a certificate."""
        shown = f"{self.epsilon:.6g}" if math.isfinite(self.epsilon) else "NO FINITE VALUE"
        return f"{self.kind}, epsilon {shown} per {self.unit}"

    @property
    def swap_epsilon(self) -> float:
        """What exchanging one entry of one contact list costs."""
        return self.swap_units * self.epsilon if self.swap_units else 0.0

    @property
    def edge_change(self) -> str:
        """What happens to the edge that :attr:`edge_epsilon` is for."""
        return "rewired"

    def apply(self, value: Any, noise: Noise) -> Any:
        return self.randomize(value, None, noise)

    @property
    def edge_epsilon(self) -> float:
        """What one undirected edge costs over all the reports it moves; nothing for randomizers of features and labels."""
        return self.edge_units * self.epsilon if self.edge_units else 0.0

    def own(self, records: Any, ids: np.ndarray) -> Any:
        """The part of the records of the slots ``ids`` that this randomizer reports; a public rule. Default: all of it."""
        return records

    @abstractmethod
    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """The report of one record, or the reports of many."""

    @abstractmethod
    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        """Log-probability (or log-density) of one report of one record; minus infinity where it cannot occur."""

    def estimate(self, reports: Any, broadcast: Any = None) -> Any:
        """What the reports say about the records, without bias."""
        raise InputError(f"{type(self).__name__} has no unbiased estimate")

    def variance(self, record: Any = None) -> Any:
        """The exact variance of each number of the estimate for this record."""
        raise InputError(f"{type(self).__name__} has no unbiased estimate, hence no variance")

    def log_ratio(self, a: Any, b: Any, report: Any, broadcast: Any = None) -> float:
        """``log P(report | a) - log P(report | b)``; nan if neither record can produce the report."""
        left, right = self.log_density(a, report, broadcast), self.log_density(b, report, broadcast)
        return math.nan if left == right == -math.inf else left - right


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
        arrays = [np.asarray(one, dtype=np.int64) for one in lists]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in arrays])]).astype(np.int64)
        return cls(starts, np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64))

    @classmethod
    def own_lists(cls, lists: Lists) -> Contacts:
        """Everybody's own (out-) list of a validated graph."""
        senders, receivers = lists.edge_index()
        order = np.lexsort((receivers, senders))
        starts = np.concatenate([[0], np.cumsum(lists.out_degrees)])
        return cls(starts, receivers[order])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> np.ndarray:
        return self.targets[self.starts[number] : self.starts[number + 1]]

    @property
    def degrees(self) -> np.ndarray:
        return np.diff(self.starts)

    @property
    def owners(self) -> np.ndarray:
        """The number of the list every target is in."""
        return np.repeat(np.arange(len(self)), self.degrees)


def is_one_list(records: Any) -> bool:
    """Whether ``records`` is a single contact list (a one-dimensional array of ids)."""
    if isinstance(records, Contacts):
        return False
    return isinstance(records, np.ndarray) or all(isinstance(one, (int, np.integer)) for one in records)


def check_budget(budget: float) -> None:
    if not (isinstance(budget, (int, float)) and 0 < budget <= LARGEST_EPSILON):
        raise InputError(
            f"epsilon must lie in (0, {LARGEST_EPSILON:g}], got {budget}; a part without protection is declared 'raw'"
        )


def check_width(what: str, value: int, least: int = 1) -> None:
    if not (isinstance(value, (int, np.integer)) and value >= least):
        raise InputError(f"{what} must be a whole number of at least {least}, got {value}")


def table(records: Any, width: int) -> tuple[Any, bool]:
    """Feature rows as a two-dimensional array (sparse stays sparse), and whether there was only one."""
    if sp.issparse(records):
        rows, one = sp.csr_matrix(records), False
    else:
        rows = np.asarray(records, dtype=np.float64)
        one = rows.ndim == 1
        rows = rows[None, :] if one else rows
    if rows.ndim != 2 or rows.shape[1] != width:
        raise InputError(f"a record has {rows.shape[-1]} attributes, the randomizer is for {width}")
    return rows, one


def entries(rows: Any, columns: np.ndarray) -> Array:
    """``rows[i, columns[i, j]]`` for dense or sparse rows."""
    numbers = np.repeat(np.arange(rows.shape[0]), columns.shape[1])
    return np.asarray(rows[numbers, columns.ravel()], dtype=np.float64).reshape(columns.shape)


def outside(values: Array, lower: float, upper: float) -> int:
    """How many values miss the public range; a client may count them for its owner, it never sends the count."""
    return int(np.count_nonzero((values < lower) | (values > upper)))


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


def sparse_rows(columns: np.ndarray, values: np.ndarray, width: int) -> sp.csr_matrix:
    """Rows with ``values[i, j]`` at ``columns[i, j]`` and zero elsewhere."""
    records, chosen = columns.shape
    starts = np.arange(records + 1) * chosen
    return sp.csr_matrix((values.ravel(), columns.ravel(), starts), shape=(records, width))
