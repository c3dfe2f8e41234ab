"""Records in, reports out: every batch of records is a client's, so there is one way to randomise, in a process or a file.

A reports file is a table (``id``, one column per number of the report, ``label``) with a description beside it,
``<file>.json``: the rounds with the public parameters of their randomizers, never anything about the records. The file itself is
the memory: an existing one is never overwritten, because drawing again would spend the budget again.
Tests: ``tests/cli/test_privatize.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy.sparse as sp

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.broadcast import Broadcast, described
from graphveil.exchange.client import Client
from graphveil.exchange.randomizers import (
    BucketResponse,
    Contacts,
    Direction,
    EdgeListResponse,
    LabelHistogram,
    LabelResponse,
    LaplaceRows,
    MultiBit,
    Piecewise,
    Randomizer,
)
from graphveil.exchange.records import Batch, Records
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.files import draft, write_json
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.noise import Noise

SCHEMA = "graphveil/reports/2"
MAX_EDGES = 50_000_000
MECHANISMS: dict[str, type[Any]] = {
    "multi-bit": MultiBit,
    "piecewise": Piecewise,
    "direction": Direction,
    "laplace": LaplaceRows,
}
EDGE_MECHANISMS = ("histogram", "bucket", "list")


@dataclass(frozen=True)
class Privatizer:
    """How a table of records becomes a table of reports.

    Args:
        records: where they are, and which columns are what.
        promise: what their owners allow for this file.
        rounds: what is answered; parts that are raw are passed on, withheld ones left out.
        heard: the broadcast that rounds on edges answer.
        holder: who keeps these records.
        refuse_outside: whether attributes outside the public range are an error instead of clipped.
    """

    records: Records
    promise: Local
    rounds: tuple[Round, ...]
    heard: Broadcast | None = None
    holder: str = "all"
    refuse_outside: bool = False

    def __post_init__(self) -> None:
        for part in Part:
            spent = sum(cost(round) for round in self.rounds if round.part is part)
            if spent > self.promise.share(part) * (1 + 1e-9):
                raise PrivacyError(
                    f"{part}: the rounds cost epsilon {spent:.6g}, {self.promise.asked(part)} is allowed"
                )
            if not spent and not isinstance(self.promise.budget(part), Openness):
                raise InputError(
                    f"{part}: {self.promise.asked(part)} is asked for, but no round answers it (--broadcast?)"
                )

    def run(self, out: Path, noise: Noise, progress: Callable[[int], None] | None = None) -> dict[str, Any]:
        """Write ``out`` and its description, complete or not at all; returns what was done."""
        if out.exists():
            raise PrivacyError(
                f"{out} exists: these records have been randomised already; send the same file again, a second draw "
                "would spend the budget again"
            )
        columns, path = self.records.columns(self.promise), self.records.source.path
        seen, missed, vertices = _Ids(path), 0, 0
        with draft(out) as beside, _Writer(beside, out) as writer:
            for batch in self.records.batches(columns):
                seen.add(batch.ids)
                found, outside = self._report(batch, noise, vertices)
                if outside and self.refuse_outside:
                    raise InputError(
                        f"{path}: {outside} values near row {vertices + 1} lie outside the public range; widen --range or let "
                        f"them be clipped: {self._range()}"
                    )
                writer.write(found)
                missed, vertices = missed + outside, vertices + len(batch)
                if progress is not None:
                    progress(vertices)
            if not vertices:
                raise InputError(f"{path} has no records: a holder without vertices is left out")
            seen.finish()
            writer.close()
            write_json(described(out), self._description(len(columns), vertices, noise.seed))
        return {
            "vertices": vertices,
            "attributes": len(columns),
            "outside": missed,
            "epsilon": sum(cost(round) for round in self.rounds),
        }

    def _report(self, batch: Batch, noise: Noise, before: int) -> tuple[pa.RecordBatch, int]:
        """The columns of one batch of reports, and how many attributes were clipped."""
        own = np.arange(before, before + len(batch)) if self.heard is None else self.heard.own_slots(batch.ids)
        parts: dict[Part, Any] = {Part.FEATURES: batch.rows, Part.LABELS: batch.labels}
        if self.heard is not None and batch.contacts is not None:
            parts[Part.EDGES] = self.heard.lists(batch.ids, batch.contacts, own)
        client = Client(
            own, {part: one for part, one in parts.items() if one is not None}, self.rounds, noise, self.holder
        )
        found: dict[str, Any] = {"id": batch.ids} | self._in_the_clear(batch)
        for round in self.rounds:
            heard = None if self.heard is None or round.part is not Part.EDGES else self.heard.values
            found |= self._columns(round, client.report(round.name, heard), own)
            if round.randomizer.tells_lengths:
                found["degree"] = parts[Part.EDGES].degrees
        return pa.RecordBatch.from_pydict(found), client.clipped

    def _in_the_clear(self, batch: Batch) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if Part.FEATURES in self.promise.raw and batch.rows is not None:
            found |= _numbered("f", batch.rows)
        if Part.LABELS in self.promise.raw and batch.labels is not None:
            found["label"] = pa.array(batch.labels, mask=batch.labels < 0)
        if Part.EDGES in self.promise.raw:
            found["contacts"] = batch.contacts
        return found

    def _columns(self, round: Round, report: Report, own: np.ndarray) -> dict[str, Any]:
        """One report as columns: ``f0, f1, ...``, ``label``, noisy counts ``h0, h1, ...`` or noisy ids ``contacts``."""
        if isinstance(report.values, Contacts):
            assert self.heard is not None
            return {"contacts": self.heard.joined(report.values)}
        if round.part is Part.LABELS:
            values = np.full(len(own), -1)
            values[np.searchsorted(own, report.ids) if self.heard is None else _places(own, report.ids)] = report.values
            return {"label": pa.array(values, mask=values < 0)}
        dense = report.values.toarray() if sp.issparse(report.values) else report.values
        return _numbered("f" if round.part is Part.FEATURES else "h", np.asarray(dense))

    def _range(self) -> str:
        features = next((round.randomizer for round in self.rounds if round.part is Part.FEATURES), None)
        return f"{getattr(features, 'lower', 0.0):g}..{getattr(features, 'upper', 1.0):g}"

    def _description(self, width: int, vertices: int, seed: int | None) -> dict[str, Any]:
        heard = "" if self.heard is None else self.heard.digest
        return {
            "schema": SCHEMA,
            "holder": self.holder,
            "vertices": vertices,
            "attributes": width,
            "classes": self.records.classes,
            "promise": self.promise.to_json(),
            "rounds": [
                round.release(vertices).to_json() | {"heard": heard if round.part is Part.EDGES else ""}
                for round in self.rounds
            ],
            "seed": seed,
        }


def cost(round: Round) -> float:
    """What a round costs against the budget of its part: one vertex, or one entry of a contact list."""
    return round.randomizer.swap_epsilon if round.part is Part.EDGES else round.randomizer.epsilon


def vertex_rounds(
    promise: Local, width: int, classes: int | None, mechanism: str, lower: float, upper: float
) -> tuple[Round, ...]:
    """The rounds on features and labels for budgets that are numbers."""
    found = []
    if not isinstance(promise.features, Openness):
        if mechanism not in MECHANISMS:
            raise InputError(f"unknown mechanism {mechanism!r}; known are: {', '.join(MECHANISMS)}")
        public = {} if mechanism == "direction" else {"lower": lower, "upper": upper}
        found.append(Round("features", Part.FEATURES, MECHANISMS[mechanism](promise.features, width, **public)))
    if not isinstance(promise.labels, Openness):
        if classes is None:
            raise InputError(
                "labels with an epsilon need --label COLUMN and --classes K (the public number of classes)"
            )
        found.append(Round("labels", Part.LABELS, LabelResponse(promise.labels, classes)))
    return tuple(found)


def edge_round(mechanism: str, epsilon: float, heard: Broadcast) -> tuple[Round, Broadcast]:
    """The round that a broadcast asks for, or one by ``mechanism`` where it does not say; and the broadcast it answers."""
    if heard.round is not None:
        return heard.round, heard
    if mechanism not in EDGE_MECHANISMS:
        raise InputError(f"unknown edge mechanism {mechanism!r}; known are: {', '.join(EDGE_MECHANISMS)}")
    if mechanism == "histogram":
        histogram = LabelHistogram(epsilon, max(2, int(heard.values.max()) + 1))
        return Round("edges", Part.EDGES, histogram, "the released labels"), heard
    if mechanism == "bucket":
        found, numbered = np.unique(heard.values, return_inverse=True)  # buckets that occur are numbered 0, 1, ...
        if len(found) < 2:
            raise InputError("the broadcast has one bin: everybody is in it, use --edge-mechanism histogram or list")
        response = BucketResponse(epsilon, len(found))
        return Round("edges", Part.EDGES, response, "the released labels"), Broadcast(heard.ids, numbered)
    lists = EdgeListResponse(epsilon / 2, len(heard.values))  # half of the budget per bit: an exchange is two bits
    expected = lists.flip * lists.slots**2
    if expected > MAX_EDGES:
        raise InputError(
            f"noisy lists of all {lists.slots} people would have about {expected:.2g} entries, more than {MAX_EDGES:g}: use "
            "--edge-mechanism histogram"
        )
    return Round("edges", Part.EDGES, lists), heard


def randomizer_of(rounds: tuple[Round, ...], part: Part) -> Randomizer | None:
    """What a part of the record is randomised with, if it is."""
    return next((round.randomizer for round in rounds if round.part is part), None)


def _numbered(letter: str, rows: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{letter}{number}": column for number, column in enumerate(np.ascontiguousarray(rows.T))}


def _places(own: np.ndarray, ids: np.ndarray) -> np.ndarray:
    order = np.argsort(own)
    return np.asarray(order[np.searchsorted(own[order], ids)])


class _Ids:
    """The ids so far, as 64-bit hashes: an id that comes twice is an error, whatever batch it is in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: list[np.ndarray] = []

    def add(self, ids: pa.Array) -> None:
        self._keys.append(np.array([hash(name) for name in ids.to_pylist()], dtype=np.int64))
        self._check(self._keys[-1])

    def finish(self) -> None:
        self._check(np.concatenate(self._keys))

    def _check(self, keys: np.ndarray) -> None:
        if len(np.unique(keys)) != len(keys):
            raise InputError(f"{self.path} has two records with the same id: every vertex reports once, keep one")


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
            self._writer = kind(self.path, batch.schema)
        self._writer.write_batch(batch)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __exit__(self, *problem: object) -> None:
        self.close()
