"""Figures that a method is expected to reach, from a CSV file, beside what a store has.

Columns: ``dataset``, ``target_accuracy`` (percent), and what tells rows apart: ``method`` (or its label), ``label``, ``level``,
``adjacency`` (``k-neighbor:5`` and ``bounded-degree:100`` carry their bound), ``relation``, ``epsilon``; at level local
``features``, ``labels``, ``edges``; ``option`` as ``name=value``. Columns that begin with ``published`` are shown beside it. A
target holds if the mean is at least the target minus max(0.7, 2 standard errors).

``at_least`` and ``at_most`` are limits without an allowance: of the accuracy (percent), or of the figure that ``metric`` names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.experiments.summary import PARTS, Group, groups
from graphveil.experiments.tables import EXACT, Table

ACCURACY = "test_accuracy"
ALLOWANCE = 0.7  # percentage points
FLOOR = f"a target holds if the mean is at least the target minus max({ALLOWANCE}, 2 standard errors)"

Target = Mapping[str, str]


def read_targets(path: Path) -> list[Target]:
    """The lines of the file, each with at least a data set and a target."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            found: list[Target] = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not found or "dataset" not in found[0] or not {"target_accuracy", "at_least", "at_most"} & set(found[0]):
        raise InputError(
            f"{path}: targets need the columns dataset and target_accuracy (or metric and at_least, at_most)"
        )
    return found


@dataclass(frozen=True)
class Wanted:
    """What is asked of a mean: a floor with an allowance (accuracies, in percent), or a limit as it stands."""

    metric: str
    value: float
    most: bool = False
    allowed: bool = True

    @classmethod
    def of(cls, target: Target) -> Wanted:
        if target.get("target_accuracy"):
            return cls(ACCURACY, float(target["target_accuracy"]))
        most = bool(target.get("at_most"))
        limit = target.get("at_most") or target.get("at_least") or "nan"
        return cls(target.get("metric") or ACCURACY, float(limit), most, allowed=False)

    @property
    def unit(self) -> float:
        return 100.0 if self.metric == ACCURACY else 1.0

    def holds(self, mean: float, error: float) -> bool:
        if self.allowed:
            return mean >= self.value - max(ALLOWANCE, 2 * error)
        return mean <= self.value if self.most else mean >= self.value

    @property
    def words(self) -> str:
        return f"{self.value:g}" if self.allowed else f"{'at most' if self.most else 'at least'} {self.value:g}"


def against(rows: Iterable[Mapping[str, Any]], targets: Sequence[Target]) -> tuple[Table, int]:
    """The table of targets that the rows have runs for, and how many of them are missed."""
    known, asked = groups(rows), [(target, Wanted.of(target)) for target in targets]
    body, missed = [], 0
    metrics = any(wanted.metric != ACCURACY for _, wanted in asked)
    for target, wanted in asked:
        for group in (group for group in known if fits(group, target) and group.estimate(wanted.metric) is not None):
            found = wanted.unit * np.array(group.all_values(wanted.metric))
            error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
            holds = wanted.holds(float(found.mean()), error)
            missed += not holds
            published = next((value for key, value in target.items() if key.startswith("published") and value), "")
            told = [group[field] for field in ("dataset", "label", "level", "adjacency", "relation")]
            told += [group.budget, *([wanted.metric] if metrics else [])]
            digits = 1 if wanted.metric == ACCURACY else 3
            figures = (f"{found.mean():.{digits}f} ± {error:.{digits}f}", wanted.words, "yes" if holds else "NO")
            body.append((*told, *figures, published, str(len(found))))
    head = ("data", "method", "level", "adjacency", "relation", "epsilon", *(["figure"] if metrics else []))
    head += ("mean ± s.e.", "target", "holds", "published", "runs")
    notes = [FLOOR] if any(wanted.allowed for _, wanted in asked) else []
    return Table(f"{len(body)} targets, {missed} missed", head, tuple(body), (*notes, EXACT)), missed


def fits(group: Group, target: Target) -> bool:
    """Whether the runs are what the target is for."""
    if group["dataset"] != target["dataset"] or target.get("method") not in ("", None, group["method"], group["label"]):
        return False
    if target.get("label") not in ("", None, group["label"]):
        return False
    adjacency, _, bound = (target.get("adjacency") or "").partition(":")
    stated = {"level": target.get("level"), "adjacency": adjacency, "relation": target.get("relation")}
    if any(text and group[field] != text for field, text in stated.items()):
        return False
    if bound and int(bound) not in (group["k"], group["max_degree"]):
        return False
    name, _, value = (target.get("option") or "").partition("=")
    if name and json.dumps(group["options"].get(name)).strip('"') != value:
        return False
    parts = {part: target[part] for part in PARTS if target.get(part)}
    if parts:
        return group["parts"] is not None and all(_same(group["parts"][part], text) for part, text in parts.items())
    return _same(group["epsilon_target"], target.get("epsilon") or "")


def _same(value: Any, text: str) -> bool:
    try:
        return not text or float(value) == float(text)
    except (TypeError, ValueError):
        return str(value) == text
