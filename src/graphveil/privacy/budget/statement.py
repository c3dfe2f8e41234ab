"""What a budget book tells: its history counted again entry by entry, and files for an archive or an auditor."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.files import write_text
from graphveil.privacy.budget.book import SCHEMA, BudgetBook, Entry, accounts_of
from graphveil.privacy.certificate_text import covered_only
from graphveil.privacy.plan import finite
from graphveil.privacy.promise import Adjacency


def history(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Every entry with what was spent and left after it, by account; it ends with the figures of the book itself."""
    seen: list[Entry] = []
    told: list[dict[str, Any]] = []
    for entry in entries:
        seen.append(entry)
        after = {
            str(a.notion): {"spent": finite(a.spent), "left": a.left, "promised": a.promise.epsilon}
            for a in accounts_of(seen)
        }
        about: dict[str, Any] = {
            key: entry.body.get(key)
            for key in ("method", "mode", "promise", "certificate", "note")
            if key in entry.body
        }
        told.append(
            {"number": entry.number, "time": entry.time, "kind": entry.kind, "run": entry.run, **about, "after": after}
        )
    return told


def cautions(entries: Iterable[Entry]) -> list[str]:
    """For what of it the total does not stand, in words: noise that can be drawn again, and people who are covered otherwise."""
    told = list(entries)
    free = {entry.run for entry in told if entry.kind == "settle" and entry.body["certificate"] is None}
    runs = [entry.body for entry in told if entry.kind == "reserve" and entry.run not in free]
    seeded = sum(bool(body.get("seeded")) for body in runs)
    found = []
    if seeded:
        found.append(
            f"{seeded} runs drew their noise from a seed: whoever knows it sees through it, and equal seeds share their noise, "
            "so the total does not hold for anything of them that is released"
        )
    for weaker in {tuple(sorted(body["weaker"].items())): None for body in runs if body.get("weaker")}:
        lines = covered_only({kind: Adjacency(name) for kind, name in weaker})
        found += [f"in some runs no more is covered {line}" for line in lines]
    return found


def exported(book: BudgetBook, path: Path) -> None:
    """All entries in a file: one JSON object, JSON lines, or a table with the body as JSON."""
    entries = [vars(entry) for entry in book.entries()]
    if path.suffix == ".json":
        write_text(
            path, json.dumps({"schema": SCHEMA, "name": book.name, "head": book.head, "entries": entries}, indent=1)
        )
    elif path.suffix == ".jsonl":
        write_text(path, "".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries))
    elif path.suffix == ".csv":
        text = io.StringIO()
        table = csv.DictWriter(text, [field.name for field in fields(Entry)])
        table.writeheader()
        table.writerows(entry | {"body": json.dumps(entry["body"], sort_keys=True)} for entry in entries)
        write_text(path, text.getvalue())
    else:
        raise InputError(f"a budget book is exported as .json, .jsonl or .csv, got {path.name!r}")
