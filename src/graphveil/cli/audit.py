"""``graphveil audit``: claimed, provable and observed epsilon of a method, side by side; exit code 1 if a violation is found.

With ``--all`` the known gaps of published modes do not count."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphveil.cli import options as opt
from graphveil.cli.flags import PromiseFlags
from graphveil.cli.options import flag
from graphveil.errors import InputError

if TYPE_CHECKING:
    from graphveil.audit.result import Audit
    from graphveil.progress import Progress

AUDIT_EPSILON = 4.0  # of 'audit --all'


def audit(
    flags: PromiseFlags,
    method: Annotated[
        str | None,
        typer.Argument(
            metavar="METHOD|RUN", help="A method ('graphveil methods' lists them), or a folder of 'train --out'."
        ),
    ] = None,
    everything: Annotated[bool, flag("--all", "Audit every method in every mode, one row each.")] = False,
    data: Annotated[str | None, flag("--data NAME|PATH", "Default: a small generated graph of worst cases.")] = None,
    runs: Annotated[int, flag("--runs N", "Histories to audit in lock step.", min=1, max=1000)] = 2,
    seed: Annotated[int, flag("--seed S", "Graph, noise and coins.", min=0)] = 0,
    plot: Annotated[Path | None, flag("--plot FILE", "Chart of claimed, provable and observed epsilon.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Look for violations of METHOD's promise: replay on neighbours, exact ratios, sampled lower bounds."""
    if everything == (method is not None):
        raise InputError("name a method to audit, or say --all for every method")
    if plot is not None and plot.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise InputError(f"--plot writes .svg, .png or .pdf, got {plot.name!r}")
    with opt.progress_bar() as progress:
        if not everything:
            found = [_one(str(method), data, flags, runs, seed, progress)]
        elif data is not None or flags.given("epsilon"):
            raise InputError(
                "--all audits every method and mode on the generated graph; it takes only --epsilon and --seed"
            )
        else:
            from graphveil.audit.everything import audit_everything

            found = audit_everything(flags.epsilon or AUDIT_EPSILON, runs=runs, seed=seed, progress=progress)
    if plot is not None:
        from graphveil.report.audit_chart import audit_plot

        audit_plot([entry.to_json() for entry in found], plot)
    _show(found, everything, as_json)


def _one(name: str, data: str | None, flags: PromiseFlags, runs: int, seed: int, progress: Progress) -> Audit:
    from graphveil.audit import audit_method
    from graphveil.methods.registry import method_names
    from graphveil.runs.load import method_of, read_certificate

    saved = name not in method_names() and (Path(name).is_dir() or "/" in name)  # which can only be a path
    if saved:
        if flags.given():
            raise InputError("a run brings its own promise and settings; leave those flags out")
        certificate = read_certificate(Path(name))
        method, promise = method_of(certificate), certificate.promise
    else:
        method, promise = flags.settled(name)
    graph = None if data is None else opt.load_data(data, seed)
    options = {"name": data or "", "runs": runs, "seed": seed, "small": not saved}
    return audit_method(method, promise, graph, progress=progress, **options)


def _show(found: list[Audit], everything: bool, as_json: bool) -> None:
    from graphveil.audit.text import cross_check_text, report_text, table_text

    if not everything:
        opt.show(found[0].to_json() if as_json else report_text(found[0]))
        if found[0].violated:
            raise typer.Exit(1)
        return
    from graphveil.audit.accountants import cross_checks

    checks = list(cross_checks())
    body = {"audits": [entry.to_json() for entry in found], "accountants": [check.to_json() for check in checks]}
    opt.show(body if as_json else f"{table_text(found)}\n{cross_check_text(checks)}")
    if any(entry.unexpected for entry in found) or not all(check.agrees for check in checks):
        raise typer.Exit(1)
