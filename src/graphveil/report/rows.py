"""Finished runs as rows: read them, and tell which of them may stand side by side.

A row is what the store of experiments exports, one JSON object a line: the method with its options, the data, the promise, and
what was proved and measured. Rows are compared under one notion of privacy only: level, adjacency and relation with their bounds,
or in the local model what is sent in the clear, withheld or randomised, with the budgets of all parts but the one on the axis.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.experiments.checked import Row as Row
from graphveil.experiments.checked import is_number
from graphveil.experiments.checked import private as private
from graphveil.experiments.run import REPORTS, TRAINING
from graphveil.experiments.summary import once
from graphveil.privacy.local import LISTS_ONLY_IN_PLAIN_WORDS, Part
from graphveil.privacy.promise import IN_PLAIN_WORDS, Adjacency, Level, Relation

ACCURACY = "test_accuracy"
NOT_COVERED, DOES_NOT_HOLD = "†", "‡"
MARKS = {
    NOT_COVERED: "selected on private data: not covered by the promise",
    DOES_NOT_HOLD: "the promise does not hold (known gaps)",
}
AXIS = "epsilon on the axis"


def read_rows(path: Path) -> list[Row]:
    """The runs of a store of experiments or of its export, those that two experiments share once; a page needs at least one."""
    from graphveil.experiments.export import read_rows as of_any_form

    found = once(of_any_form(path))
    if not found:
        raise InputError(f"{path} has no rows; run 'graphveil sweep' first")
    return found


@dataclass(frozen=True)
class Notion:
    """What is protected, and from what: rows under two notions never share a panel or a table."""

    level: str
    adjacency: str
    relation: str
    bound: str = ""
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def axis(self) -> str:
        """The part of a local record whose epsilon is on the axis; empty if there is only one epsilon."""
        return next((part for part, shown in self.parts if shown == AXIS), "")

    @property
    def title(self) -> str:
        if self.level == Level.LOCAL:
            change = ["one entry there or not"] if self.lists_only else []
            return f"local model ({', '.join([*(f'{part}: {value}' for part, value in self.parts), *change])})"
        return f"{self.level} level ({', '.join(filter(None, (self.adjacency, self.relation, self.bound)))})"

    @property
    def lists_only(self) -> bool:
        """Whether an entry of a contact list, there or not, is all that epsilon is for."""
        return self.level == Level.LOCAL and self.relation == Relation.ZERO_OUT

    @property
    def words(self) -> str:
        if self.lists_only:
            return LISTS_ONLY_IN_PLAIN_WORDS
        return IN_PLAIN_WORDS[Adjacency(self.adjacency)]

    @property
    def epsilon_label(self) -> str:
        return f"epsilon of {self.axis}" if self.axis else "epsilon"

    def epsilon(self, row: Row) -> float:
        return float(row["parts"][self.axis] if self.axis else row["epsilon_target"])


@dataclass(frozen=True)
class Setting:
    """What else must agree within a panel: the data, how they were prepared and split, and delta."""

    dataset: str
    preparation: str = ""
    split: str = ""
    delta: float | None = None

    @classmethod
    def of(cls, row: Row) -> Setting:
        return cls(row["dataset"], row.get("preparation") or "", row.get("split") or "", row.get("delta"))

    def same_data(self, other: Setting) -> bool:
        return (self.dataset, self.preparation, self.split) == (other.dataset, other.preparation, other.split)

    def title(self, others: Iterable[Setting] = ()) -> str:
        """The data set, with whatever is needed to tell it from the other settings."""
        alike = [other for other in others if other.dataset == self.dataset]
        parts = [self.dataset]
        if self.preparation not in ("", "none") or len({other.preparation for other in alike}) > 1:
            parts.append(self.preparation or "as it is")
        parts += [f"split {self.split}"] if len({other.split for other in alike}) > 1 else []
        parts += [f"delta {self.delta:g}"] if self.delta and len({other.delta for other in alike}) > 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Variant:
    """A method with its mode and options: one curve, one line of a table."""

    method: str
    mode: str
    options: str

    @classmethod
    def of(cls, row: Row) -> Variant:
        options = json.dumps(row.get("options") or {}, sort_keys=True)
        return cls(row["method"], str(row.get("mode") or "sound"), options)

    def label(self, rows: Iterable[Row], rivals: Iterable[Row] = ()) -> str:
        """The name to print, with marks; options where another variant among ``rivals`` has the same name."""
        mine = list(rows)
        plain = self.method if self.mode == "sound" else f"{self.method} ({self.mode})"
        name = str(mine[0].get("label") or plain) if mine else plain
        twins = {Variant.of(row) for row in rivals if str(row.get("label") or "") == name}
        if len(twins) > 1:
            told = ", ".join(f"{key} {value}" for key, value in json.loads(self.options).items())
            name += f" ({told or 'default'})" if len({twin.mode for twin in twins}) == 1 else f" ({self.mode})"
        return "\u00a0".join([name, *marks_of(mine)])  # a mark never starts a line


def marks_of(rows: Iterable[Row]) -> list[str]:
    """The signs that must follow a name or a figure wherever it is printed."""
    seen = list(rows)
    found = [NOT_COVERED] if any(row.get("selection") == "not covered" for row in seen) else []
    return found + ([DOES_NOT_HOLD] if any(map(broken, seen)) else [])


def broken(row: Row) -> bool:
    """Whether a promise was made that does not hold, for another reason than a selection (which has its own mark)."""
    selected = row.get("selection") == "not covered" and not row.get("gaps")
    return private(row) and row.get("holds") is False and not selected


def done(rows: Iterable[Row]) -> list[Row]:
    """The finished runs that measured a method or reports; audits and forecasts have tables and pictures of their own."""
    kept = (TRAINING, REPORTS)
    return [row for row in rows if row.get("status", "done") == "done" and (row.get("kind") or TRAINING) in kept]


def notions(rows: Sequence[Row]) -> dict[Notion, list[Row]]:
    """The private rows, by notion of privacy, in order of appearance."""
    found: dict[Notion, list[Row]] = {}
    for row in rows:
        if private(row):
            found.setdefault(_local_notion(row, rows) if row["level"] == Level.LOCAL else _central(row), []).append(row)
    return found


def by(key: Any, rows: Iterable[Row]) -> dict[Any, list[Row]]:
    """Rows in groups, in order of appearance."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def measured(rows: Iterable[Row], metric: str = ACCURACY) -> list[float]:
    """The values of a metric where there is one."""
    return [float(row["metrics"][metric]) for row in rows if row["metrics"].get(metric) is not None]


def _central(row: Row) -> Notion:
    k, degree = row.get("k"), row.get("max_degree")
    bound = f"k = {k}" if k else f"D = {degree}" if degree else ""
    return Notion(row["level"], str(row.get("adjacency")), str(row.get("relation")), bound)


def _local_notion(row: Row, rows: Sequence[Row]) -> Notion:
    """On the axis is, of the parts that have a budget, the one with most values among rows with the same parts in the clear."""
    parts = row["parts"]
    alike = [other["parts"] for other in rows if private(other) and other["level"] == Level.LOCAL]
    alike = [other for other in alike if all(_openness(other, part) == _openness(parts, part) for part in Part)]
    budgets = [part for part in Part if is_number(parts.get(part))]
    axis = max(budgets, key=lambda part: len({other[part] for other in alike}))
    shown = {part: f"epsilon {parts[part]:g}" if part in budgets else _openness(parts, part) for part in Part}
    shown[axis] = AXIS
    relation = str(row.get("relation") or Relation.REPLACE)
    return Notion("local", "local", relation, parts=tuple((str(part), words) for part, words in shown.items()))


def _openness(parts: Mapping[str, Any], part: str) -> str:
    value = parts.get(part)
    return "epsilon" if is_number(value) else str(value or "withheld")
