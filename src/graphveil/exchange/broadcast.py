"""What a server tells everybody before a round: a public table of all who take part, with a bin or a row of numbers each.

The order of the table fixes the slots, so holders who hear the same file agree on who is who. The description beside it,
``<file>.json``, says which round it is for and with which randomizer it is to be answered; a client refuses one that costs more
than its owner allows. Tests: ``tests/cli/test_privatize.py``, ``tests/cli/test_train_reports.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.round import Round
from graphveil.files import draft, read_json, write_json
from graphveil.graph.formats.tables import TableFile, text_column
from graphveil.privacy.plan import Release

SCHEMA = "graphveil/broadcast/1"


@dataclass(frozen=True, eq=False)
class Broadcast:
    """Everybody's id, in the order of the slots, and a bin or a row; ``round`` is what it asks for, where it says so."""

    ids: pa.Array
    values: np.ndarray
    round: Round | None = None

    @classmethod
    def of(cls, ids: Sequence[str], values: np.ndarray, round: Round | None = None) -> Broadcast:
        return cls(pa.array(ids, pa.large_string()), np.asarray(values), round)

    @classmethod
    def read(cls, path: Path) -> Broadcast:
        source = TableFile(path)
        names = source.names()
        if names[:1] != ["id"] or not (names[1:] == ["bin"] or (names[1:] and all(n[:1] == "r" for n in names[1:]))):
            raise InputError(f"{path} is no broadcast: its columns must be id,bin; 'collect --broadcast' writes one")
        bins = names[1:] == ["bin"]
        kind = pa.int64() if bins else pa.float64()
        batches = list(source.batches(names, {"id": pa.string()} | dict.fromkeys(names[1:], kind)))
        if not sum(batch.num_rows for batch in batches):
            raise InputError(f"{path} names nobody")
        ids = pa.concat_arrays([text_column(batch, "id", source, 1) for batch in batches])
        try:
            columns = [
                np.concatenate([pc.cast(batch.column(at), kind).to_numpy(zero_copy_only=False) for batch in batches])
                for at in range(1, len(names))
            ]
        except pa.ArrowException:
            raise InputError(f"column 'bin' of {path}: bins are whole numbers from 0") from None
        if not all(np.isfinite(column).all() for column in columns) or (bins and columns[0].min() < 0):
            raise InputError(f"column 'bin' of {path}: bins are whole numbers from 0")
        if len(pc.unique(ids)) != len(ids):
            raise InputError(f"{path} names somebody twice")
        values = columns[0].astype(np.int64) if bins else np.column_stack(columns)
        return cls(ids, values, _asked(described(path)))

    def write(self, path: Path) -> None:
        with draft(path) as beside:
            pa.csv.write_csv(self._table(), beside)
        if self.round is not None:
            body = {"schema": SCHEMA, "round": self.round.release(len(self.ids)).to_json(), "digest": self.digest}
            write_json(described(path), body)

    def to_bytes(self) -> bytes:
        """As a service sends it: an Arrow stream of ids and bins, or rows."""
        sink = pa.BufferOutputStream()
        table = self._table()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, content: bytes, round: Round | None = None) -> Broadcast:
        try:
            table = pa.ipc.open_stream(content).read_all()
            values = [table[name].to_numpy() for name in table.column_names[1:]]
            told = values[0] if table.column_names[1:] == ["bin"] else np.column_stack(values)
            return cls(table["id"].combine_chunks().cast(pa.large_string()), told, round)
        except (pa.ArrowException, ValueError, KeyError):
            raise InputError("these bytes are no broadcast") from None

    def _table(self) -> pa.Table:
        columns = {"bin": self.values} if self.values.ndim == 1 else {f"r{n}": c for n, c in enumerate(self.values.T)}
        return pa.table({"id": self.ids, **{name: np.ascontiguousarray(one) for name, one in columns.items()}})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the (public) broadcast: reports of one round must have heard the same."""
        names = "\n".join(self.ids.to_pylist()).encode()
        plain = self.values.astype("<i8" if self.values.dtype.kind in "iub" else "<f8")
        return hashlib.sha256(names + b"\0" + np.ascontiguousarray(plain).tobytes()).hexdigest()

    def slots(self, names: pa.Array, who: Callable[[int], str]) -> np.ndarray:
        """The slots of these ids; ``who(position)`` says in an error where an unknown one was found, not whom it names."""
        found = pc.index_in(names.cast(pa.large_string()), value_set=self.ids)
        if found.null_count:
            first = pc.index(pc.is_null(found), True).as_py()
            raise InputError(f"{who(first)}, who is not in the broadcast: unknown neighbour id")
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)

    def own_slots(self, ids: pa.Array) -> np.ndarray:
        return self.slots(ids, lambda at: f"the record {ids[at].as_py()!r} is of somebody")

    def lists(self, ids: pa.Array, contacts: pa.Array, own: np.ndarray) -> Contacts:
        """Contacts, written as ids separated by spaces, as slots: each once, oneself left out."""
        owners, names = split_ids(contacts)
        who = lambda at: f"vertex {ids[int(owners[at])].as_py()!r} lists somebody"
        targets = self.slots(names, who)
        pairs = np.unique(np.stack([owners, targets]).astype(np.int64), axis=1)
        pairs = pairs[:, own[pairs[0]] != pairs[1]]
        return Contacts.of_pairs(pairs[0], pairs[1], len(ids))

    def joined(self, lists: Contacts) -> pa.Array:
        """Lists of slots as ids separated by spaces."""
        names = self.ids.take(pa.array(lists.targets))
        nested = pa.ListArray.from_arrays(pa.array(lists.starts, pa.int32()), names)
        return pc.binary_join(nested, pa.scalar(" ", pa.large_string()))


def described(path: Path) -> Path:
    """The file beside a broadcast or a reports file that says how it was made."""
    return path.with_name(path.name + ".json")


def split_ids(contacts: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """Ids separated by spaces, one by one, each with the number of the record it stands in."""
    split = pc.utf8_split_whitespace(pc.fill_null(contacts.cast(pa.large_string()), ""))
    names, owners = pc.list_flatten(split), pc.list_parent_indices(split).to_numpy()
    there = pc.not_equal(names, "")
    return owners[there.to_numpy(zero_copy_only=False)], names.filter(there)


def _asked(beside: Path) -> Round | None:
    if not beside.exists():
        return None
    body: Any = read_json(beside)
    try:
        if body["schema"] != SCHEMA:
            raise ValueError(f"schema {body['schema']!r}")
        return Round.of(Release.from_json(body["round"]))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{beside} does not describe a round: {error}") from None
