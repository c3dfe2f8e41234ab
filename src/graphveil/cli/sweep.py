"""``graphveil sweep``: run everything a specification asks for, and keep it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphveil.cli import options as opt
from graphveil.cli.options import flag

if TYPE_CHECKING:
    from graphveil.experiments.run import Run
    from graphveil.experiments.sweep import Counts

STORE = Path("results.sqlite")
Out = Annotated[Path, flag("--out FILE", "The store of results (SQLite); several experiments may share one.")]


Budget = Annotated[Path | None, flag("--budget BOOK", "Charge every run to this book; what it refuses has failed.")]


def charged(runs: Sequence[Run], book: Path | None) -> list[Run]:
    """The runs, paid for by the book if there is one; a book that is not there is said before anything runs."""
    from graphveil.privacy.budget import BudgetBook

    if book is None:
        return list(runs)
    BudgetBook(book).close()
    return [run.charged_to(str(book.resolve())) for run in runs]


@dataclass(frozen=True)
class EngineFlags:
    """Where runs are executed."""

    engine: Annotated[str, flag("--engine", "serial, process or ray.")] = "process"
    workers: Annotated[int | None, flag("--workers N", "Runs at a time (default: one per processor).", min=1)] = None
    threads: Annotated[
        int, flag("--threads N", "Threads of each run; figures depend on it in the last digits.", min=1)
    ] = 1
    address: Annotated[str | None, flag("--address A", "Engine ray: an existing cluster, such as auto.")] = None
    known: Annotated[
        Path | None, flag("--known FILE", "An export (.jsonl) or a store whose runs are taken over, not run again.")
    ] = None


def sweep(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="A specification, .yaml or .toml (docs/experiments.md).")
    ],
    engine: EngineFlags,
    out: Out = STORE,
    resume: Annotated[
        bool, flag("--resume", "Go on with what is in the store: finished runs are not repeated.")
    ] = False,
    retry_failed: Annotated[bool, flag("--retry-failed", "With --resume: try failed runs again.")] = False,
    budget: Budget = None,
    dry_run: Annotated[bool, flag("--dry-run", "Check the specification and count the runs; run nothing.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Run every combination that SPEC names; what is wrong with it is said before anything runs."""
    from graphveil.experiments.expand import expand
    from graphveil.experiments.read import read_experiment
    from graphveil.experiments.show import all_tables

    experiment = read_experiment(spec)
    runs = expand(experiment, str(spec))
    if dry_run:
        opt.show(
            {"experiment": experiment.name, "runs": len(runs)} if as_json else f"{experiment.name}: {len(runs)} runs"
        )
        return
    runs = charged(runs, budget)
    counts, rows = run_all(experiment.name, runs, out, engine, resume=resume or retry_failed, retry_failed=retry_failed)
    if as_json:
        opt.show({"experiment": experiment.name, "out": str(out), **asdict(counts), "rows": rows})
        return
    for table in all_tables(rows):
        typer.echo(table.text() + "\n")
    typer.echo(f"{counts.done} runs done, {counts.failed} failed, {counts.kept} were there already; kept in {out}")


def run_all(
    name: str, runs: Sequence[Run], out: Path, flags: EngineFlags, **how: bool
) -> tuple[Counts, list[dict[str, Any]]]:
    """Sweep with a display on stderr; returns what happened, and the rows of these runs."""
    from graphveil.experiments.engines.choose import choose
    from graphveil.experiments.export import plain, read_rows
    from graphveil.experiments.store import Store
    from graphveil.experiments.sweep import sweep as drive

    engine = choose(flags.engine, flags.workers, flags.threads, flags.address)
    known = [] if flags.known is None else read_rows(flags.known)
    with Store(out) as store, opt.progress_bar(lines=True) as progress:
        counts = drive(name, runs, store, engine, known=known, progress=progress, **how)
        asked = {run.id for run in runs}
        return counts, [plain(row) for row in store.rows(name) if row["id"] in asked]
