"""``graphveil audit``: claimed, provable and observed epsilon of a method, side by side; exit code 1 if a violation is found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli import options as opt
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.audit.result import Audit

AUDIT_EPSILON = 4.0  # of 'audit --all'


def audit(
    method: Annotated[
        str | None,
        typer.Argument(
            metavar="METHOD|RUN", help="A method ('graphveil methods' lists them), or a folder of 'train --out'."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Audit every method in every mode, one row each.")] = False,
    data: Annotated[
        str | None,
        typer.Option("--data", metavar="NAME|PATH", help="Default: a small generated graph of worst cases."),
    ] = None,
    level: opt.LevelName = "node",
    epsilon: opt.EpsilonValue = None,
    delta: opt.DeltaValue = None,
    k: opt.KValue = None,
    adjacency: opt.AdjacencyName = None,
    relation: opt.RelationName = "zero-out",
    mode: opt.ModeName = None,
    max_degree: opt.DegreeValue = None,
    directed: opt.Directed = False,
    features_epsilon: opt.FeaturesEpsilon = None,
    labels_epsilon: opt.LabelsEpsilon = None,
    edges_epsilon: opt.EdgesEpsilon = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, max=1000, help="Histories to audit in lock step.")
    ] = 2,
    seed: Annotated[int, typer.Option("--seed", metavar="S", min=0, help="Graph, noise and coins.")] = 0,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Chart of claimed, provable and observed epsilon.")
    ] = None,
    settings: opt.Settings = None,
    as_json: opt.AsJson = False,
) -> None:
    """Look for violations of METHOD's promise: replay on neighbours, exact ratios, sampled lower bounds."""
    if everything == (method is not None):
        raise InputError("name a method to audit, or say --all for every method")
    if plot is not None and plot.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise InputError(f"--plot writes .svg, .png or .pdf, got {plot.name!r}")
    if everything:
        if any(value is not None for value in (data, mode, k, adjacency, max_degree, settings)):
            raise InputError(
                "--all audits every method and mode on the generated graph; it takes only --epsilon and --seed"
            )
        found = _everything(epsilon or AUDIT_EPSILON, runs, seed)
    else:
        assert method is not None
        from graphveil.audit import audit_method

        saved = _is_run(method)
        if saved:
            if any(value is not None for value in (epsilon, delta, k, adjacency, mode, max_degree, settings)):
                raise InputError("a run brings its own promise and settings; leave those flags out")
            from graphveil.audit.runs import method_of_run

            chosen, promise = method_of_run(Path(method))
        else:
            chosen = opt.build_method(method, mode, settings)
            local = opt.build_local(
                features_epsilon, labels_epsilon, edges_epsilon,
                level=level, epsilon=epsilon, delta=delta, k=k, adjacency=adjacency, max_degree=max_degree,
            )  # fmt: skip
            promise = local or opt.build_promise(
                chosen, level, epsilon, delta, k, adjacency, relation, max_degree, directed
            )  # fmt: skip

        graph = None if data is None else opt.load_data(data, seed)
        with opt.progress_bar() as progress:
            options = {"name": data or "", "runs": runs, "seed": seed, "small": not saved}
            found = [audit_method(chosen, promise, graph, progress=progress, **options)]
    if plot is not None:
        from graphveil.report.audit_plots import audit_plot

        audit_plot(found, plot)
    _show(found, everything, as_json)


def _is_run(name: str) -> bool:
    """A folder of that name, or something that can only be a path."""

    from graphveil.methods.registry import method_names

    return name not in method_names() and (Path(name).is_dir() or "/" in name)


def _everything(epsilon: float, runs: int, seed: int) -> list[Audit]:
    from graphveil.audit import audit_all

    with opt.progress_bar() as progress:
        return audit_all(epsilon, runs=runs, seed=seed, progress=progress)


def _show(found: list[Audit], everything: bool, as_json: bool) -> None:
    from graphveil.audit.text import cross_check_text, report_text, table_text

    if not everything:
        if as_json:
            opt.print_json(found[0].to_json())
        else:
            typer.echo(report_text(found[0]))
        if found[0].violated:
            raise typer.Exit(1)
        return
    from graphveil.audit.accountants import cross_checks

    checks = list(cross_checks())
    if as_json:
        opt.print_json(
            {"audits": [entry.to_json() for entry in found], "accountants": [check.to_json() for check in checks]}
        )
    else:
        typer.echo(table_text(found))
        typer.echo(cross_check_text(checks))


def register(app: typer.Typer) -> None:
    app.command()(audit)
