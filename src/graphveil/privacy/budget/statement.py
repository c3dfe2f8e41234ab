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
from graphveil.privacy.plan import finite


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
