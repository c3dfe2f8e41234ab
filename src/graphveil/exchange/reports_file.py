"""One file of reports and its description, checked when it is read: what a holder sends is not trusted to be well-formed.

Tests: ``tests/exchange/test_reports_file.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphveil.errors import InputError
from graphveil.exchange.broadcast import described
from graphveil.exchange.client import NO_LABEL
from graphveil.exchange.privatizer import SCHEMA
from graphveil.exchange.round import Round
from graphveil.files import read_json
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.plan import Release

COLUMNS = {"id": pa.string(), "contacts": pa.string(), "label": pa.int64(), "degree": pa.int64()}


@dataclass(frozen=True, eq=False)
class ReportsFile:
    """The table of ``path``, and what the file beside it says about it; ``rounds`` has the digest of what each one heard."""

    path: Path
    table: pa.Table
    holder: str
    attributes: int
    classes: int | None
    promise: Local
    lengths_in_the_clear: bool
    rounds: Mapping[str, tuple[Round, str]]
    seed: int | None

    @classmethod
    def read(cls, path: Path) -> ReportsFile:
        found = cls(path, _table(path), **_description(described(path), path))
        if len(set(found.ids)) != len(found.ids):
            raise InputError(f"{path} has two reports with the same id")
        found._check_columns()
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

    def numbers(self, letter: str) -> np.ndarray:
        """The columns ``letter0, letter1, ...`` as one table."""
        names = [name for name in self.table.column_names if _numbered(name, letter)]
        rows = [self.table[name].to_numpy() for name in sorted(names, key=lambda name: int(name[1:]))]
        return np.column_stack(rows) if rows else np.zeros((len(self.ids), 0))

    def labels(self) -> np.ndarray:
        return np.asarray(self.table["label"].fill_null(NO_LABEL).to_numpy(), dtype=np.int64)

    def _check_columns(self) -> None:
        """Everything that the description says is there, in the form that it says."""
        told = {part: [round.randomizer for round, _ in self.rounds.values() if round.part is part] for part in Part}
        wanted = {"id"}
        if told[Part.FEATURES] or self.raw(Part.FEATURES):
            wanted |= {f"f{number}" for number in range(self.attributes)}
        if told[Part.LABELS] or self.raw(Part.LABELS):
            wanted |= {"label"}
        if self.lengths_in_the_clear:
            wanted |= {"degree"}
        if self.raw(Part.EDGES) or (told[Part.EDGES] and not any(_numbered(n, "h") for n in self.table.column_names)):
            wanted |= {"contacts"}
        missing = sorted(wanted - {*self.table.column_names})
        if missing:
            raise InputError(f"{self.path} lacks the column {missing[0]!r} that its description speaks of")
        numbers = [n for n in self.table.column_names if _numbered(n, "f") or _numbered(n, "h")]
        for name in numbers + ["degree"] * ("degree" in self.table.column_names):
            column = self.table[name]
            kind = pa.types.is_integer(column.type) or (name != "degree" and pa.types.is_floating(column.type))
            if not kind or column.null_count or not pc.all(pc.is_finite(column)).as_py():
                raise InputError(f"{self.path}: column {name!r} must have a number for everybody")
        if "degree" in self.table.column_names and pc.min(self.table["degree"]).as_py() < 0:
            raise InputError(f"{self.path}: column 'degree' has a negative length of a list")
        if "label" in self.table.column_names:
            column, classes = self.table["label"], self.classes or 0
            if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
                raise InputError(f"{self.path}: column 'label' must have class numbers, or nothing")
            if column.null_count < len(column) and not 0 <= pc.min(column).as_py() <= pc.max(column).as_py() < classes:
                raise InputError(f"{self.path}: column 'label' has a class outside 0..{classes - 1}")


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
    if table["id"].null_count:
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
        made = [(Round.of(Release.from_json(entry)), str(entry["heard"])) for entry in body["rounds"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{beside} names a randomizer this version does not know: {error}") from None
    try:
        found = {
            "holder": str(body["holder"]),
            "attributes": _count(body["attributes"], 0),
            "classes": None if body["classes"] is None else _count(body["classes"], 2),
            "promise": Local.from_json(body["promise"]),
            "lengths_in_the_clear": bool(body["lengths_in_the_clear"]),
            "seed": None if body["seed"] is None else int(body["seed"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{beside} does not describe reports: {error}") from None
    return found | {"rounds": {round.name: (round, heard) for round, heard in made}}


def _count(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{value!r} is not a whole number from {least}")
    return value


def _numbered(name: str, letter: str) -> bool:
    return name[:1] == letter and name[1:].isdecimal()
