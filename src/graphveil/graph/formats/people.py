"""The two tables of an import, batch by batch: people with their columns, edges as pairs of slots."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from graphveil.errors import DataWarning, InputError
from graphveil.graph.formats.columns import Column, category_codes, encode, expand, feature_names, infer, width_of
from graphveil.graph.formats.npz import DENSE_FROM
from graphveil.graph.formats.tables import TableFile, column_of, text_column

INFERRED = "the {} of column {!r} was read off the data and is not covered by the promise"
MANY = 1 << 20  # edges that are looked up together: each time a table of all identifiers is made


@dataclass
class NodeTable:
    """A table of people with declared columns; ``widths`` of the features are known once the first batch was read."""

    file: TableFile
    identifier: str
    label: Column | None
    features: Sequence[Column]
    zero_missing: bool
    widths: list[int] | None = field(default=None)

    @classmethod
    def declared(
        cls,
        file: TableFile,
        identifier: str | None,
        label: Column | None,
        features: Sequence[Column],
        zero_missing: bool,
        notes: list[str],
    ) -> NodeTable:
        """With ranges and classes as they were declared, or read off the data, which ``notes`` then says."""
        header = file.names()
        identifier = identifier or header[0]
        label = expand([label], header, str(file.path))[0] if label else None
        features = expand(features, header, str(file.path))
        expand([Column(identifier)], header, str(file.path))
        reserved = {identifier} | ({label.name} if label else set())
        features = [column for column in features if column.name not in reserved]
        label = _declared_label(_infer(file, [label], notes, classes=True)[0]) if label else None
        return cls(file, identifier, label, _infer(file, features, notes), zero_missing)

    def batches(self) -> Iterator[tuple[pa.Array, np.ndarray, sp.csr_matrix]]:
        """Identifiers, labels (-1: none) and features."""
        label = [self.label] if self.label else []
        needed = [*dict.fromkeys([self.identifier, *(column.name for column in [*self.features, *label])])]
        types = {column.name: pa.float64() if column.categories is None else pa.string() for column in self.features}
        types |= dict.fromkeys([self.identifier, *(column.name for column in label)], pa.string())
        row = 1
        for batch in self.file.batches(needed, types):
            ids = text_column(batch, self.identifier, self.file, row)
            labels = np.full(batch.num_rows, -1, dtype=np.int64)
            if self.label:
                labels = category_codes(self.label, column_of(batch, self.label.name))[0]
            found = [width_of(column, column_of(batch, column.name)) for column in self.features]
            if self.widths not in (None, found):
                raise InputError(f"{self.file.path} holds lists of different lengths: give lists of one length")
            self.widths = found
            yield ids, labels, _block(batch, self.features, found, self.zero_missing, row)
            row += batch.num_rows

    @property
    def width(self) -> int:
        return sum(self._widths())

    @property
    def dense(self) -> bool:
        """Whether the declared columns fill enough of a row to hold it as it is: a category is one number of many."""
        filled = sum(1 if column.categories is not None else width for column, width in self._pairs())
        return filled >= DENSE_FROM * self.width

    def feature_names(self) -> list[str]:
        return [name for column, width in self._pairs() for name in feature_names(column, width)]

    def _pairs(self) -> list[tuple[Column, int]]:
        return list(zip(self.features, self._widths(), strict=True))

    def _widths(self) -> list[int]:
        return self.widths if self.widths is not None else [width_of(column, None) for column in self.features]

    def refuse_doubles(self, ids: pa.Array) -> None:
        """Every person has one row."""
        if pc.count_distinct(ids).as_py() == len(ids):
            return
        counts = pc.value_counts(ids)
        repeated = counts.filter(pc.greater(counts.field("counts"), 1))
        raise InputError(
            f"{self.file.path} lists {len(repeated)} identifiers more than once, e.g. {repeated[0]['values'].as_py()!r}: "
            "give one row per node"
        )


class EdgeTable:
    """A table of edges, read as pairs of slots; without ``identifiers`` people are numbered as they appear."""

    def __init__(
        self, file: TableFile, source: str | None, target: str | None, identifiers: pa.Array | None, drop_unknown: bool
    ) -> None:
        header = file.names()
        if len(header) < 2 and not (source and target):
            raise InputError(f"{file.path} has one column ({header[0]!r}): edges need two; is the delimiter right?")
        self.file, self.ends = file, [source or header[0], target or header[1]]
        expand([Column(name) for name in self.ends], header, str(file.path))
        self.numbering, self.drop_unknown = identifiers is None, drop_unknown
        self.known = pa.array([], pa.large_string()) if identifiers is None else identifiers
        self.unknown = 0

    def batches(self, progress: Callable[[int], None] | None = None) -> Iterator[np.ndarray]:
        """Arrays (2, edges) of int32."""
        row = 1
        for texts in self._together():
            if self.numbering:
                row_by_row = np.arange(2 * len(texts[0])).reshape(2, -1).T.ravel()
                seen = pc.unique(pa.concat_arrays(texts).take(pa.array(row_by_row)))
                self.known = pa.concat_arrays([self.known, seen.filter(pc.invert(pc.is_in(seen, self.known)))])
            found = pc.fill_null(
                pc.index_in(pa.concat_arrays(texts), self.known), -1
            )  # each call hashes all identifiers
            codes = found.to_numpy(zero_copy_only=False).reshape(2, -1)
            lost = np.any(codes < 0, axis=0)
            if lost.any() and not self.drop_unknown:
                first = int(lost.argmax())
                name = texts[int(codes[0, first] >= 0)][first].as_py()
                raise InputError(
                    f"{self.file.path} row {row + first} names {name!r}, which is no node of the node table: add it, or "
                    "pass --drop-unknown"
                )
            self.unknown += int(lost.sum())
            yield codes[:, ~lost].astype(np.int32, copy=False)
            row += len(texts[0])
            if progress is not None:
                progress(row - 1)

    def _together(self) -> Iterator[list[pa.Array]]:
        """Sources and targets of many edges at a time."""
        waiting: list[list[pa.Array]] = []
        row = rows = 0
        many = max(MANY, len(self.known) // 4)
        for batch in self.file.batches(list(dict.fromkeys(self.ends)), dict.fromkeys(self.ends, pa.string())):
            waiting.append([text_column(batch, name, self.file, row + 1) for name in self.ends])
            row, rows = row + batch.num_rows, rows + batch.num_rows
            if rows >= many:
                yield [pa.concat_arrays(list(one)) for one in zip(*waiting, strict=True)]
                waiting, rows = [], 0
        if waiting:
            yield [pa.concat_arrays(list(one)) for one in zip(*waiting, strict=True)]


def _infer(file: TableFile, columns: Sequence[Column], notes: list[str], classes: bool = False) -> list[Column]:
    """Declared columns as they are; the others get their range or categories from a first pass over the table."""
    what = "list of classes" if classes else "range or list of categories"
    result = []
    for column in columns:
        if not column.declared:
            name = column.name
            values = (column_of(batch, name) for batch in file.batches([name], {name: pa.string()}))
            column = infer(column, values, classes=classes)
            notes.append(INFERRED.format(what, name))
            message = f"{notes[-1]}: declare it from what is publicly known, {column.pattern()}"
            warnings.warn(message, DataWarning, stacklevel=4)
        result.append(column)
    return result


def _declared_label(label: Column) -> Column:
    """A label with an integer range has the classes low, low + 1, ..., high."""
    if label.categories is not None:
        return label
    low, high = int(label.low or 0), int(label.high or 0)
    if (low, high) != (label.low, label.high) or high - low > 100_000:
        raise InputError(
            f"the label {label.name!r} is a number from {label.low:g} to {label.high:g}: declare its classes"
        )
    return replace(label, low=None, high=None, categories=tuple(str(value) for value in range(low, high + 1)))


def _block(
    batch: pa.RecordBatch, features: Sequence[Column], widths: Sequence[int], zero_missing: bool, row: int
) -> sp.csr_matrix:
    parts = [sp.coo_matrix((batch.num_rows, 0), dtype=np.float32)]
    for column, width in zip(features, widths, strict=True):
        rows, columns, values = encode(column, column_of(batch, column.name), zero_missing, row)
        parts.append(sp.coo_matrix((values, (rows, columns)), shape=(batch.num_rows, width), dtype=np.float32))
    return sp.hstack(parts, format="csr", dtype=np.float32)
