"""Published randomizers that read everybody's lists, so that no client could run them: their epsilon does not exist.

GraphPrivatizer's neighbour replacement (paper 004), and its baseline, randomised response within two hops.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit, each_contact
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.response import BitFlips

BLOCK = 1 << 16  # pairs of rows compared at a time


class Strategy(StrEnum):
    THRESHOLD = "t"  # any neighbour of u that is similar enough
    MOST_SIMILAR = "m"  # the most similar neighbour of u, if it is similar enough


class Metric(StrEnum):
    COSINE = "cosine"
    EUCLIDEAN = "euclidean"  # 1 - |x - y|/(|x| + |y|), between 0 and 1 by the triangle inequality
    DISTANCE = "distance"  # |x - y| itself, as in the released code: the least similar pass a threshold


class Reading(StrEnum):
    TEXT = "text"  # equations (3) and (4)
    CODE = "code"  # as the released code has it


@dataclass(frozen=True)
class ReadsEverybody(Randomizer):
    """``lists`` are everybody's true contacts, which this reads and a client could not: without them it refuses."""

    unit: ClassVar[Unit] = Unit.LIST
    lists: Contacts | None = None

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def claim(self) -> float:
        """What the paper says."""
        return self.budget

    @property
    def everybody(self) -> Contacts:
        if self.lists is None:
            raise PrivacyError("this published mechanism reads everybody's contact lists: no client can run it")
        return self.lists

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        yield checks.everybody(reports), "no client can make such a report"

    @abstractmethod
    def support(self, broadcast: Any) -> Contacts:
        """Which slots everybody's report may name, themselves aside."""


@dataclass(frozen=True)
class NeighbourReplacement(ReadsEverybody):
    """Contact u is kept with e^eps/(e^eps + d - 1), else replaced by one of its d - 1 candidates among *u's* contacts.

    Rows are x_u = ``scale`` broadcast_u + ``shift``: the rectified reports, where the broadcast has encoded ones. ``text``: u' is
    a candidate if s(x_u,alpha, x_u',alpha) >= ``threshold`` with x_u,alpha = (1 - alpha) x_u + alpha mean of x over u's contacts.
    ``code``: if alpha s(x_u, x_u') + (1 - alpha) s(y_u, y_u') > ``threshold`` with y = D^-1/2 A D^-1/2 x (alpha the other way
    round), and a contact with no other contact is kept.

    Published only. The paper's proof needs outputs that do not depend on the input, but they are
    {u} and candidates(u): another contact has other outputs, so the ratio is infinite (G1); where outputs are shared, the
    normalisers differ (G2); without a candidate u itself is sent (G3); and the list of u is read and shown through
    people who are not its endpoints (G4). Records are contacts u, or whole lists. Tests: ``tests/exchange/test_replacement.py``.
    """

    kind: ClassVar[str] = "neighbour-replacement"
    strategy: Strategy = Strategy.THRESHOLD
    metric: Metric = Metric.COSINE
    alpha: float = 0.0
    threshold: float = 0.0
    reading: Reading = Reading.TEXT
    scale: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "strategy", Strategy(self.strategy))
        object.__setattr__(self, "metric", Metric(self.metric))
        object.__setattr__(self, "reading", Reading(self.reading))

    @property
    def unbounded(self) -> str:
        return "another contact has other possible reports, because they are its own contacts; no client could run it"

    def support(self, broadcast: Any) -> Contacts:
        """Everybody's replacement candidates."""
        lists = self.everybody
        likeness, owners = self.likeness(broadcast), lists.owners
        good = likeness >= self.threshold
        if self.reading is Reading.CODE:
            good = (likeness > self.threshold) & (lists.degrees[owners] > 1)
        if self.strategy is Strategy.MOST_SIMILAR:
            order = np.lexsort((lists.targets, -likeness, owners))
            best = np.zeros(len(good), dtype=bool)
            first = lists.starts[:-1][lists.degrees > 0]
            best[order[first]] = True
            good &= best
        return lists.where(good)

    def likeness(self, broadcast: Any) -> Array:
        """Of everybody and each of their contacts."""
        lists, rows = self.everybody, Shifted(sp.csr_matrix(broadcast, dtype=np.float64), self.scale, self.shift)
        ends = lists.owners, lists.targets
        if self.reading is Reading.TEXT:
            share = self.alpha / np.maximum(lists.degrees, 1)
            mixed = lists.matrix(len(lists), share[lists.owners]) + (1 - self.alpha) * sp.identity(len(lists))
            return self._likeness(rows.through(mixed) if self.alpha else rows, *ends)
        root = 1 / np.sqrt(np.maximum(lists.degrees, 1))
        near = rows.through(lists.matrix(len(lists), root[ends[0]] * root[ends[1]]))
        return self.alpha * self._likeness(rows, *ends) + (1 - self.alpha) * self._likeness(near, *ends)

    def keep(self, candidates: np.ndarray | int) -> Any:
        """Probability of the truth, given how many candidates there are."""
        return 1 / (1 + np.asarray(candidates) * math.exp(-self.budget))

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        candidates = self.support(broadcast)

        def draw(contacts: np.ndarray) -> np.ndarray:
            number = candidates.degrees[contacts]
            replaced = rng.uniform(contacts.size) >= self.keep(number)
            pick = (rng.uniform(contacts.size) * number).astype(np.int64)
            moved = np.flatnonzero(replaced & (number > 0))
            reports = contacts.copy()
            reports[moved] = candidates.targets[candidates.starts[contacts[moved]] + pick[moved]]
            return reports

        reports = each_contact(records, draw)
        if self.reading is Reading.CODE and isinstance(records, Contacts):
            return reports.where(~self._taken_back(records, reports.targets))
        return reports

    @staticmethod
    def _taken_back(lists: Contacts, reports: np.ndarray) -> np.ndarray:
        """The released code replaces contacts one after the other in one row: a true contact that comes later clears its cell."""
        owners = lists.owners * len(lists)
        return np.isin(owners + reports, owners + lists.targets) & (reports > lists.targets)

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        candidates = self.support(broadcast)[int(record)]
        kept = float(self.keep(len(candidates)))
        mass = kept if int(report) == int(record) else 0.0
        if int(report) in candidates:
            mass += (1 - kept) / len(candidates)
        return math.log(mass) if mass > 0 else -math.inf

    def _likeness(self, rows: Shifted, left: np.ndarray, right: np.ndarray) -> Array:
        """Of the rows ``left[i]`` and ``right[i]``."""
        everybody = np.arange(rows.values.shape[0])
        squares, products = rows.products(everybody, everybody), rows.products(left, right)
        if self.metric is Metric.COSINE:
            return np.asarray(products / np.sqrt(np.maximum(squares[left], 1e-24) * np.maximum(squares[right], 1e-24)))
        distance = np.sqrt(np.maximum(squares[left] + squares[right] - 2 * products, 0.0))
        if self.metric is Metric.DISTANCE:
            return np.asarray(distance)
        lengths = np.sqrt(np.maximum(squares, 0.0))
        return np.asarray(np.clip(1 - distance / np.maximum(lengths[left] + lengths[right], 1e-12), 0.0, 1.0))


@dataclass(frozen=True)
class Shifted:
    """Rows ``scale values_i + shifts_i``: sparse ones with the same number added everywhere, which are never made dense."""

    values: sp.csr_matrix
    scale: float = 1.0
    shifts: Any = 0.0

    def through(self, matrix: sp.csr_matrix) -> Shifted:
        """``matrix`` times these rows."""
        shifts = np.broadcast_to(self.shifts, matrix.shape[1])
        return Shifted(sp.csr_matrix(matrix @ self.values), self.scale, matrix @ shifts)

    def products(self, left: np.ndarray, right: np.ndarray) -> Array:
        """Inner products of the rows ``left[i]`` and ``right[i]``, in blocks: memory stays within features and edges."""
        count, width = self.values.shape
        sums = self.scale * np.asarray(self.values.sum(axis=1)).ravel()
        shifts = np.broadcast_to(self.shifts, count)
        found = shifts[right] * sums[left] + shifts[left] * sums[right] + width * shifts[left] * shifts[right]
        for start in range(0, len(left), BLOCK):
            here = slice(start, start + BLOCK)
            both = self.values[left[here]].multiply(self.values[right[here]])
            found[here] += self.scale**2 * np.asarray(both.sum(axis=1)).ravel()
        return np.asarray(found)


@dataclass(frozen=True)
class TwoHopResponse(ReadsEverybody):
    """v's bit of everybody within two hops flips with probability 1/(e^eps + 1); the bits of all others are 0.

    Published only. The bits that can flip are chosen by the edges themselves: somebody three hops away is never reported, and
    becomes reportable by one edge that v does not have (G4), so the ratio is infinite. The record is v's number and is read
    with everybody's ``lists``. Tests: ``tests/methods/test_rr_edges.py``.
    """

    kind: ClassVar[str] = "two-hop-response"
    most: int = 50_000_000

    @property
    def flips(self) -> BitFlips:
        return BitFlips(self.budget)

    @property
    def unbounded(self) -> str:
        return "who can be reported at all is decided by the edges of others; no client could run it"

    def reach(self) -> sp.csr_matrix:
        """Row v has an entry for everybody within two hops of v, 2 for a contact and 1 else; v itself is left out."""
        lists = self.everybody
        near = lists.matrix(len(lists), np.ones(len(lists.targets), dtype=bool))
        entries = int(lists.degrees[lists.targets].sum())
        if entries > 20 * self.most:
            raise InputError(f"two hops would visit {entries:.1e} entries: use another method on a graph this dense")
        both = (near @ near + near).astype(np.int8) + near.astype(np.int8)
        both.setdiag(0)
        both.eliminate_zeros()
        if both.nnz > self.most:
            raise InputError(f"the lists of two hops have {both.nnz} entries, more than max_edges={self.most}")
        return sp.csr_matrix(both)

    def support(self, broadcast: Any) -> Contacts:
        reach = self.reach()
        return Contacts(reach.indptr.astype(np.int64), reach.indices.astype(np.int64))

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """Noisy lists of everybody, or of the one vertex ``records``."""
        reach = self.reach()
        kept = rng.uniform(reach.nnz) >= self.flips.flip
        reports = Contacts(reach.indptr, reach.indices).where((reach.data == 2) == kept)
        return reports if isinstance(records, Contacts) else reports[int(records)]

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        """Of a noisy list of the vertex ``record``."""
        row = self.reach()[[int(record)]]
        if not np.isin(report, row.indices).all():
            return -math.inf
        flipped = len(np.setxor1d(row.indices[row.data == 2], np.asarray(report, dtype=np.int64)))
        return self.flips.log_density(flipped, row.nnz)
