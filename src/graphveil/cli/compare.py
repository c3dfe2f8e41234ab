"""``graphveil compare``: methods against epsilons on data sets, without a specification."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag
from graphveil.cli.sweep import STORE, Budget, EngineFlags, Out, charged, run_all
from graphveil.errors import InputError

NAME = "compare"


def compare(
    engine: EngineFlags,
    methods: Annotated[str, flag("--methods NAMES", "With commas; NAME:published for a paper's own mode.")],
    data: Annotated[str, flag("--data NAMES", "Data sets or .npz files, with commas.")],
    epsilons: Annotated[str | None, flag("--epsilons LIST", "With commas, such as 1,2,4,8.")] = None,
    seeds: Annotated[str, flag("--seeds N|FIRST-LAST", "How many seeds, or which.")] = "3",
    level: Annotated[str, flag("--level", "edge, k-neighbor, node or local.")] = "node",
    adjacency: Annotated[str | None, flag("--adjacency A", "record, bounded-degree or node (node level).")] = None,
    relation: Annotated[
        str | None,
        flag("--relation R", "zero-out (default) or replace; level local: replace, or zero-out of a list entry alone."),
    ] = None,
    k: Annotated[int | None, flag("--k K", "Edges per person protected at k-neighbor level.")] = None,
    max_degree: Annotated[int | None, flag("--max-degree D", "The degree promise of bounded-degree.")] = None,
    delta: Annotated[float | None, flag("--delta D", "Default: 10^-ceil(log10 n), a tenth at edge level.")] = None,
    features: Annotated[str | None, flag("--features-epsilon LIST", "Level local; epsilons, raw or withheld.")] = None,
    labels: Annotated[str | None, flag("--labels-epsilon LIST", "Level local; the same.")] = None,
    edges: Annotated[str | None, flag("--edges-epsilon LIST", "Level local; the same.")] = None,
    prepare: opt.Prepare = None,
    split: opt.Split = "random",
    baseline: Annotated[
        str | None, flag("--baseline METHOD", "Paired differences to this method, and p-values.")
    ] = None,
    csv: Annotated[Path | None, flag("--csv FILE", "Write every run.")] = None,
    plot: Annotated[Path | None, flag("--plot FILE", "Draw accuracy against epsilon.")] = None,
    budget: Budget = None,
    out: Out = STORE,
    as_json: opt.AsJson = False,
) -> None:
    """Compare methods under one promise; finished runs in the store are used again."""
    from graphveil.experiments.expand import expand
    from graphveil.experiments.export import write_rows
    from graphveil.experiments.read import experiment_from
    from graphveil.experiments.tables import tables

    opt.check_picture(plot)
    if csv is not None and csv.suffix.lower() != ".csv":
        raise InputError(f"--csv writes .csv, got {csv.name!r}; 'graphveil results --export' knows other forms")
    promise: dict[str, Any] = {"level": level, "adjacency": adjacency}
    promise |= {} if relation is None else {"relation": relation}
    promise |= {"k": k, "max_degree": max_degree, "delta": delta}
    budgets = {"features": features, "labels": labels, "edges": edges}
    asked = {part: opt.several(text) for part, text in budgets.items() if text is not None}
    promise |= {part: [_budget(one, f"--{part}-epsilon") for one in parts] for part, parts in asked.items()}
    entries = [_method(text) for text in opt.several(methods)]
    sets = [{"name": name, "prepare": prepare, "split": split} for name in opt.several(data)]
    body: dict[str, Any] = {"name": NAME, "data": sets, "seeds": int(seeds) if seeds.isdigit() else seeds}
    private = [entry for entry in entries if _private(entry, level)]
    open_ones = [entry for entry in entries if entry not in private]
    body["grids"] = [{"methods": private, "promises": [promise]}] if private else []
    body["grids"] += [{"methods": open_ones, "promises": [{"level": "none"}]}] if open_ones else []
    if epsilons is not None:
        body["epsilons"] = [opt.number(text, "--epsilons") for text in opt.several(epsilons)]
    runs = expand(experiment_from(body, NAME), NAME)
    _, rows = run_all(NAME, charged(runs, budget), out, engine, resume=True)
    if csv is not None:
        write_rows(rows, csv)
    if plot is not None:
        import_module("graphveil.report.curves").draw(rows, plot)
    if as_json:
        opt.show(rows)
        return
    typer.echo("\n\n".join(table.text() for table in tables(rows, baseline=baseline)))
    for row in rows:
        if row["status"] == "failed":
            typer.echo(f"failed: {row['label']} on {row['dataset']}, seed {row['seed']}: {row['error']}", err=True)
    for path in (csv, plot):
        if path is not None:
            typer.echo(f"written to {path}")


def _method(text: str) -> dict[str, Any]:
    name, colon, mode = text.partition(":")
    return {"name": name} | ({"mode": mode} if colon else {})


def _private(entry: dict[str, Any], level: str) -> bool:
    """Whether a promise of this level is asked of the method; ordinary networks are run as they are."""
    from graphveil.methods.registry import build

    method = build(entry["name"], {"mode": entry.get("mode", "sound")})
    covers = any(guarantee.level == level for guarantee in method.supports)
    return covers or not method.card.trust.startswith("no protection")


def _budget(text: str, of: str) -> float | str:
    return text if text in ("raw", "withheld") else opt.number(text, of)
