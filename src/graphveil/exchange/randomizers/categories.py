"""Randomised response on categories: the class of a vertex, or the bucket of a contact and then any member of the bucket."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.base import Contacts, Randomizer, Unit, each_contact, whole_numbers
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.response import CategoryResponse


@dataclass(frozen=True)
class LabelResponse(Randomizer):
    """The class is kept with probability e^epsilon/(e^epsilon + k - 1), else it becomes one of the k - 1 others.

    Lemma: ``privacy/response.py``. Test: ``test_randomizers.py``.
    """

    kind: ClassVar[str] = "label-response"
    unit: ClassVar[Unit] = Unit.VERTEX
    sizes: ClassVar = {"classes": ("the number of classes", 2)}
    classes: int

    @cached_property
    def response(self) -> CategoryResponse:
        return CategoryResponse(self.budget, self.classes)

    @property
    def keep(self) -> float:
        return self.response.keep

    @property
    def other(self) -> float:
        """The probability of each single other class."""
        return self.response.other

    @property
    def epsilon(self) -> float:
        return self.response.epsilon

    @property
    def channel(self) -> Array:
        """T[c, r] = P(report r | class c)."""
        return self.response.channel

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        yield from checks.classes(reports, self.classes)

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        labels = whole_numbers(records, "a label")
        if labels.size and (labels.min() < 0 or labels.max() >= self.classes):
            raise InputError(f"a label lies outside the public classes 0..{self.classes - 1}")
        reports = self.response.draw(labels, rng)
        return int(reports) if labels.ndim == 0 else reports

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        return self.response.log_density(int(record), int(report))

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        """Unbiased one-hot rows: (one-hot - other)/(keep - other)."""
        return np.asarray((np.eye(self.classes)[np.asarray(reports)] - self.other) / (self.keep - self.other))

    def variance(self, record: Any = None) -> Array:
        """Of each entry of the estimated one-hot row."""
        probability: Array = self.channel[int(record)]
        return probability * (1 - probability) / (self.keep - self.other) ** 2


@dataclass(frozen=True)
class BucketResponse(Randomizer):
    """One owned contact u becomes a member of its bucket with e^epsilon/(e^epsilon + G - 1), else of another one.

    The broadcast gives every slot's bucket 0..G-1; it must come from public or released values only. ``owned``: each
    undirected edge is reported by one endpoint (:func:`owns`), so an edge costs epsilon once; the number of owned contacts
    is public. Directed lists hold each arc once and are reported whole (``owned=False``). Records are one contact, a list of
    them or many lists. Lemma for one contact: P(r | u) = P(bucket r | bucket u) times a law within r's bucket that does not
    see u and cancels in the ratio, so it is epsilon exactly for unequal buckets. (Weighing members by e^(epsilon [same bucket])
    in one shot does not have this property.)

    Lemma for a list: contacts are randomised independently and the report is sorted, so its law does not depend on the order in
    which they stand. Two lists that differ in one exchanged contact can therefore be written with the d - 1 common ones first;
    then one coordinate differs, which costs epsilon, and sorting is post-processing: epsilon, whatever d. (Reports in the order
    of the ids would cost d epsilon: one exchange shifts every place.) Tests: ``tests/exchange/test_edge_randomizers.py``,
    ``tests/exchange/test_whole_lists.py``.
    """

    kind: ClassVar[str] = "bucket-response"
    unit: ClassVar[Unit] = Unit.EDGE
    sizes: ClassVar = {"buckets": ("the number of buckets", 2)}
    buckets: int
    owned: bool = True

    @cached_property
    def response(self) -> LabelResponse:
        return LabelResponse(self.budget, self.buckets)

    @property
    def epsilon(self) -> float:
        return self.response.epsilon

    @property
    def edge_units(self) -> float:
        """Only the owner reports the edge; without owners it may stand in two lists."""
        return 1.0 if self.owned else 2.0

    def own(self, records: Any, ids: np.ndarray) -> Contacts:
        """The contacts that these slots own."""
        lists = Contacts.of(records)
        if not self.owned:
            return lists
        return lists.where(owns(np.asarray(ids)[lists.owners], lists.targets))

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        yield from checks.sorted_lists(reports, slots, twice=True)

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        bucket_of = self._checked(broadcast)
        sizes = np.bincount(bucket_of, minlength=self.buckets)
        first, members = np.concatenate([[0], np.cumsum(sizes)]), np.argsort(bucket_of, kind="stable")

        def draw(contacts: np.ndarray) -> np.ndarray:
            if contacts.size and (contacts.min() < 0 or contacts.max() >= len(bucket_of)):
                raise InputError(f"a contact lies outside the slots 0..{len(bucket_of) - 1} of the broadcast")
            chosen = self.response.randomize(bucket_of[contacts], None, rng)
            within = (rng.uniform(contacts.size) * sizes[chosen]).astype(np.int64)
            return np.asarray(members[first[chosen] + within])

        return each_contact(records, draw)

    def log_density(self, record: Any, report: Any, broadcast: Any = None) -> float:
        """Of one contact's report, or of the (sorted) report of a whole list.

        A multiset r of d contacts has the probability per M / prod(how often each is named)!, M[i, j] = P(r_j | u_i). Within a
        bucket of size s all have 1/s, so M has two values: ``keep`` in the blocks of equal buckets and ``other`` elsewhere. With
        R_k the ways to place k rooks in these blocks, per M = sum_k R_k (keep - other)^k other^(d-k) (d-k)!: no term is negative.
        """
        bucket_of = self._checked(broadcast)
        told, true = (np.atleast_1d(np.asarray(ids, dtype=np.int64)) for ids in (report, record))
        if len(told) != len(true) or np.any(told[1:] < told[:-1]):
            return -math.inf
        sizes = np.bincount(bucket_of, minlength=self.buckets)
        rooks = [1]  # R_0, R_1, ...
        for bucket in np.unique(bucket_of[true]):
            a, b = (int(np.count_nonzero(bucket_of[ids] == bucket)) for ids in (true, told))
            block = [math.comb(a, k) * math.comb(b, k) * math.factorial(k) for k in range(min(a, b) + 1)]
            rooks = [
                sum(rooks[k - j] * block[j] for j in range(len(block)) if 0 <= k - j < len(rooks))
                for k in range(len(rooks) + len(block) - 1)
            ]
        d, more = len(true), self.response.keep - self.response.other
        terms = [
            math.log(ways * math.factorial(d - k))
            + (d - k) * math.log(self.response.other)
            + (k and k * math.log(more))
            for k, ways in enumerate(rooks)
            if k == 0 or more > 0
        ]
        largest = max(terms)
        permanent = largest + math.log(math.fsum(math.exp(term - largest) for term in terms))
        again = sum(math.lgamma(times + 1) for times in np.unique(told, return_counts=True)[1])
        return permanent - again - float(np.log(sizes[bucket_of[told]]).sum())

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        """Unbiased one-hot buckets of the true contacts."""
        return self.response.estimate(self._checked(broadcast)[np.asarray(reports)])

    def variance(self, record: Any = None) -> Array:
        """For a contact in the bucket ``record``."""
        return self.response.variance(record)

    def _checked(self, broadcast: Any) -> np.ndarray:
        bucket_of = np.asarray(broadcast, dtype=np.int64)
        if bucket_of.ndim != 1 or bucket_of.size == 0 or bucket_of.min() < 0 or bucket_of.max() >= self.buckets:
            raise InputError(f"the broadcast must give every slot a bucket in 0..{self.buckets - 1}")
        if len(np.unique(bucket_of)) < self.buckets:
            raise InputError("a bucket has no member: number the buckets that occur 0, 1, ... (they are public)")
        return bucket_of


def owns(sender: np.ndarray, receiver: np.ndarray) -> np.ndarray:
    """Whether the sender owns the undirected edge: a public hash of the pair, the opposite for the other end."""
    low, high = np.minimum(sender, receiver).astype(np.uint64), np.maximum(sender, receiver).astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xC2B2AE3D27D4EB4F))
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(((mixed >> np.uint64(63)) == 0) == (sender < receiver))
