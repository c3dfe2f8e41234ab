"""GraphPrivatizer's neighbour replacement (paper 004), as published: its epsilon does not exist."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.errors import PrivacyError
from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit, check_budget
from graphveil.privacy.noise import Array, Noise

BLOCK = 1 << 16  # pairs of rows compared at a time


class Strategy(StrEnum):
    THRESHOLD = "t"  # any neighbour of u that is similar enough
    MOST_SIMILAR = "m"  # the most similar neighbour of u, if it is similar enough


class Metric(StrEnum):
    COSINE = "cosine"
    EUCLIDEAN = "euclidean"  # 1/(1 + distance)


@dataclass(frozen=True)
class NeighbourReplacement(Randomizer):
    """Contact u is kept with e^eps/(e^eps + d - 1), else replaced by one of its d - 1 candidates among *u's* contacts.

    Candidates have similarity s_alpha(u, u') >= ``threshold`` in the broadcast (noisy) rows, mixed with the mean over u's own
    contacts by ``alpha``. Published only. The paper's proof needs outputs that do not depend on the input, but they are
    {u} and candidates(u): another contact has other outputs, so the ratio is infinite (G1); where outputs are shared, the
    normalisers differ (G2); without a candidate u itself is sent (G3); and the list of u is read and shown through
    people who are not its endpoints (G4). Records are contacts u, or whole lists; ``lists`` are everybody's true contacts,
    which this mechanism reads and a client could not: without them it refuses. Tests: ``tests/exchange/test_replacement.py``.
    """

    kind: ClassVar[str] = "neighbour-replacement"
    unit: ClassVar[Unit] = Unit.LIST
    budget: float
    lists: Contacts | None = None
    strategy: Strategy = Strategy.THRESHOLD
    metric: Metric = Metric.COSINE
    alpha: float = 0.0
    threshold: float = 0.0

    def __post_init__(self) -> None:
        check_budget(self.budget)
        object.__setattr__(self, "strategy", Strategy(self.strategy))
        object.__setattr__(self, "metric", Metric(self.metric))

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def unbounded(self) -> str:
        return "another contact has other possible reports, because they are its own contacts; no client could run it"

    @property
    def claim(self) -> float:
        """What the paper says."""
        return self.budget

    def candidates(self, broadcast: Any) -> Contacts:
        """Everybody's replacement candidates."""
        lists = everybodys(self.lists)
        owners = lists.owners
        likeness = self._likeness(self._mixed(lists, broadcast), owners, lists.targets)
        good = likeness >= self.threshold
        if self.strategy is Strategy.MOST_SIMILAR:
            order = np.lexsort((lists.targets, -likeness, owners))
            best = np.zeros(len(good), dtype=bool)
            first = lists.starts[:-1][lists.degrees > 0]
            best[order[first]] = True
            good &= best
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners[good], minlength=len(lists)))])
        return Contacts(starts, lists.targets[good])

    def keep(self, candidates: np.ndarray | int) -> Any:
        """Probability of the truth, given how many candidates there are."""
        return 1 / (1 + np.asarray(candidates) * math.exp(-self.budget))

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        candidates = self.candidates(broadcast)
        contacts = np.asarray(records.targets if isinstance(records, Contacts) else records, dtype=np.int64)
        flat = contacts.ravel()
        number = candidates.degrees[flat]
        replaced = rng.uniform(flat.size) >= self.keep(number)
        pick = (rng.uniform(flat.size) * number).astype(np.int64)
        moved = np.flatnonzero(replaced & (number > 0))
        reports = flat.copy()
        reports[moved] = candidates.targets[candidates.starts[flat[moved]] + pick[moved]]
        if isinstance(records, Contacts):
            return Contacts(records.starts, reports)
        return int(reports[0]) if contacts.ndim == 0 else reports.reshape(contacts.shape)

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        candidates = self.candidates(broadcast)[int(record)]
        kept = float(self.keep(len(candidates)))
        mass = kept if int(report) == int(record) else 0.0
        if int(report) in candidates:
            mass += (1 - kept) / len(candidates)
        return math.log(mass) if mass > 0 else -math.inf

    def _mixed(self, lists: Contacts, broadcast: Any) -> sp.csr_matrix:
        """(1 - alpha) x_u + alpha mean of x over u's contacts: equation (3)."""
        rows = sp.csr_matrix(broadcast, dtype=np.float64)
        if self.alpha == 0:
            return rows
        share = self.alpha / np.maximum(lists.degrees, 1)
        shape = (len(lists), rows.shape[0])
        return (1 - self.alpha) * rows + sp.csr_matrix((share[lists.owners], lists.targets, lists.starts), shape) @ rows

    def _likeness(self, rows: sp.csr_matrix, left: np.ndarray, right: np.ndarray) -> Array:
        """Of the rows ``left[i]`` and ``right[i]``, in blocks: memory stays within features and edges."""
        squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
        products = np.empty(len(left))
        for start in range(0, len(left), BLOCK):
            here = slice(start, start + BLOCK)
            products[here] = np.asarray(rows[left[here]].multiply(rows[right[here]]).sum(axis=1)).ravel()
        if self.metric is Metric.EUCLIDEAN:
            return 1 / (1 + np.sqrt(np.maximum(squares[left] + squares[right] - 2 * products, 0.0)))
        return products / np.sqrt(np.maximum(squares[left], 1e-24) * np.maximum(squares[right], 1e-24))


def everybodys(lists: Contacts | None) -> Contacts:
    """The lists of everybody, or a refusal: a client has its own list only."""
    if lists is None:
        raise PrivacyError("this published mechanism reads everybody's contact lists: no client can run it")
    return lists
