"""One file of reports and its description, checked when it is read: what a holder sends is not trusted to be well-formed.

A description that is broken or contradicts itself, and a table without the rows, columns and types it speaks of, refuse the
whole file: nothing could be said about any report. Single values that cannot be are refused one by one (``files.py``).

Tests: ``tests/exchange/test_reports_file.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphveil.errors import GraphveilError, InputError
from graphveil.exchange.broadcast import described
from graphveil.exchange.client import NO_LABEL
from graphveil.exchange.privatizer import SCHEMA
from graphveil.exchange.randomizers.base import Unit
from graphveil.exchange.round import Round, check_within
from graphveil.files import read_json
from graphveil.graph.formats.columns import first_line
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.plan import Release

DAMAGED = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError)
TYPES = {
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_null),
    "numbers": (pa.types.is_floating, pa.types.is_integer),
    "whole numbers": (pa.types.is_integer, pa.types.is_null),
}
COLUMNS = {"id": pa.string(), "contacts": pa.string(), "label": pa.int64(), "degree": pa.int64()}


@dataclass(frozen=True, eq=False)
class ReportsFile:
    """The table of ``path``, and what the file beside it says about it; ``rounds`` has the digest of what each one heard."""

    path: Path
    table: pa.Table
    holder: str
    vertices: int
    attributes: int
    classes: int | None
    promise: Local
    lengths_in_the_clear: bool
    rounds: Mapping[str, tuple[Round, str]]
    seeded: bool

    @classmethod
    def read(cls, path: Path) -> ReportsFile:
        found = cls(path, _table(path), **_description(described(path), path))
        found._check_table()
        return found

    @cached_property
    def ids(self) -> list[str]:
        names: list[str] = self.table["id"].cast(pa.string()).to_pylist()
        return names

    def answered(self, part: Part) -> tuple[str, ...]:
        """The names of the rounds on a part that are answered here."""
        return tuple(sorted(name for name, (round, _) in self.rounds.items() if round.part is part))

    def raw(self, part: Part) -> bool:
        return self.promise.budget(part) is Openness.RAW

    def numbers(self, letter: str) -> Any:
        """The columns ``letter0, letter1, ...`` as one table; NaN where a number is missing."""
        names = [name for name in self.table.column_names if _numbered(name, letter)]
        rows = [self.table[name].to_numpy() for name in sorted(names, key=lambda name: int(name[1:]))]
        return np.column_stack(rows) if rows else np.zeros((len(self.ids), 0))

    def labels(self) -> np.ma.MaskedArray:
        """Everybody's class, masked where there is none."""
        column = self.table["label"]
        there = column.is_valid().to_numpy()
        return np.ma.array(column.fill_null(NO_LABEL).to_numpy().astype(np.int64), mask=~there)

    @property
    def contacts(self) -> pa.Array | None:
        """Everybody's contacts, ids separated by spaces; None if lists are not sent."""
        return self.table["contacts"].combine_chunks() if "contacts" in self.table.column_names else None

    def lengths(self) -> np.ndarray:
        """How long everybody's list is; -1 where that is missing."""
        return np.asarray(self.table["degree"].fill_null(-1).to_numpy(), dtype=np.int64)

    def columns(self) -> dict[str, str]:
        """The columns that the description speaks of, and what is in them."""
        found = {"id": "text"}
        for part, letter in ((Part.FEATURES, "f"), (Part.EDGES, "h")):
            widths = [self.attributes] * (self.raw(part) and part is Part.FEATURES)
            widths += [round.randomizer.report_width for round, _ in self.rounds.values() if round.part is part]
            there = len(self.table.column_names)  # a forged width makes no endless dictionary
            found |= {f"{letter}{n}": "numbers" for width in widths for n in range(min(width, there))}
        listed = [round.randomizer.report_width for round, _ in self.rounds.values() if round.part is Part.EDGES]
        found |= {"contacts": "text"} if self.raw(Part.EDGES) or 0 in listed else {}
        found |= {"label": "whole numbers"} if self.raw(Part.LABELS) or self.answered(Part.LABELS) else {}
        return found | ({"degree": "whole numbers"} if self.lengths_in_the_clear else {})

    def _check_table(self) -> None:
        """The rows and columns that the description says, each with what it says; single values are for the collector."""
        if len(self.ids) != self.vertices:
            raise InputError(
                f"{self.path} has {len(self.ids)} reports, its description speaks of {self.vertices}: it was cut, or belongs "
                "to another description"
            )
        if len(set(self.ids)) != len(self.ids):
            raise InputError(f"{self.path} has two reports with the same id")
        wanted, there = self.columns(), self.table.column_names
        for name in sorted({*wanted} ^ {*there}):
            lacks = name in wanted
            raise InputError(
                f"{self.path} {'lacks the' if lacks else 'has a'} column {name!r} that its description "
                f"{'speaks' if lacks else 'does not speak'} of"
            )
        for name, kind in wanted.items():
            if not any(fits(self.table[name].type) for fits in TYPES[kind]):
                raise InputError(f"{self.path}: column {name!r} has type {self.table[name].type}, it must have {kind}")


def _table(path: Path) -> pa.Table:
    source = TableFile(path)
    names = source.names()
    if "id" not in names:
        raise InputError(f"{path} has no column 'id': is it a file that 'graphveil privatize' wrote?")
    types = COLUMNS | {name: pa.float64() for name in names if _numbered(name, "f") or _numbered(name, "h")}
    batches = list(source.batches(names, {name: types[name] for name in names if name in types}))
    if not batches:
        raise InputError(f"{path} has no reports")
    table = pa.Table.from_batches(batches)
    if table["id"].null_count or "" in table["id"].cast(pa.string()).to_pylist():
        raise InputError(f"{path} has a report without an id")
    return table


def _description(beside: Path, path: Path) -> dict[str, Any]:
    """The fields of the file beside a file of reports."""
    if not beside.exists():
        raise InputError(f"{beside} is missing: it says how {path} was randomised, keep the two together")
    body = read_json(beside)
    if not isinstance(body, dict) or body.get("schema") != SCHEMA:
        found = body.get("schema") if isinstance(body, dict) else None
        raise InputError(f"{beside} has schema {found!r}; this version reads {SCHEMA!r}")
    try:
        made: list[tuple[Round, str]] = [
            (Round.of(Release.from_json(entry)), str(entry["heard"])) for entry in body["rounds"]
        ]
    except (*DAMAGED, GraphveilError) as error:
        raise InputError(f"{beside} names a randomizer this version does not know: {first_line(error)}") from None
    try:
        found = {
            "holder": str(body["holder"]),
            "vertices": _count(body["vertices"], 1),
            "attributes": _count(body["attributes"], 0),
            "classes": None if body["classes"] is None else _count(body["classes"], 2),
            "promise": Local.from_json(body["promise"]),
            "lengths_in_the_clear": _truth(body["lengths_in_the_clear"]),
            "seeded": _truth(body["seeded"]),
        }
        _check_agreement(found, [round for round, _ in made])
    except (*DAMAGED, GraphveilError) as error:
        raise InputError(f"{beside} does not describe reports: {first_line(error)}") from None
    return found | {"rounds": {round.name: (round, heard) for round, heard in made}}


def _check_agreement(found: Mapping[str, Any], rounds: Sequence[Round]) -> None:
    """An error if the fields of a description contradict each other: nothing could be said about what was sent."""
    check_within(found["promise"], rounds)
    if min(len({round.part for round in rounds}), len({round.name for round in rounds})) < len(rounds):
        raise ValueError("two rounds are about the same part, or have the same name")
    if found["lengths_in_the_clear"] != any(round.randomizer.tells_lengths for round in rounds):
        raise ValueError("its rounds say otherwise whether the lengths of contact lists are told")
    if found["classes"] is None and found["promise"].labels is not Openness.WITHHELD:
        raise ValueError("there are labels and no number of classes")
    for round in rounds:
        randomizer: Any = round.randomizer
        numbers = randomizer.report_width > 0
        fits = {
            Part.FEATURES: randomizer.unit is Unit.VERTEX and numbers and randomizer.width == found["attributes"],
            Part.LABELS: randomizer.unit is Unit.VERTEX and not numbers and randomizer.classes == found["classes"],
            Part.EDGES: randomizer.unit is not Unit.VERTEX,
        }
        if not fits[round.part]:
            raise ValueError(f"{randomizer.kind} is not for these {round.part}, or for another number of them")


def _count(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{value!r} is not a whole number from {least}")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _numbered(name: str, letter: str) -> bool:
    return name[:1] == letter and name[1:].isdecimal()
