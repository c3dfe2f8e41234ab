"""People's own records where they are kept: tables and graph files, read in batches so that memory does not grow with them.

What is wrong with a record is said without the record: errors name columns and rows, never a value.
Tests: ``tests/cli/test_privatize.py``, ``tests/exchange/test_client_records.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.graph import Graph
from graphveil.graph.folder import ids_of, open_folder
from graphveil.graph.formats.columns import first_line
from graphveil.graph.formats.npz import read_arrays
from graphveil.graph.formats.tables import TableFile, text_column
from graphveil.privacy.local import Local, Part

ROWS = 1 << 14


@dataclass(frozen=True)
class Batch:
    """Some records: ids, and the parts that were asked for."""

    ids: pa.Array
    rows: np.ndarray | None
    labels: np.ndarray | None
    contacts: pa.Array | None

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, chosen: np.ndarray) -> Batch:
        """Some of them, by a mask."""
        kept = pa.array(chosen)
        return Batch(
            self.ids.filter(kept),
            None if self.rows is None else self.rows[chosen],
            None if self.labels is None else self.labels[chosen],
            None if self.contacts is None else self.contacts.filter(kept),
        )


@dataclass(frozen=True)
class Records:
    """Which columns of a table (or of a graph file that looks like one) are what."""

    source: TableFile
    identifier: str | None = None  # default: the first column
    features: tuple[str, ...] = ("*",)  # names or patterns
    label: str | None = None
    contacts: str | None = None  # ids separated by spaces
    classes: int | None = None  # the public number of them

    def __post_init__(self) -> None:
        if type(self.source) is TableFile:
            object.__setattr__(self, "source", PrivateTable(**vars(self.source)))

    @classmethod
    def of_graph(cls, path: Path, classes: int | None = None) -> Records:
        """The records of a graph file or folder."""
        source = FolderSource(path) if path.is_dir() else GraphSource(path)
        return cls(source, "id", ("x*",), "label", "contacts", source.classes if classes is None else classes)

    def columns(self, promise: Local) -> list[str]:
        """The feature columns that leave in some form, in the order of the table; an error if a column is missing."""
        names, path = self.source.names(), self.source.path
        for wanted in (self.identifier, self.label, self.contacts):
            if wanted is not None and wanted not in names:
                raise InputError(f"{path} has no column {wanted!r}; it has: {', '.join(names[:12])}")
        if Part.EDGES not in promise.withheld and self.contacts is None:
            raise InputError("edges need --contacts COLUMN: the ids of everybody's contacts, separated by spaces")
        if Part.FEATURES in promise.withheld:
            return []
        taken = {self.identifier or names[0], self.label, self.contacts}
        found = [name for name in names if name not in taken and any(fnmatchcase(name, p) for p in self.features)]
        if not found:
            raise InputError(f"{path} has no feature column; say --features-epsilon withheld")
        return found

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The records, some at a time."""
        key, path = self.identifier or self.source.names()[0], self.source.path
        others = [name for name in (self.label, self.contacts) if name is not None]
        types = dict.fromkeys(columns, pa.float64()) | {name: pa.string() for name in (key, self.contacts) if name}
        before = 0
        for whole in self.source.batches([key, *columns, *others], types):
            for start in range(0, whole.num_rows, ROWS):
                part = whole.slice(start, ROWS)
                ids = text_column(part, key, self.source, before + 1)
                rows = np.column_stack([_numbers(part, name, path) for name in columns]) if columns else None
                labels = None if self.label is None else _labels(part, self.label, self.classes, path)
                yield Batch(ids, rows, labels, None if self.contacts is None else part.column(self.contacts))
                before += part.num_rows


def _cast(batch: pa.RecordBatch, name: str, kind: pa.DataType, problem: str) -> pa.Array:
    try:
        return pc.cast(batch.column(name), kind)
    except pa.ArrowException:
        raise InputError(problem) from None


def _numbers(batch: pa.RecordBatch, name: str, path: Path) -> np.ndarray:
    problem = f"column {name!r} of {path} is not numeric: leave it out of --features"
    values = np.asarray(_cast(batch, name, pa.float64(), problem).to_numpy(zero_copy_only=False))
    if not np.isfinite(values).all():
        raise InputError(f"column {name!r} of {path} has an empty or non-finite value: fill it in first")
    return values


def _labels(batch: pa.RecordBatch, name: str, classes: int | None, path: Path) -> np.ndarray:
    problem = f"column {name!r} of {path}: labels are whole numbers from 0, empty for none"
    values = np.array(pc.fill_null(_cast(batch, name, pa.int64(), problem), -1).to_numpy(zero_copy_only=False))
    if classes is not None and values.size and (values.max() >= classes or values.min() < -1):
        raise InputError(f"column {name!r} of {path} has a label outside 0..{classes - 1}")
    return values


class PrivateTable(TableFile):
    """A table whose values are nobody's business: the reader's errors quote them, these do not."""

    def _problem(self, error: Exception) -> InputError:
        text = first_line(error)
        if "conversion error" in text:
            return InputError(
                f"cannot read {self.path}: a column of numbers has a value that is not numeric; --features names the columns"
            )
        if width := re.search(r"Expected \d+ columns, got \d+", text):
            return InputError(f"cannot read {self.path}: a row is damaged ({width[0].lower()})")
        return super()._problem(error)


class GraphSource(TableFile):
    """A graph file as a table; features are made dense batch by batch."""

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return read_arrays(self.path)

    @cached_property
    def _features(self) -> sp.csr_matrix:
        arrays = self._arrays
        data = np.ones(len(arrays["x_indices"])) if arrays["x_binary"] else arrays["x_data"].astype(np.float64)
        shape = (int(arrays["x_shape"][0]), int(arrays["x_shape"][1]))
        return sp.csr_matrix((data, arrays["x_indices"], arrays["x_indptr"]), shape=shape)

    @cached_property
    def _labels(self) -> np.ndarray:
        labels = self._arrays.get("y", np.full(self._features.shape[0], -1)).astype(np.int64)
        labels[self._arrays.get("unlabeled_nodes", np.empty(0, dtype=np.int64))] = -1
        return labels

    @cached_property
    def _lists(self) -> sp.csr_matrix:
        """Row k is k's own contact list: both directions of an undirected edge, or the arcs of a directed graph."""
        directed = bool(self._arrays.get("directed", False)) and "directed_edge_index" in self._arrays
        pairs = self._arrays["directed_edge_index" if directed else "edge_index"]
        nodes = self._features.shape[0]
        matrix = sp.coo_matrix((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), (nodes, nodes)).tocsr()
        matrix = matrix if directed else matrix + matrix.T
        matrix.setdiag(0)
        matrix.eliminate_zeros()
        return sp.csr_matrix(matrix)

    @property
    def classes(self) -> int | None:
        """The number of classes if the file declares it; never counted from the labels, which are private."""
        declared = self._arrays.get("num_classes")
        return None if declared is None else int(declared)

    def names(self) -> list[str]:
        return ["id", *(f"x{number}" for number in range(self._features.shape[1])), "label", "contacts"]

    def batches(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        for start in range(0, self._features.shape[0], ROWS):
            rows = np.asfortranarray(self._features[start : start + ROWS].toarray())
            ids = np.arange(start, start + len(rows))
            found: dict[str, Any] = {name: rows[:, int(name[1:])] for name in columns if name[:1] == "x"}
            if "label" in columns:
                found["label"] = pa.array(self._labels[ids], mask=self._labels[ids] < 0)
            if "contacts" in columns:
                found["contacts"] = [" ".join(map(str, self._lists[vertex].indices)) for vertex in ids]
            yield pa.RecordBatch.from_pydict({"id": ids, **found})


class FolderSource(TableFile):
    """A graph in a folder as a table, read block by block; ids alone come into memory."""

    @cached_property
    def _graph(self) -> Graph:
        return open_folder(self.path, keep=0)

    @cached_property
    def _ids(self) -> pa.Array:
        ids = ids_of(self._graph)
        return pa.array(np.arange(self._graph.nodes) if ids is None else ids).cast(pa.string())

    @property
    def classes(self) -> int:
        return self._graph.classes

    def names(self) -> list[str]:
        return ["id", *(f"x{number}" for number in range(self._graph.features)), "label", "contacts"]

    def batches(self, columns: Sequence[str], types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        wanted = [int(name[1:]) for name in columns if name[:1] == "x"]
        for block in self._graph.blocks():
            found: dict[str, Any] = {"id": self._ids.slice(block.slots.start, len(block))}
            if wanted:
                rows = np.asfortranarray(block.rows.values.numpy().astype(np.float64))  # type: ignore[union-attr]
                found |= {f"x{number}": rows[:, number] for number in wanted}
            if "label" in columns:
                found["label"] = pa.array(block.labels, mask=block.labels < 0)
            if "contacts" in columns:
                named = self._ids.take(pa.array(block.lists.entries))
                lists = pa.ListArray.from_arrays(pa.array(block.lists.starts.astype(np.int32)), named)
                found["contacts"] = pc.binary_join(lists, " ")
            yield pa.RecordBatch.from_pydict(found)
