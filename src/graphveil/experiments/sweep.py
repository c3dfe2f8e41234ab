"""The driver: what is missing goes to an engine, what comes back goes to the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphveil.errors import InputError
from graphveil.experiments.engines.base import Engine
from graphveil.experiments.execute import TRIED_AGAIN, voided
from graphveil.experiments.run import Run
from graphveil.experiments.store import Row, Store
from graphveil.progress import Progress, silent


@dataclass(frozen=True)
class Counts:
    """How many runs were asked for, were there already, are done now, and failed."""

    asked: int
    kept: int
    done: int
    failed: int


def sweep(
    experiment: str,
    runs: Sequence[Run],
    store: Store,
    engine: Engine,
    *,
    resume: bool = False,
    retry_failed: bool = False,
    known: Sequence[Row] = (),
    progress: Progress = silent,
) -> Counts:
    """Run what has no outcome yet; without ``resume`` an experiment that was begun is refused.

    A run is attempted under its own ledger and certificate every time; of two outcomes the first is kept. With a seed a second
    attempt draws the same noise, without one fresh noise. A charged selection that was stopped and starts again proves
    nothing: long ones are stopped more often, so the number of repetitions of those that finish is not the one paid for.
    Outcomes in ``known`` rows (an export, another store) are taken over for the runs that have none here.
    """
    with store.driving():
        finished = store.finished()
        here = [run for run in runs if run.id in finished]
        if here and not resume and experiment in store.experiments():
            raise InputError(
                f"{store.path} has {len(here)} of {len(runs)} runs of {experiment!r} already: --resume goes on with them, "
                "or choose another --out"
            )
        store.ask(experiment, runs)
        if retry_failed:
            store.forget_failures(run.id for run in here)
        _take_over(runs, known, store)
        finished = store.finished()
        missing = [run for run in runs if run.id not in finished]
        counted = {"done": 0, "failed": 0}
        stage = f"{experiment} ({engine.name})"
        progress(stage, 0, len(missing))
        before = store.attempts()
        again = {run.id for run in missing if run.secret_length and run.id in before}
        for row in engine.run(_begun(missing, store)):
            store.finish(voided(row, TRIED_AGAIN) if row["id"] in again else row)
            counted[row["status"]] += 1
            progress(stage, sum(counted.values()), len(missing))
        return Counts(len(runs), len(runs) - len(missing), **counted)


def _take_over(runs: Sequence[Run], known: Sequence[Row], store: Store) -> None:
    """Keep what other rows say of runs that are still missing; a failure is no outcome to take over."""
    told = {row["id"]: row for row in known if row["status"] == "done"}
    finished = store.finished()
    for run in runs:
        if run.id in told and run.id not in finished:
            store.begin(run)
            store.finish({key: value for key, value in told[run.id].items() if key not in ("experiment", "label")})


def _begun(runs: Sequence[Run], store: Store) -> Iterator[Run]:
    """The runs, each written down as attempted when it is taken."""
    for run in runs:
        store.begin(run)
        yield run
