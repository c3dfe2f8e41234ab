"""Randomised response on the list of one's contacts and their contacts (GraphPrivatizer's baseline), as published."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit, check_budget
from graphveil.exchange.randomizers.replacement import everybodys
from graphveil.privacy.noise import Noise
from graphveil.privacy.response import BitFlips


@dataclass(frozen=True)
class TwoHopResponse(Randomizer):
    """v's bit of everybody within two hops flips with probability 1/(e^eps + 1); the bits of all others are 0.

    Published only. The bits that can flip are chosen by the edges themselves: somebody three hops away is never reported, and
    becomes reportable by one edge that v does not have (G4), so the ratio is infinite. The record is v's number and is read
    with everybody's ``lists``. A client could not run this. Tests: ``tests/methods/test_rr_edges.py``.
    """

    kind: ClassVar[str] = "two-hop-response"
    unit: ClassVar[Unit] = Unit.LIST
    budget: float
    lists: Contacts | None = None
    most: int = 50_000_000

    def __post_init__(self) -> None:
        check_budget(self.budget)

    @property
    def flips(self) -> BitFlips:
        return BitFlips(self.budget)

    @property
    def epsilon(self) -> float:
        return math.inf

    @property
    def unbounded(self) -> str:
        return "who can be reported at all is decided by the edges of others; no client could run it"

    @property
    def claim(self) -> float:
        """What the paper says, for one bit."""
        return self.budget

    def reach(self) -> sp.csr_matrix:
        """Row v has an entry for everybody within two hops of v, 2 for a contact and 1 else; v itself is left out."""
        lists = everybodys(self.lists)
        size = len(lists)
        near = sp.csr_matrix((np.ones(len(lists.targets), dtype=bool), lists.targets, lists.starts), (size, size))
        entries = int(lists.degrees[lists.targets].sum())
        if entries > 20 * self.most:
            raise InputError(f"two hops would visit {entries:.1e} entries: use another method on a graph this dense")
        both = (near @ near + near).astype(np.int8) + near.astype(np.int8)
        both.setdiag(0)
        both.eliminate_zeros()
        if both.nnz > self.most:
            raise InputError(f"the lists of two hops have {both.nnz} entries, more than max_edges={self.most}")
        return sp.csr_matrix(both)

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """Noisy lists of everybody, or of the one vertex ``records``."""
        reach = self.reach()
        true = reach.data == 2
        kept = rng.uniform(reach.nnz) >= self.flips.flip
        noisy = true == kept
        owners = np.repeat(np.arange(reach.shape[0]), np.diff(reach.indptr))[noisy]
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=reach.shape[0]))])
        reports = Contacts(starts.astype(np.int64), reach.indices[noisy].astype(np.int64))
        return reports if isinstance(records, Contacts) else reports[int(records)]

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        """Of a noisy list of the vertex ``record``."""
        row = self.reach()[[int(record)]]
        if not np.isin(report, row.indices).all():
            return -math.inf
        flipped = len(np.setxor1d(row.indices[row.data == 2], np.asarray(report, dtype=np.int64)))
        return self.flips.log_density(flipped, row.nnz)
