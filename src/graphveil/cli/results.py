"""``graphveil results``: what is in a store or a committed export: list, filter, summarise, export, check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.cli.sweep import STORE
from graphveil.errors import InputError

Some = list[str] | None


def results(
    store: Annotated[
        Path, typer.Argument(metavar="[STORE]", help="A store of 'sweep', or an export (.jsonl).")
    ] = STORE,
    experiment: Annotated[Some, flag("--experiment NAME", "Only this experiment; repeatable, as the next six.")] = None,
    method: Annotated[Some, flag("--method NAME", "Only this method, by name or label.")] = None,
    data: Annotated[Some, flag("--data NAME", "Only this data set.")] = None,
    level: Annotated[Some, flag("--level L", "Only this level.")] = None,
    status: Annotated[Some, flag("--status S", "Only done, or only failed runs.")] = None,
    kind: Annotated[Some, flag("--kind K", "Only training, audit, reports or forecast.")] = None,
    metric: Annotated[
        Some, flag("--metric NAME", "What tables show (test_accuracy), side by side; with --export: all that is kept.")
    ] = None,
    baseline: Annotated[
        str | None, flag("--baseline LABEL", "Paired differences to this method, and p-values.")
    ] = None,
    targets: Annotated[
        Path | None, flag("--targets FILE.csv", "Means beside figures to reach; exit code 1 if one is missed.")
    ] = None,
    runs: Annotated[bool, flag("--runs", "One line per run instead of tables of means.")] = False,
    export: Annotated[Path | None, flag("--export FILE", "Write rows as .jsonl, .json, .csv or .parquet.")] = None,
    without: Annotated[Some, flag("--without FIELD", "With --export: leave this out, such as releases.")] = None,
    add: Annotated[
        bool, flag("--add", "With --export: rows that FILE has already stay, unless they are here.")
    ] = False,
    markdown: Annotated[bool, flag("--markdown", "Tables as Markdown.")] = False,
    check: Annotated[bool, flag("--check", "Check the store's integrity; exit code 1 if something is wrong.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """List, filter and export finished runs; without options, one table of means per promise."""
    from graphveil.experiments.export import FIELDS, read_rows, write_rows
    from graphveil.experiments.show import all_tables

    if check:
        _check(store, as_json)
        return
    for field in without or ():
        if field not in FIELDS[1:]:
            raise InputError(f"--without {field}: fields that can be left out are {', '.join(FIELDS[1:])}")
    wanted = {"experiment": experiment, "dataset": data, "level": level, "status": status, "kind": kind}
    rows = [row for row in read_rows(store) if _fits(row, wanted, method)]
    if baseline is not None and all(row["label"] != baseline for row in rows):
        known = ", ".join(dict.fromkeys(row["label"] for row in rows))
        raise InputError(f"--baseline {baseline}: no run has this label; there are: {known}")
    if export is not None:
        rows = [_lean(row, without or (), metric) for row in rows]
        if add and export.exists():
            # a row that is measured again keeps its place
            rows = list({row["id"]: row for row in (*read_rows(export), *rows)}.values())
        write_rows(rows, export)
        opt.show({"rows": len(rows), "out": str(export)} if as_json else f"{len(rows)} rows written to {export}")
    elif targets is not None:
        _targets(rows, targets, as_json, markdown)
    elif as_json:
        opt.show(rows)
    elif runs:
        typer.echo(_lines(rows))
    else:
        found = all_tables(rows, metric or ["test_accuracy"], baseline)
        typer.echo("\n\n".join(table.markdown() if markdown else table.text() for table in found) or "no runs")


def _fits(row: Mapping[str, Any], wanted: Mapping[str, Some], method: Some) -> bool:
    named = method is None or row["method"] in method or row["label"] in method
    return named and all(values is None or row[field] in values for field, values in wanted.items())


def _lean(row: Mapping[str, Any], without: Sequence[str], metrics: Some) -> dict[str, Any]:
    """A row without these fields, and of its metrics these (None: all)."""
    kept = {key: value for key, value in row.items() if key not in without}
    if metrics is not None and "metrics" in kept:
        kept["metrics"] = {name: value for name, value in row["metrics"].items() if name in metrics}
    return kept


def _targets(rows: Sequence[Mapping[str, Any]], path: Path, as_json: bool, markdown: bool) -> None:
    from graphveil.experiments.targets import against, read_targets

    table, missed = against(rows, read_targets(path))
    if not table.body:
        raise InputError(f"--targets {path}: none of its targets has a finished run here")
    lines = [dict(zip(table.head, line, strict=True)) for line in table.body]
    shown = table.markdown() if markdown else table.text()
    opt.show({"targets": lines, "missed": missed} if as_json else shown)
    if missed:
        raise typer.Exit(1)


def _check(path: Path, as_json: bool) -> None:
    from graphveil.experiments.store import Store

    with Store(path, must_exist=True) as store:
        found, finished, attempts = store.check(), store.finished(), store.attempts()
    again = {name: count for name, count in attempts.items() if count > 1}
    if as_json:
        opt.show({"runs": len(finished), "problems": found, "attempted_again": again})
    else:
        typer.echo("\n".join(found) or f"{path}: {len(finished)} runs, each once; nothing is wrong")
    if found:
        raise typer.Exit(1)


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    from graphveil.experiments.summary import Group
    from graphveil.experiments.tables import Table

    head = ("id", "experiment", "method", "data", "level", "budget", "seed", "status", "test accuracy", "s")
    body = []
    for row in rows:
        accuracy, seconds = row["metrics"].get("test_accuracy"), row["seconds"]
        cells = (row["id"], row["experiment"], row["label"], row["dataset"], row["level"], Group((row,)).budget)
        told = ("" if row["seed"] is None else str(row["seed"]), row["error"] or row["status"])
        figures = ("" if accuracy is None else f"{100 * accuracy:.1f}", "" if seconds is None else f"{seconds:.1f}")
        body.append((*cells, *told, *figures))
    return Table(f"{len(rows)} runs", head, tuple(body)).text()
