"""Rows as files and back: JSON lines (the form in which results are committed), JSON, CSV, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.experiments.checked import mistake
from graphveil.experiments.run import TRAINING
from graphveil.experiments.store import Store
from graphveil.files import draft, read_json

Row = Mapping[str, Any]
FIELDS = (
    *("id", "kind", "experiment", "method", "mode", "options", "label", "dataset", "preparation", "split", "level"),
    *("adjacency", "relation", "k", "max_degree", "epsilon_target", "parts", "delta", "delta_rule", "seed", "status"),
    *("error", "epsilon", "epsilon_claimed", "holds", "gaps", "releases", "metrics", "details", "seconds"),
    *("cpu_seconds", "selection", "version", "finished"),
)
UNSAID: dict[str, Any] = {  # what a field is if a row does not say it; None otherwise
    "kind": TRAINING,
    "mode": "sound",
    "split": "random",
    "delta_rule": "default",
    "status": "done",
    "selection": "none",
    "options": {},
    "gaps": [],
    "releases": [],
    "metrics": {},
}
NESTED = ("options", "parts", "gaps", "releases", "details")


def plain(row: Row) -> dict[str, Any]:
    """A row with every field, in the order of the contract."""
    found = {field: UNSAID.get(field) if row.get(field) is None else row[field] for field in FIELDS}
    return found | ({} if found["label"] is not None else {"label": found["method"]})


def brief(row: Row) -> dict[str, Any]:
    """The fields that say something: what :func:`plain` fills in is left out."""
    return {field: value for field, value in plain(row).items() if value != UNSAID.get(field)}


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows in the form that the ending of the path names."""
    if path.suffix not in WRITERS:
        raise InputError(f"{path}: results are written as {', '.join(WRITERS)}")
    with draft(path) as beside:
        WRITERS[path.suffix]([plain(row) for row in rows], beside)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a store, or of an export as JSON lines or JSON, each checked."""
    found = []
    for where, row in _read(path):
        if wrong := mistake(row):
            raise InputError(f"{path}, {where}: {wrong}; one row per run, as the store exports it")
        found.append(plain(row))
    return found


def _read(path: Path) -> Iterator[tuple[str, Any]]:
    """What a file holds, with its place."""
    if path.suffix in (".csv", ".parquet"):
        raise InputError(f"{path}: CSV and Parquet are for other programs; read a store or a .jsonl export")
    if not path.exists():
        raise InputError(f"{path} does not exist; give a store of 'graphveil sweep' or its export (.jsonl)")
    if path.suffix in (".jsonl", ".ndjson"):
        yield from _lines(path)
        return
    if path.suffix == ".json":
        found: Any = read_json(path)
        if not isinstance(found, list):
            raise InputError(f"{path} does not hold rows of results")
    else:
        with Store(path, must_exist=True) as store:
            found = store.rows()
    yield from ((f"run {number}", row) for number, row in enumerate(found, start=1))


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {number}: not a JSON object ({error.msg}); is the file complete?") from None


def flat(row: Row) -> dict[str, Any]:
    """A row without nesting: a column per metric, JSON in the others."""
    told = {key: json.dumps(row[key]) if key in NESTED else row[key] for key in FIELDS if key != "metrics"}
    return told | {f"metrics.{name}": value for name, value in row["metrics"].items()}


def _columns(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], list[str]]:
    lines = [flat(row) for row in rows]
    return lines, list(dict.fromkeys(name for line in lines for name in line)) or [f for f in FIELDS if f != "metrics"]


def _write_lines(rows: Sequence[Row], path: Path) -> None:
    path.write_text("".join(json.dumps(brief(row), allow_nan=False) + "\n" for row in rows), encoding="utf-8")


def _write_json(rows: Sequence[Row], path: Path) -> None:
    path.write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _write_csv(rows: Sequence[Row], path: Path) -> None:
    lines, columns = _columns(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def _write_parquet(rows: Sequence[Row], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines, columns = _columns(rows)
    pq.write_table(pa.table({name: [line.get(name) for line in lines] for name in columns}), path)


WRITERS = {".jsonl": _write_lines, ".json": _write_json, ".csv": _write_csv, ".parquet": _write_parquet}
