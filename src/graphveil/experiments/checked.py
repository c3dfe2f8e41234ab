"""What a row must be, wherever it comes from: a store, a committed export, or somebody's own hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from graphveil.privacy.local import Openness
from graphveil.privacy.promise import Adjacency, Level

Row = Mapping[str, Any]
NEEDED = ("method", "dataset", "level")
KINDS: dict[str, Any] = {  # of what is not a number
    **dict.fromkeys(
        ("method", "dataset", "level", "adjacency", "relation", "label", "mode", "preparation", "split", "kind"), str
    ),
    **dict.fromkeys(("options", "parts", "metrics", "details"), dict),
    **dict.fromkeys(("releases", "gaps"), list),
}
FIGURES = ("epsilon_target", "epsilon", "epsilon_claimed", "delta", "seconds", "cpu_seconds", "k", "max_degree", "seed")


def mistake(row: Any) -> str:
    """What is wrong with a row, in words; empty if nothing is."""
    if not isinstance(row, dict):
        return "not a JSON object"
    missing = [key for key in NEEDED if row.get(key) is None]
    if missing:
        return f"no {', '.join(missing)}"
    for key, kinds in KINDS.items():
        if row.get(key) is not None and (not isinstance(row[key], kinds) or isinstance(row[key], bool)):
            return f"{key} is {row[key]!r}"
    if row["level"] not in tuple(Level) or row.get("adjacency", "none") not in (*Adjacency, None):
        return f"unknown level {row['level']!r} or adjacency {row.get('adjacency')!r}"
    releases = row.get("releases") or []
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in releases):
        return "a release without a name"
    if not all(isinstance(code, str) for code in row.get("gaps") or ()):
        return "gaps that are not codes"
    numbers = {**(row.get("metrics") or {}), **{key: row.get(key) for key in FIGURES}}
    numbers |= {f"{one['name']}: {key}": one.get(key) for one in releases for key in ("share", "noise", "dimension")}
    odd = [key for key, value in numbers.items() if value is not None and not is_number(value)]
    odd = odd or [
        key for key in ("epsilon_target", "delta") if (row.get(key) or 0) < 0 or row.get("epsilon_target") == 0
    ]
    parts = row.get("parts") or {}
    words = (*Openness, None)
    odd += [part for part, value in parts.items() if not (value > 0 if is_number(value) else value in words)]
    if odd:
        return f"{odd[0]} is not a number that can be"
    if private(row) and row["level"] != Level.LOCAL and row.get("adjacency") is None:
        return "a private run without adjacency"
    return ""


def private(row: Row) -> bool:
    """Whether the run was to protect anything."""
    if row["level"] == Level.LOCAL:
        return any(is_number(value) for value in (row.get("parts") or {}).values())
    return row["level"] != Level.NONE and row.get("epsilon_target") is not None


def is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
