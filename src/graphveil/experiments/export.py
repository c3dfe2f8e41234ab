"""Rows as files and back: JSON lines (the form in which results are committed), JSON, CSV, Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphveil.errors import InputError
from graphveil.experiments.store import Store
from graphveil.files import draft, read_json, read_json_lines

Row = Mapping[str, Any]
FIELDS = (
    *(
        "id",
        "experiment",
        "method",
        "mode",
        "options",
        "label",
        "dataset",
        "preparation",
        "split",
        "level",
        "adjacency",
    ),
    *("relation", "k", "max_degree", "epsilon_target", "parts", "delta", "delta_rule", "seed", "status", "error"),
    *("epsilon", "epsilon_claimed", "holds", "gaps", "releases", "metrics", "seconds", "cpu_seconds", "selection"),
    *("version", "finished"),
)
NESTED = ("options", "parts", "gaps", "releases")


def plain(row: Row) -> dict[str, Any]:
    """A row with its fields in the order of the contract."""
    return {field: row.get(field) for field in FIELDS}


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows in the form that the ending of the path names."""
    if path.suffix not in WRITERS:
        raise InputError(f"{path}: results are written as {', '.join(WRITERS)}")
    with draft(path) as beside:
        WRITERS[path.suffix]([plain(row) for row in rows], beside)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a store, or of an export as JSON lines or JSON."""
    if path.suffix == ".jsonl":
        found: Any = read_json_lines(path)
    elif path.suffix == ".json":
        found = read_json(path)
    elif path.suffix in (".csv", ".parquet"):
        raise InputError(f"{path}: CSV and Parquet are for other programs; read a store or a .jsonl export")
    else:
        with Store(path, must_exist=True) as store:
            return [plain(row) for row in store.rows()]
    if not (isinstance(found, list) and all(isinstance(row, dict) and {"id", "metrics"} <= set(row) for row in found)):
        raise InputError(f"{path} does not hold rows of results")
    return [plain(row) for row in found]


def flat(row: Row) -> dict[str, Any]:
    """A row without nesting: a column per metric, JSON in the others."""
    told = {key: json.dumps(row[key]) if key in NESTED else row[key] for key in FIELDS if key != "metrics"}
    return told | {f"metrics.{name}": value for name, value in row["metrics"].items()}


def _columns(rows: Sequence[Row]) -> tuple[list[dict[str, Any]], list[str]]:
    lines = [flat(row) for row in rows]
    return lines, list(dict.fromkeys(name for line in lines for name in line)) or [f for f in FIELDS if f != "metrics"]


def _write_lines(rows: Sequence[Row], path: Path) -> None:
    path.write_text("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows), encoding="utf-8")


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
