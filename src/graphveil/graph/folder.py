"""A graph in a folder of Parquet files, one row per person, for graphs that do not fit into memory.

``graph.json`` holds what is public (sizes, classes, whether contacts are mutual) and the names of the parts; each part is a
Parquet file whose row groups are the blocks: ``id``, ``x`` (float32 features, if there are any), ``label`` (null: none),
``contacts`` (the own list, as slots, sorted, without doubles and oneself) and ``kind`` (0 train, 1 calibration, 2 query; null:
other). Any Parquet reader opens it. Labels and kinds are held in memory; features and lists are read block by block, and
features are kept as far as ``keep`` bytes go.

``graph.json`` also has a digest of the footer of every part (``footers.py``; folders of earlier versions have none). Parts that
are not as they were written are refused when the folder is opened, and parts that change afterwards when the next block is read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphveil.errors import InputError
from graphveil.files import write_json
from graphveil.graph.footers import footer_digest, mark
from graphveil.graph.graph import MASK_OF, UNLABELLED, Graph
from graphveil.graph.lists import Lists, OwnLists
from graphveil.graph.rows import DenseRows, RecordRows, tensor

SCHEMA = 1
HEAD = "graph.json"
KEEP = 2 << 30  # bytes of features held in memory
ELSEWHERE = 1 << 28  # the same in each further process that reads the folder
KINDS = tuple(MASK_OF)


@dataclass(frozen=True)
class Parts:
    """The Parquet files of a folder and the slots of every row group."""

    folder: Path
    head: dict[str, Any]
    groups: tuple[tuple[str, int], ...]
    spans: tuple[slice, ...]
    digests: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path) -> Parts:
        try:
            head = json.loads((folder / HEAD).read_text())
            if head["schema"] != SCHEMA:
                raise InputError(f"{folder / HEAD} is of schema {head['schema']}, this program reads {SCHEMA}")
            _check_head(head)
            groups, found, digests, first = [], [], {}, 0
            for name in head["parts"]:
                with pa.OSFile(str(folder / name)) as file:
                    digests[name], about = footer_digest(file), pq.read_metadata(file)
                _check_columns(about.schema.to_arrow_schema(), int(head["features"]))
                for group in range(about.num_row_groups):
                    rows = about.row_group(group).num_rows
                    if not rows:
                        continue
                    groups.append((name, group))
                    found.append(slice(first, first + rows))
                    first += rows
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise InputError(f"{folder} is no folder of records that can be read: {error}") from None
        if first != head["nodes"]:
            raise InputError(
                f"{folder} holds {first} records, {HEAD} says {head['nodes']}: a part is missing or not its own"
            )
        changed = [name for name, digest in head.get("digests", {}).items() if digests.get(name) != digest]
        if changed:
            raise InputError(
                f"{folder / changed[0]} is not as it was written: put the file back, or import the tables again"
            )
        return cls(folder, head, tuple(groups), tuple(found), digests)

    def read(self, block: int, columns: Sequence[str]) -> pa.Table:
        """These columns of one block."""
        name, group = self.groups[block]
        try:
            with pa.OSFile(str(self.folder / name)) as file:
                if footer_digest(file) != self.digests[name]:
                    raise InputError(f"{self.folder / name} was changed after it was opened: open the folder again")
                read = pq.ParquetFile(file).read_row_group(group, columns=list(columns), use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.folder / name} cannot be read: {error}") from None
        try:
            _check_columns(read.schema, int(self.head["features"]), columns)
        except ValueError as error:
            raise InputError(f"{self.folder / name}: {error}") from None
        return read

    def anywhere(self) -> Parts:
        """The same from any working directory."""
        return replace(self, folder=self.folder.resolve())

    @cached_property
    def starts(self) -> dict[int, int]:
        """The block that starts at a slot."""
        return {slots.start: block for block, slots in enumerate(self.spans)}

    def refuse(self, what: str) -> InputError:
        return InputError(
            f"{self.folder} is read block by block, but {what}: use roster, ballot, dp-mlp or gap, or import the graph to "
            ".npz if it fits into memory"
        )


COLUMNS: dict[str, Callable[[pa.DataType, int], bool]] = {
    "x": lambda kind, width: kind == pa.list_(pa.float32(), width),
    "label": lambda kind, width: pa.types.is_signed_integer(kind),
    "kind": lambda kind, width: pa.types.is_signed_integer(kind),
    "contacts": lambda kind, width: kind in (pa.list_(pa.int32()), pa.list_(pa.int64())),
}


def _check_columns(schema: pa.Schema, width: int, wanted: Sequence[str] | None = None) -> None:
    """Refuse columns that are missing or of another type; differences of unsigned numbers, for one, would wrap."""
    for name, fits in COLUMNS.items():
        if (name == "x" and not width) or (wanted is not None and name not in wanted):
            continue
        if name not in schema.names:
            raise ValueError(f"a part has no column {name!r}")
        kind = schema.field(name).type
        if pa.types.is_list(kind):
            kind = pa.list_(kind.value_type)  # whatever its entries are called
        elif pa.types.is_fixed_size_list(kind):
            kind = pa.list_(kind.value_type, kind.list_size)
        if not fits(kind, width):
            raise ValueError(f"column {name!r} of a part is of type {schema.field(name).type}")


def _check_head(head: dict[str, Any]) -> None:
    """Refuse a head that does not say what is public."""
    for name in ("nodes", "features", "classes", "arcs"):
        if not isinstance(head[name], int) or head[name] < 0:
            raise ValueError(f"{HEAD} says {name}: {head[name]!r}; give a whole number")
    texts = [*head.get("notes", ()), *(head.get("class_names") or ())]
    if not isinstance(head["directed"], bool) or not all(isinstance(text, str) for text in (*texts, *head["parts"])):
        raise ValueError(f"{HEAD} has a wrong value: directed is true or false, notes, class_names and parts are text")
    if len(set(head["parts"])) != len(head["parts"]):
        raise ValueError(f"{HEAD} names a part twice: everybody in it would count twice")
    digests = head.get("digests", {})
    if not isinstance(digests, dict) or (digests and set(digests) != set(head["parts"])):
        raise ValueError(f"{HEAD} has digests of other parts than it names")
    if len(set(map(str, digests.values()))) != len(digests):
        raise ValueError(f"{HEAD} has the same file under two names: everybody in it would count twice")
    if head.get("class_names") is not None and len(head["class_names"]) != head["classes"]:
        raise ValueError(f"{HEAD} names {len(head['class_names'])} classes of {head['classes']}")


class StoredRows:
    """Features of a folder; only whole blocks are read."""

    def __init__(self, parts: Parts, keep: int = KEEP) -> None:
        self._parts, self._keep = parts, keep
        self._kept: dict[int, DenseRows] = {}
        self._lock = threading.Lock()
        self._opening = uuid4().hex

    def __reduce__(self) -> tuple[Any, ...]:  # another process reads the files itself
        return _opened_again, (self._opening, self._parts.anywhere(), min(self._keep, ELSEWHERE))

    @property
    def spans(self) -> tuple[slice, ...]:
        return self._parts.spans

    @property
    def shape(self) -> tuple[int, int]:
        return int(self._parts.head["nodes"]), int(self._parts.head["features"])

    def block(self, slots: slice) -> DenseRows:
        block = self._parts.starts[slots.start]
        if block in self._kept:
            return self._kept[block]
        width = self.shape[1]
        if not width:
            return DenseRows(tensor(np.zeros((slots.stop - slots.start, 0), dtype=np.float32)))
        read = self._parts.read(block, ["x"])["x"].combine_chunks()
        if read.null_count or read.type != pa.list_(pa.float32(), width):
            raise InputError(
                f"{self._parts.folder}: x of block {block} is not a list of {width} float32 numbers per record"
            )
        values = read.flatten().to_numpy(zero_copy_only=False).reshape(len(read), width)
        if not np.isfinite(values).all():
            raise InputError(f"{self._parts.folder}: x of block {block} has NaN or infinite values: repair them")
        rows = DenseRows(tensor(values if values.flags.writeable else values.copy()))
        with self._lock:
            if (len(self._kept) + 1) * values.nbytes <= self._keep:
                self._kept[block] = rows
        return rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._parts.refuse("this method needs all features at once")


_OPENED: dict[str, StoredRows] = {}  # in a process to which rows were sent, by their opening: the last one


def _opened_again(opening: str, parts: Parts, keep: int) -> StoredRows:
    """The rows of a folder in another process; what one query has read there is kept for the next."""
    if opening not in _OPENED:
        _OPENED.clear()
        _OPENED[opening] = StoredRows(parts, keep)
    return _OPENED[opening]


class StoredLists:
    """Own contact lists of a folder; only whole blocks are read."""

    duplicates = self_loops = 0

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredLists, (self._parts.anywhere(),)

    @property
    def nodes(self) -> int:
        return int(self._parts.head["nodes"])

    @property
    def arcs(self) -> int:
        return int(self._parts.head["arcs"])

    def block(self, slots: slice) -> OwnLists:
        block = self._parts.starts[slots.start]
        read = self._parts.read(block, ["contacts"])["contacts"].combine_chunks()
        starts, entries = read.offsets.to_numpy(), read.values.to_numpy(zero_copy_only=False)
        entries = entries[starts[0] : starts[-1]]
        starts = starts - starts[0]
        found = OwnLists(starts, entries, self.nodes)
        if read.null_count or read.values.null_count or not _in_order(starts, entries, slots, self.nodes):
            raise InputError(
                f"{self._parts.folder}: contacts of block {block} must be sorted slots "
                f"in 0..{self.nodes - 1} without doubles and oneself"
            )
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._parts.refuse("this method needs all contact lists at once")


def _in_order(starts: np.ndarray, entries: np.ndarray, slots: slice, nodes: int) -> bool:
    """Whether every list is sorted, without doubles, without its own slot and within the graph."""
    if not len(entries):
        return True
    if entries.min() < 0 or entries.max() >= nodes:
        return False
    rising = np.diff(entries) > 0
    firsts = starts[1:-1]  # where a list starts the last entry may be larger
    rising[firsts[(firsts > 0) & (firsts < len(entries))] - 1] = True
    owners = np.repeat(np.arange(slots.start, slots.stop, dtype=entries.dtype), np.diff(starts))
    return bool(rising.all() and not np.any(owners == entries))


def open_folder(folder: Path, keep: int = KEEP) -> Graph:
    """The graph in this folder; labels, kinds and (if they are wanted later) ids come into memory, nothing else does."""
    parts = Parts.of(folder)
    nodes, classes = int(parts.head["nodes"]), int(parts.head["classes"])
    labels, kinds = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for block, slots in enumerate(parts.spans):
        read = parts.read(block, ["label", "kind"])
        labels[slots] = read["label"].fill_null(UNLABELLED).to_numpy()
        kinds[slots] = read["kind"].fill_null(len(KINDS)).to_numpy()
    if (
        labels.min(initial=-1) < UNLABELLED
        or labels.max(initial=-1) >= classes
        or not np.isin(kinds, range(len(KINDS) + 1)).all()
    ):
        raise InputError(f"{folder} has labels or kinds outside what {HEAD} declares")
    rows: RecordRows = StoredRows(parts, keep)  # type: ignore[assignment]
    lists: Lists = StoredLists(parts)  # type: ignore[assignment]
    names = parts.head.get("class_names")
    kinds = kinds.astype(np.int8)
    return Graph(
        rows=rows,
        labels=labels,
        lists=lists,
        masks={kind: kinds == number for number, kind in enumerate(KINDS)},
        classes=classes,
        directed=bool(parts.head["directed"]),
        notes=tuple(parts.head.get("notes", ())),
        class_names=None if names is None else tuple(names),
    )


def ids_of(graph: Graph) -> np.ndarray | None:
    """Who is in which slot of a graph in a folder, if the folder says so."""
    parts = graph.rows._parts  # type: ignore[attr-defined]
    if "id" not in pq.read_schema(parts.folder / parts.head["parts"][0]).names:
        return None
    columns = [parts.read(block, ["id"])["id"].to_numpy() for block in range(len(parts.spans))]
    return np.concatenate(columns).astype(str)


@dataclass(frozen=True)
class Written:
    """One block to be written."""

    x: np.ndarray
    labels: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    entries: np.ndarray
    ids: Any = None


def write_folder(folder: Path, blocks: Iterable[Written], head: dict[str, Any], per_part: int = 16) -> None:
    """Write blocks as they come; ``graph.json`` comes last, so that a folder without it is not finished."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InputError(f"{folder} is not empty: choose another folder")
    parts: list[str] = []
    nodes = arcs = 0
    writer: pq.ParquetWriter | None = None
    try:
        for number, block in enumerate(blocks):
            table = _table(block)
            if writer is None or number % per_part == 0:
                if writer is not None:
                    writer.close()
                parts.append(f"records-{len(parts):05d}.parquet")
                writer = pq.ParquetWriter(
                    folder / parts[-1], table.schema, compression="zstd", use_dictionary=["kind", "label"]
                )
                writer.add_key_value_metadata(mark())
            writer.write_table(table, row_group_size=max(1, len(table)))
            nodes, arcs = nodes + len(table), arcs + len(block.entries)
    finally:
        if writer is not None:
            writer.close()
    found = {"nodes": nodes, "arcs": arcs, "parts": parts, "digests": {name: _digest(folder / name) for name in parts}}
    write_json(folder / HEAD, {"schema": SCHEMA, **head, **found})


def _digest(path: Path) -> str:
    with pa.OSFile(str(path)) as file:
        return footer_digest(file)


def _table(block: Written) -> pa.Table:
    x = np.ascontiguousarray(block.x, dtype=np.float32)
    features = {"x": pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])} if x.shape[1] else {}
    columns = {
        "label": pa.array(block.labels.astype(np.int32), mask=block.labels < 0),
        "contacts": pa.ListArray.from_arrays(
            pa.array(block.starts.astype(np.int32)), pa.array(block.entries.astype(np.int32))
        ),
        "kind": pa.array(block.kinds.astype(np.int8), mask=block.kinds >= len(KINDS)),
    }
    return pa.table(({} if block.ids is None else {"id": block.ids}) | features | columns)


def save_folder(graph: Graph, folder: Path, blocks: int | None = None) -> None:
    """Write a graph in memory as a folder, in so many blocks."""
    from graphveil.graph.blocks import SIZE, Block, spans

    kinds = np.full(graph.nodes, len(KINDS), dtype=np.int8)
    for number, kind in enumerate(KINDS):
        kinds[graph.masks[kind]] = number
    size = SIZE if blocks is None else -(-graph.nodes // blocks)

    def written(slots: slice) -> Written:
        block = Block(graph, slots)
        values: Any = block.rows.values  # type: ignore[attr-defined]
        x = values.toarray() if hasattr(values, "toarray") else values.numpy()
        ids = None if graph.ids is None else pa.array(graph.ids[slots])
        return Written(x, block.labels, kinds[slots], block.lists.starts, block.lists.entries, ids)

    head = {
        "features": graph.features,
        "classes": graph.classes,
        "directed": graph.directed,
        "notes": list(graph.notes),
    }
    if graph.class_names is not None:
        head["class_names"] = list(graph.class_names)
    write_folder(folder, map(written, spans(graph.nodes, size)), head)
