"""Contact lists in tables: the public broadcast they are randomised against, and the columns of their reports.

A *broadcast* is a table ``id, bin``: everybody who takes part, and the bin of their released label ('no label' is the last
one). ``graphveil collect --broadcast`` writes it after a round of labels; the round of edges reads it. It fixes the slots
(their order), so holders who hear the same file agree on who is who. Tests: ``tests/cli/test_privatize.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from graphveil.errors import InputError
from graphveil.exchange.randomizers import BucketResponse, Contacts, EdgeListResponse, LabelHistogram, Randomizer
from graphveil.graph.formats.tables import TableFile, text_column
from graphveil.privacy.noise import Noise

MAX_EDGES = 50_000_000
EDGE_MECHANISMS: dict[str, type[Any]] = {
    "histogram": LabelHistogram,
    "bucket": BucketResponse,
    "list": EdgeListResponse,
}


@dataclass(frozen=True, eq=False)
class Broadcast:
    """Everybody's id, in the order of the slots, and bin."""

    ids: pa.Array
    bins: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Broadcast:
        source = TableFile(path)
        names = source.names()
        if names[:2] != ["id", "bin"]:
            raise InputError(f"{path} is no broadcast: its columns must be id,bin; 'collect --broadcast' writes one")
        batches = list(source.batches(["id", "bin"], {"id": pa.string(), "bin": pa.int64()}))
        if not sum(batch.num_rows for batch in batches):
            raise InputError(f"{path} names nobody")
        ids = pa.concat_arrays([text_column(batch, "id", source, 1) for batch in batches])
        try:
            columns = [pc.cast(batch.column(1), pa.int64()).to_numpy(zero_copy_only=False) for batch in batches]
        except pa.ArrowException:
            raise InputError(f"column 'bin' of {path}: bins are whole numbers from 0") from None
        bins = np.concatenate(columns)
        if not (np.isfinite(bins).all() and bins.min() >= 0):
            raise InputError(f"column 'bin' of {path}: bins are whole numbers from 0")
        if len(pc.unique(ids)) != len(ids):
            raise InputError(f"{path} names somebody twice")
        return cls(ids, bins.astype(np.int64))

    @classmethod
    def of_labels(cls, ids: tuple[str, ...], labels: np.ndarray, classes: int) -> Broadcast:
        """Released labels (-1: none) as bins 0..classes."""
        return cls(pa.array(ids, pa.large_string()), np.where(labels >= 0, labels, classes))

    def write(self, path: Path) -> None:
        try:
            pa.csv.write_csv(pa.table({"id": self.ids, "bin": self.bins}), path)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the (public) broadcast: reports of one round must have heard the same."""
        names = "\n".join(self.ids.to_pylist()).encode()
        return hashlib.sha256(names + b"\0" + self.bins.astype("<i8").tobytes()).hexdigest()

    def slots(self, names: pa.Array, who: Callable[[int], str]) -> np.ndarray:
        """The slots of these ids; ``who(position)`` says in an error where an unknown one was found."""
        found = pc.index_in(names.cast(pa.large_string()), value_set=self.ids)
        if found.null_count:
            first = pc.index(pc.is_null(found), True).as_py()
            raise InputError(f"{who(first)}, who is not in the broadcast: unknown neighbour id")
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class EdgeReporter:
    """How the contact lists of a table are reported: ``mechanism`` with an epsilon for one entry of one list."""

    mechanism: str
    epsilon: float
    broadcast: Broadcast

    @cached_property
    def randomizer(self) -> Randomizer:
        """Public numbers only; a list of bits has half of the budget per bit, because an exchange is two bits."""
        if self.mechanism not in EDGE_MECHANISMS:
            raise InputError(f"unknown edge mechanism {self.mechanism!r}; known are: {', '.join(EDGE_MECHANISMS)}")
        if self.mechanism == "histogram":
            return LabelHistogram(self.epsilon, max(2, int(self.broadcast.bins.max()) + 1))
        if self.mechanism == "bucket":
            buckets = len(np.unique(self.broadcast.bins))
            if buckets < 2:
                raise InputError(
                    "the broadcast has one bin: everybody is in it, use --edge-mechanism histogram or list"
                )
            return BucketResponse(self.epsilon, buckets)
        lists = EdgeListResponse(self.epsilon / 2, len(self.broadcast.bins))
        expected = lists.flip * lists.slots**2
        if expected > MAX_EDGES:
            raise InputError(
                f"noisy lists of all {lists.slots} people would have about {expected:.2g} entries, more than {MAX_EDGES:g}: use "
                "--edge-mechanism histogram"
            )
        return lists

    @cached_property
    def heard(self) -> np.ndarray | None:
        """The bins as the randomizer takes them: buckets that occur are numbered 0, 1, ..."""
        if self.mechanism == "bucket":
            return np.unique(self.broadcast.bins, return_inverse=True)[1]
        return self.broadcast.bins if self.mechanism == "histogram" else None

    def columns(self, ids: pa.Array, contacts: pa.Array, noise: Noise) -> dict[str, Any]:
        """The columns of the reports: noisy counts ``h0, h1, ...``, or noisy ids ``contacts``."""
        own = self.broadcast.slots(ids, lambda at: f"the record {ids[at].as_py()!r} is of somebody")
        lists = self.lists(ids, contacts, own)
        reports = self.randomizer.randomize(self.randomizer.own(lists, own), self.heard, noise)
        if isinstance(reports, Contacts):
            return {"contacts": _joined(self.broadcast.ids, reports)}
        return {f"h{number}": column for number, column in enumerate(np.ascontiguousarray(reports.T))}

    def lists(self, ids: pa.Array, contacts: pa.Array, own: np.ndarray) -> Contacts:
        """Contacts as slots: each once, oneself left out."""
        split = pc.utf8_split_whitespace(pc.fill_null(contacts.cast(pa.large_string()), ""))
        names, owners = pc.list_flatten(split), pc.list_parent_indices(split).to_numpy()
        there = pc.not_equal(names, "")
        names, owners = names.filter(there), owners[there.to_numpy(zero_copy_only=False)]
        who = lambda at: f"vertex {ids[int(owners[at])].as_py()!r} lists {names[at].as_py()!r}"
        targets = self.broadcast.slots(names, who)
        pairs = np.unique(np.stack([owners, targets]).astype(np.int64), axis=1)
        pairs = pairs[:, own[pairs[0]] != pairs[1]]
        starts = np.concatenate([[0], np.cumsum(np.bincount(pairs[0], minlength=len(ids)))])
        return Contacts(starts.astype(np.int64), pairs[1])


def _joined(ids: pa.Array, lists: Contacts) -> pa.Array:
    """Lists of slots as ids separated by spaces."""
    names = ids.take(pa.array(lists.targets))
    nested = pa.ListArray.from_arrays(pa.array(lists.starts, pa.int32()), names)
    return pc.binary_join(nested, pa.scalar(" ", pa.large_string()))
