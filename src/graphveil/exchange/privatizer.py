"""Records in, reports out: every batch of records is a client's, so there is one way to randomise, in a process or a file.

A reports file is a table (``id``, one column per number of the report, ``label``) with a description beside it,
``<file>.json``: the rounds with the public parameters of their randomizers, never anything about the records, nor a seed. Nothing
is drawn twice: an existing file is not overwritten, and a folder remembers the records of all files (``memory.py``).
Tests: ``tests/cli/test_privatize.py``, ``tests/cli/test_memory.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy.sparse as sp

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange import randomizers
from graphveil.exchange.broadcast import Broadcast, described
from graphveil.exchange.client import Client
from graphveil.exchange.memory import FOLDER, Memory
from graphveil.exchange.randomizers.base import Contacts, Randomizer, RowRandomizer
from graphveil.exchange.records import Batch, Records
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round, check_within
from graphveil.files import draft, write_json
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise
from graphveil.privacy.promise import Relation

SCHEMA = "graphveil/reports/3"
MAX_EDGES = 50_000_000
MECHANISMS: dict[str, type[Any]] = {
    "multi-bit": randomizers.MultiBit,
    "piecewise": randomizers.Piecewise,
    "direction": randomizers.Direction,
    "laplace": randomizers.LaplaceRows,
}
EDGE_MECHANISMS = ("histogram", "bucket", "list")


@dataclass(frozen=True)
class Privatizer:
    """How a table of records becomes a table of reports; parts that are raw are passed on, withheld ones left out."""

    records: Records
    promise: Local  # what their owners allow for this file
    rounds: tuple[Round, ...]  # what is answered
    heard: Broadcast | None = None  # what rounds on edges answer to
    holder: str = "all"
    refuse_outside: bool = False  # whether attributes outside the public range are an error instead of clipped
    newcomers: bool = False  # whether these people came after the broadcast, and ask for their score

    def __post_init__(self) -> None:
        check_within(self.promise, self.rounds)
        if self.newcomers and any(one.part is Part.EDGES and not one.randomizer.report_width for one in self.rounds):
            raise InputError("people who are not in the broadcast can answer with counts or means, not with lists")
        if not self.rounds and not self.promise.raw:
            asked = "give --features-epsilon, --labels-epsilon or --edges-epsilon"
            raise InputError(f"everything is withheld, there is nothing to send: {asked}")

    @property
    def tells_lengths(self) -> bool:
        """Whether a round sends how long everybody's contact list is."""
        return any(round.randomizer.tells_lengths for round in self.rounds)

    @property
    def epsilon(self) -> float | None:
        """What everybody pays in all; None if nothing is randomised, or if features or labels are sent in the clear."""
        if not self.rounds or {Part.FEATURES, Part.LABELS} & {*self.promise.raw}:
            return None
        return sum(round.randomizer.cost for round in self.rounds)

    def run(
        self, out: Path, noise: Noise, progress: Callable[[int], None] | None = None, memory: Path | None = None
    ) -> dict[str, Any]:
        """Write ``out`` and its description, complete or not at all; returns what was done.

        ``memory``: the folder that remembers what was randomised; default: one beside the records.
        """
        if out.exists():
            raise PrivacyError(
                f"{out} exists: these records have been randomised already; send the same file again, a second draw "
                "would spend the budget again"
            )
        if out.suffix not in (".csv", ".parquet"):
            raise InputError(f"--out is {out}: give a name that ends in .parquet or .csv")
        kind = pa.parquet.ParquetWriter if out.suffix == ".parquet" else pa.csv.CSVWriter
        columns, path = self.records.columns(self.promise), self.records.source.path
        known = Memory(memory or path.parent / FOLDER)
        missed = vertices = 0
        hashes: list[np.ndarray] = []
        with draft(out) as beside:
            with ExitStack() as stack:
                writer: Any = None
                for batch in self.records.batches(columns):
                    hashes.append(known.digests(batch.ids.to_pylist()))
                    _check_once(hashes[-1:], path)
                    found, outside = self.report(batch, noise, vertices)
                    if outside and self.refuse_outside:
                        asked = (round.randomizer for round in self.rounds)
                        features = next(one for one in asked if isinstance(one, RowRandomizer))
                        raise InputError(
                            f"{path}: {outside} values near row {vertices + 1} lie outside the public range "
                            f"{features.lower:g}..{features.upper:g}; widen --range or let them be clipped"
                        )
                    writer = writer or stack.enter_context(kind(beside, found.schema))
                    writer.write_batch(found)
                    missed, vertices = missed + outside, vertices + len(batch)
                    if progress is not None:
                        progress(vertices)
                if not vertices:
                    raise InputError(f"{path} has no records: a holder without vertices is left out")
                _check_once(hashes, path)
            known.keep(self.rounds, np.concatenate(hashes), out)
            write_json(described(out), self._description(len(columns), vertices, noise.seed is not None))
        return {
            "vertices": vertices,
            "attributes": len(columns),
            "outside": missed,
            "epsilon": self.epsilon,
            "epsilons": {round.part.value: round.randomizer.cost for round in self.rounds},
            "delta": sum(round.randomizer.delta for round in self.rounds),
            "lengths_in_the_clear": self.tells_lengths,
        }

    def report(self, batch: Batch, noise: Noise, before: int) -> tuple[pa.RecordBatch, int]:
        """The columns of one batch of reports, and how many attributes were clipped."""
        own = np.arange(before, before + len(batch))
        if self.heard is not None:
            own = own + len(self.heard.ids) if self.newcomers else self.heard.own_slots(batch.ids)
        parts: dict[Part, Any] = {Part.FEATURES: batch.rows, Part.LABELS: batch.labels}
        if self.heard is not None and batch.contacts is not None:
            parts[Part.EDGES] = self.heard.lists(batch.ids, batch.contacts, own)
        records = {part: one for part, one in parts.items() if one is not None}
        client = Client(own, records, self.rounds, noise, self.holder)
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
            order = np.argsort(own)
            values[order[np.searchsorted(own[order], report.ids)]] = report.values
            return {"label": pa.array(values, mask=values < 0)}
        dense = report.values.toarray() if sp.issparse(report.values) else report.values
        return _numbered("f" if round.part is Part.FEATURES else "h", np.asarray(dense))

    def _description(self, width: int, vertices: int, seeded: bool) -> dict[str, Any]:
        heard = "" if self.heard is None else self.heard.digest
        return {
            "schema": SCHEMA,
            "holder": self.holder,
            "vertices": vertices,
            "attributes": width,
            "classes": self.records.classes,
            "promise": self.promise.to_json(),
            "lengths_in_the_clear": self.tells_lengths,
            "rounds": [
                round.release(vertices).to_json() | {"heard": heard if round.part is Part.EDGES else ""}
                for round in self.rounds
            ],
            "seeded": seeded,
        }


def feature_randomizer(mechanism: str, width: int, lower: float, upper: float, budget: float) -> Randomizer:
    """The randomizer of features of this name."""
    if mechanism not in MECHANISMS:
        raise InputError(f"unknown mechanism {mechanism!r}; known are: {', '.join(MECHANISMS)}")
    public = {} if mechanism == "direction" else {"lower": lower, "upper": upper}
    found: Randomizer = MECHANISMS[mechanism](budget, width, **public)
    return found


def edge_round(
    mechanism: str, epsilon: float, heard: Broadcast, relation: Relation = Relation.REPLACE
) -> tuple[Round, Broadcast]:
    """The round that a broadcast asks for, or one by ``mechanism`` where it does not say; and the broadcast it answers."""
    if heard.round is not None:
        return heard.round, heard
    if mechanism not in EDGE_MECHANISMS:
        raise InputError(f"unknown edge mechanism {mechanism!r}; known are: {', '.join(EDGE_MECHANISMS)}")
    comes_or_goes = relation is Relation.ZERO_OUT
    if comes_or_goes and mechanism != "histogram":
        raise InputError(f"--edge-mechanism {mechanism} covers an exchange: --relation zero-out takes histogram")
    if mechanism == "histogram":
        lengths = "hidden" if comes_or_goes else "public"
        histogram = randomizers.LabelHistogram(epsilon, max(2, int(heard.values.max()) + 1), lengths, relation.value)
        return Round("edges", Part.EDGES, histogram, "the released labels"), heard
    if mechanism == "bucket":
        found, numbered = np.unique(heard.values, return_inverse=True)  # buckets that occur are numbered 0, 1, ...
        if len(found) < 2:
            raise InputError("the broadcast has one bin: everybody is in it, use --edge-mechanism histogram or list")
        response = randomizers.BucketResponse(epsilon, len(found))
        return Round("edges", Part.EDGES, response, "the released labels"), Broadcast(heard.ids, numbered)
    lists = randomizers.EdgeListResponse(epsilon / 2, len(heard.values))  # half of it per bit: an exchange is two bits
    expected = lists.flip * lists.slots**2
    if expected > MAX_EDGES:
        raise InputError(
            f"noisy lists of all {lists.slots} people would have about {expected:.2g} entries, more than {MAX_EDGES:g}: use "
            "--edge-mechanism histogram"
        )
    return Round("edges", Part.EDGES, lists), heard


def _numbered(letter: str, rows: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{letter}{number}": column for number, column in enumerate(np.ascontiguousarray(rows.T))}


def _check_once(hashes: list[np.ndarray], path: Path) -> None:
    """An id that comes twice is an error, whatever batch it is in."""
    keys = np.concatenate(hashes)
    if len(np.unique(keys)) != len(keys):
        raise InputError(f"{path} has two records with the same id: every vertex reports once, keep one")
