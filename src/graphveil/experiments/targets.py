"""Figures that a method is expected to reach, from a CSV file, beside what a store has.

Columns: ``dataset``, ``target_accuracy`` (percent), and what tells rows apart: ``level``, ``adjacency`` (``k-neighbor:5`` and
``bounded-degree:100`` carry their bound), ``relation``, ``epsilon``; at level local ``features``, ``labels``, ``edges``;
``option`` as ``name=value``. Columns that begin with ``published`` are shown beside it. A target holds if the mean is at least
the target minus max(0.7, 2 standard errors).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.experiments.summary import PARTS, Group, groups
from graphveil.experiments.tables import EXACT, Table

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
    if not found or not {"dataset", "target_accuracy"} <= set(found[0]):
        raise InputError(f"{path}: targets need the columns dataset and target_accuracy")
    return found


def against(rows: Iterable[Mapping[str, Any]], targets: Sequence[Target]) -> tuple[Table, int]:
    """The table of targets that the rows have runs for, and how many of them are missed."""
    known = groups(rows)
    body, missed = [], 0
    for target in targets:
        for group in (group for group in known if fits(group, target) and group.estimate() is not None):
            found = 100 * np.array(group.all_values("test_accuracy"))
            error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
            wanted = float(target["target_accuracy"])
            holds = float(found.mean()) >= wanted - max(ALLOWANCE, 2 * error)
            missed += not holds
            published = next((value for key, value in target.items() if key.startswith("published") and value), "")
            told = (
                group["dataset"],
                group["label"],
                group["level"],
                group["adjacency"],
                group["relation"],
                group.budget,
            )
            figures = (f"{found.mean():.1f} ± {error:.1f}", f"{wanted:g}", "yes" if holds else "NO", published)
            body.append((*told, *figures, str(len(found))))
    head = (
        "data",
        "method",
        "level",
        "adjacency",
        "relation",
        "epsilon",
        "mean ± s.e.",
        "target",
        "holds",
        "published",
        "runs",
    )
    return Table(f"{len(body)} targets, {missed} missed", head, tuple(body), (FLOOR, EXACT)), missed


def fits(group: Group, target: Target) -> bool:
    """Whether the runs are what the target is for."""
    if group["dataset"] != target["dataset"]:
        return False
    parts = {part: target[part] for part in PARTS if target.get(part)}
    if parts:
        return group["parts"] is not None and all(_same(group["parts"][part], text) for part, text in parts.items())
    adjacency, _, bound = target.get("adjacency", "").partition(":")
    stated = {"level": target.get("level"), "adjacency": adjacency, "relation": target.get("relation")}
    if any(text and group[field] != text for field, text in stated.items()):
        return False
    if bound and int(bound) not in (group["k"], group["max_degree"]):
        return False
    name, _, value = target.get("option", "").partition("=")
    if name and group["options"].get(name) != json.loads(value):
        return False
    return _same(group["epsilon_target"], target.get("epsilon", ""))


def _same(value: Any, text: str) -> bool:
    try:
        return not text or float(value) == float(text)
    except (TypeError, ValueError):
        return str(value) == text
