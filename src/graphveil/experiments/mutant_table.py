"""Planted bugs, and what catches each: rows of ``python -m tests.audit.mutants.table``, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from graphveil.experiments.tables import Table

MUTANT, HEALTHY = "mutant", "healthy"
Row = Mapping[str, Any]


def mutant_tables(rows: Iterable[Row]) -> list[Table]:
    """One line per mutant; nothing if there are none."""
    found = list(rows)
    mutants = [row for row in found if row["kind"] == MUTANT]
    if not mutants:
        return []
    body = tuple(
        (row["details"]["part"], row["label"], row["method"], row["details"]["suite"], _audit(row)) for row in mutants
    )
    seen = sum(bool(row["details"]["seen"]) for row in mutants)
    notes = [f"{len(mutants)} mutants: all caught by the suite, {seen} by an audit"]
    healthy = [row for row in found if row["kind"] == HEALTHY]
    if healthy:
        called, audits = (sum(int(row["metrics"][name]) for row in healthy) for name in ("violated", "audits"))
        notes.append(f"without a bug: {len(healthy)} methods and promises, {audits} audits, {called} called violated")
    return [Table("what catches each mutant", ("part", "mutant", "planted in", "suite", "audit"), body, tuple(notes))]


def _audit(row: Row) -> str:
    seen = row["details"]["seen"]
    return ", ".join(seen) if seen else f"not seen: {row['details']['unseen']}"
