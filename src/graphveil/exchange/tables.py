"""Records in, reports out: tables are streamed in batches, so that memory does not grow with the number of people.

A reports file is a table (``id``, one column per number of the report, ``label``) with a description beside it,
``<file>.json``: the public parameters of the randomizers, never anything about the records. The file itself is the memory:
an existing one is never overwritten, because drawing again would spend the budget again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import scipy.sparse as sp

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.edge_tables import EdgeReporter
from graphveil.exchange.graph_source import GraphSource
from graphveil.exchange.randomizers import Direction, LabelResponse, LaplaceRows, MultiBit, Piecewise, Randomizer
from graphveil.exchange.randomizers.base import outside
from graphveil.graph.formats.tables import TableFile, text_column
from graphveil.privacy.local import Local, Openness
from graphveil.privacy.noise import Noise

SCHEMA = "graphveil/reports/1"
CHUNK = 1 << 14
MECHANISMS: dict[str, type[Any]] = {
    "multi-bit": MultiBit,
    "piecewise": Piecewise,
    "direction": Direction,
    "laplace": LaplaceRows,
}


@dataclass(frozen=True)
class Privatizer:
    """How a table of records becomes a table of reports; contacts with an epsilon are randomised by ``edges``."""

    source: TableFile | GraphSource
    promise: Local
    identifier: str | None = None
    features: tuple[str, ...] = ("*",)
    label: str | None = None
    contacts: str | None = None
    classes: int | None = None
    lower: float = 0.0
    upper: float = 1.0
    mechanism: str = "multi-bit"
    refuse_outside: bool = False
    holder: str = "all"
    edges: EdgeReporter | None = None

    def run(self, out: Path, noise: Noise, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Write ``out`` and its description, complete or not at all; returns what was done."""
        if out.exists():
            raise PrivacyError(
                f"{out} exists: these records have been randomised already; send the same file again, a second draw "
                "would spend the budget again"
            )
        columns = self._columns()
        width = len(columns)
        features, labels = self.feature_randomizer(width), self.label_randomizer()
        edges = None if self.edges is None else self.edges.randomizer
        draft = out.with_name(f".{out.name}.part")
        ids: list[np.ndarray] = []
        missed = vertices = 0
        try:
            with _Writer(draft, out) as writer:
                for batch in self._batches(columns):
                    found, count, keys = self._report(batch, columns, features, labels, noise, vertices)
                    writer.write(found)
                    ids.append(keys)
                    missed += count
                    vertices += len(found)
                    if progress is not None:
                        progress(vertices)
            if not vertices:
                raise InputError(f"{self.source.path} has no records: a holder without vertices is left out")
            _refuse_duplicates(self.source.path, ids)
            body = self._description(width, features, labels, vertices, noise.seed)
            description(out).write_text(json.dumps(body, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            os.replace(draft, out)
        finally:
            draft.unlink(missing_ok=True)
        epsilon = _sum(features, labels) + (0.0 if edges is None else edges.swap_epsilon)
        return {"vertices": vertices, "attributes": width, "outside": missed, "epsilon": epsilon}

    def feature_randomizer(self, width: int) -> Randomizer | None:
        if isinstance(self.promise.features, Openness):
            return None
        if not width:
            raise InputError(f"{self.source.path} has no feature column; say --features-epsilon withheld")
        if self.mechanism not in MECHANISMS:
            raise InputError(f"unknown mechanism {self.mechanism!r}; known are: {', '.join(MECHANISMS)}")
        public = {} if self.mechanism == "direction" else {"lower": self.lower, "upper": self.upper}
        found: Randomizer = MECHANISMS[self.mechanism](self.promise.features, width, **public)
        return found

    def label_randomizer(self) -> LabelResponse | None:
        if isinstance(self.promise.labels, Openness):
            return None
        if self.label is None or self.classes is None:
            raise InputError(
                "labels with an epsilon need --label COLUMN and --classes K (the public number of classes)"
            )
        return LabelResponse(self.promise.labels, self.classes)

    def _columns(self) -> list[str]:
        """The feature columns, in the order of the table."""
        names = self.source.names()
        for wanted in (self.identifier, self.label, self.contacts):
            if wanted is not None and wanted not in names:
                raise InputError(f"{self.source.path} has no column {wanted!r}; it has: {', '.join(names[:12])}")
        if (self.edges is None) != isinstance(self.promise.edges, Openness):
            raise InputError("edges with an epsilon need --broadcast FILE: who takes part, and their released labels")
        if self.promise.edges is not Openness.WITHHELD and self.contacts is None:
            raise InputError("edges need --contacts COLUMN: the ids of everybody's contacts, separated by spaces")
        if self.promise.features is Openness.WITHHELD:
            return []
        taken = {self.identifier or names[0], self.label, self.contacts}
        return [n for n in names if n not in taken and any(fnmatchcase(n, p) for p in self.features)]

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        key = self.identifier or self.source.names()[0]
        others = [name for name in (self.label, self.contacts) if name is not None]
        types = dict.fromkeys(columns, pa.float64()) | {name: pa.string() for name in (key, self.contacts) if name}
        for batch in self.source.batches([key, *columns, *others], types):
            for start in range(0, batch.num_rows, CHUNK):
                yield batch.slice(start, CHUNK)

    def _report(
        self,
        batch: pa.RecordBatch,
        columns: list[str],
        features: Randomizer | None,
        labels: LabelResponse | None,
        noise: Noise,
        before: int,
    ) -> tuple[pa.RecordBatch, int, np.ndarray]:
        key = self.identifier or batch.schema.names[0]
        ids = text_column(batch, key, self.source, before + 1)
        found: dict[str, Any] = {"id": ids}
        missed = 0
        if columns:
            rows = np.column_stack([_numbers(batch, name, self.source.path) for name in columns])
            if self.mechanism != "direction":
                missed = outside(rows, self.lower, self.upper)
            if missed and self.refuse_outside:
                raise InputError(
                    f"{self.source.path}: {missed} values near row {before + 1} lie outside the public range "
                    f"{self.lower:g}..{self.upper:g}; widen --range or let them be clipped"
                )
            reports = rows if features is None else features.randomize(rows, None, noise)
            dense = reports.toarray() if sp.issparse(reports) else reports
            found |= {f"f{number}": column for number, column in enumerate(np.ascontiguousarray(dense.T))}
        if self.label is not None and self.promise.labels is not Openness.WITHHELD:
            values = _labels(batch, self.label, self.classes, self.source.path)
            there = values >= 0
            if labels is not None:
                values[there] = labels.randomize(values[there], None, noise)
            found["label"] = pa.array(values, mask=~there)
        if self.contacts is not None and self.promise.edges is not Openness.WITHHELD:
            contacts = batch.column(batch.schema.get_field_index(self.contacts))
            found |= {"contacts": contacts} if self.edges is None else self.edges.columns(ids, contacts, noise)
        keys = np.array([hash(name) for name in ids.to_pylist()], dtype=np.int64)
        return pa.RecordBatch.from_pydict(found), missed, keys

    def _description(
        self, width: int, features: Randomizer | None, labels: LabelResponse | None, vertices: int, seed: int | None
    ) -> dict[str, Any]:
        from graphveil.exchange.certificate import public_parameters

        rounds: list[tuple[str, Randomizer | None, str]] = [
            ("features", features, self.mechanism),
            ("labels", labels, "label-response"),
        ]
        if self.edges is not None:
            rounds.append(("edges", self.edges.randomizer, self.edges.mechanism))
        return {
            "schema": SCHEMA,
            "holder": self.holder,
            "vertices": vertices,
            "attributes": width,
            "classes": self.classes,
            "promise": self.promise.to_json(),
            "rounds": [
                {"part": part, "mechanism": name, "parameters": public_parameters(randomizer)}
                for part, randomizer, name in rounds
                if randomizer is not None
            ],
            "heard": None if self.edges is None else self.edges.broadcast.digest,
            "seed": seed,
        }


def description(reports: Path) -> Path:
    """The file beside a reports file that says how it was made."""
    return reports.with_name(reports.name + ".json")


class _Writer:
    """Appends record batches to a CSV or Parquet file."""

    def __init__(self, path: Path, name: Path) -> None:
        if name.suffix not in (".csv", ".parquet"):
            raise InputError(f"--out is {name}: give a name that ends in .parquet or .csv")
        self.path, self.parquet = path, name.suffix == ".parquet"
        self._writer: Any = None

    def __enter__(self) -> _Writer:
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            kind = pa.parquet.ParquetWriter if self.parquet else pa.csv.CSVWriter
            try:
                self._writer = kind(self.path, batch.schema)
            except OSError as error:
                raise InputError(f"cannot write {self.path.parent}: {error.strerror or error}") from None
        self._writer.write_batch(batch)

    def __exit__(self, *problem: object) -> None:
        if self._writer is not None:
            self._writer.close()


def _numbers(batch: pa.RecordBatch, name: str, path: Path) -> np.ndarray:
    column = batch.column(batch.schema.get_field_index(name))
    try:
        values = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise InputError(f"column {name!r} of {path} is not numeric: leave it out of --features") from None
    if not np.isfinite(values).all():
        raise InputError(f"column {name!r} of {path} has an empty or non-finite value: fill it in first")
    return np.asarray(values)


def _labels(batch: pa.RecordBatch, name: str, classes: int | None, path: Path) -> np.ndarray:
    column = batch.column(batch.schema.get_field_index(name))
    try:
        values = pc.fill_null(pc.cast(column, pa.int64()), -1).to_numpy(zero_copy_only=False).copy()
    except pa.ArrowException:
        raise InputError(f"column {name!r} of {path}: labels are whole numbers from 0, empty for none") from None
    if classes is not None and values.size and (values.max() >= classes or values.min() < -1):
        raise InputError(f"column {name!r} of {path} has a label outside 0..{classes - 1}")
    return np.asarray(values)


def _refuse_duplicates(path: Path, ids: list[np.ndarray]) -> None:
    keys = np.concatenate(ids)
    if len(np.unique(keys)) != len(keys):
        raise InputError(f"{path} has two records with the same id: every vertex reports once, keep one")


def _sum(*randomizers: Randomizer | None) -> float:
    return sum(randomizer.epsilon for randomizer in randomizers if randomizer is not None)
