"""One run from start to row: load, fit, score, attack. The same function for every engine; a failure becomes a row, too."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib import import_module
from typing import Any

from graphveil.errors import DataWarning, GraphveilError, InputError
from graphveil.experiments.run import AUDIT, CHECKS, FORECAST, REPORTS, Run
from graphveil.learn.remembered import Memory, remembering
from graphveil.privacy.budget import BudgetBook
from graphveil.privacy.certificate import CORRECTED, Certificate
from graphveil.privacy.shares import shares

GRAPHS_KEPT = 2  # per worker: runs on one graph follow each other
REMEMBERED = 2**30  # bytes per worker
NOT_COVERED = "selected on private data: not covered"
TRIED_AGAIN = "charged selection started more than once: the number of its repetitions is not geometric any more"

Row = dict[str, Any]


def execute(body: Mapping[str, Any]) -> Row:
    """The row of a run given as JSON; whatever goes wrong is its error."""
    run = Run.from_json(body)
    started, cpu = time.perf_counter(), time.process_time()
    found: Row = {"status": "done", "error": None, **EMPTY}
    memory = _memory()
    reused = memory.reused
    with warnings.catch_warnings(), remembering(None if run.seed is None else memory):
        warnings.simplefilter("ignore")
        try:
            found |= _outcome(run)
        except Exception as error:  # recorded with the run; the rest of the sweep goes on
            plain = isinstance(error, GraphveilError)
            reason = str(error) if plain else f"{type(error).__name__}: {error}"
            found |= {"status": "failed", "error": " ".join(reason.split())[:2000]}
    own = memory.reused == reused  # else what it took is not its own
    return run.described() | found | _spent(run, started if own else None, cpu if own else None)


EMPTY: Row = {
    "epsilon": None,
    "epsilon_claimed": None,
    "holds": False,
    "gaps": [],
    "releases": [],
    "metrics": {},
    "details": None,
}


def failed(run: Run, error: str) -> Row:
    """The row of a run that never came back."""
    return run.described() | EMPTY | {"status": "failed", "error": error} | _spent(run, None, None)


def voided(row: Row, reason: str) -> Row:
    """The row without a proof, for this reason."""
    return row | {"epsilon": None, "holds": False, "gaps": [*row["gaps"], reason]}


def _spent(run: Run, started: float | None, cpu: float | None) -> Row:
    known = started is not None and cpu is not None and not run.secret_length
    return {
        "seconds": round(time.perf_counter() - (started or 0.0), 4) if known else None,
        "cpu_seconds": round(time.process_time() - (cpu or 0.0), 4) if known else None,
        "finished": run.moment(),
    }


@lru_cache(maxsize=1)
def _memory() -> Memory:
    """Of this worker: settings that end in the same inputs are trained once."""
    return Memory(REMEMBERED)


@lru_cache(maxsize=GRAPHS_KEPT)
def _load(
    name: str, prepare: tuple[str, ...] | str | None, split: str, cut: int | None, seed: int, options: Any
) -> Any:
    from graphveil.graph import load_dataset

    return load_dataset(name, seed=seed, prepare=prepare, split=split, max_degree=cut, **dict(options))


def graph_of(run: Run) -> Any:
    """The prepared and split graph; kept for the next run on it, and never written to."""
    asked = run.data
    prepare = asked["prepare"] if isinstance(asked["prepare"], (str, type(None))) else tuple(asked["prepare"])
    options = tuple(sorted(asked["options"].items()))
    return _load(asked["name"], prepare, asked["split"], asked["max_degree"], run.split_seed, options)


def _outcome(run: Run) -> Row:
    """What the kind of the run asks for."""
    if run.kind == AUDIT:
        return import_module("graphveil.experiments.audits").audited(run)  # type: ignore[no-any-return]
    if run.kind == CHECKS:
        return import_module("graphveil.experiments.audits").cross_checked(run)  # type: ignore[no-any-return]
    if run.kind == REPORTS:
        return import_module("graphveil.experiments.reports").attacked(run, graph_of(run))  # type: ignore[no-any-return]
    if run.kind == FORECAST:
        return import_module("graphveil.experiments.forecasts").forecasted(run)  # type: ignore[no-any-return]
    return _trained(run)


def _trained(run: Run) -> Row:
    from graphveil.methods.registry import build
    from graphveil.privacy.promise import Promise

    data, promise = graph_of(run), Promise.from_json(dict(run.promise))
    told: Row = {}
    if run.candidates:
        from graphveil.experiments.selection import select

        model, told = select(run, data, promise)
    else:
        method = build(run.method, {**run.options, "mode": run.mode})
        with charged(run.budget) as budget:
            model = method.fit(data, promise, seed=run.seed, **budget)
    metrics: dict[str, float | None] = dict(told.pop("metrics", {}))
    scored = {"test": scores(model, data, "query"), "val": scores(model, data, "calibration")}
    metrics |= {"test_accuracy": scored["test"].get("accuracy"), "val_accuracy": scored["val"].get("accuracy")}
    metrics |= {"test_f1": scored["test"].get("f1")}
    if "public-graph" in run.metrics:
        metrics["public_graph_accuracy"] = model.score(data, access="public-graph")
    metrics |= further_costs(model.certificate)
    for attack in run.attacks:
        from graphveil.experiments.attack import figures

        metrics |= figures(attack, model, run, data, promise)
    return privacy(model.certificate, run.selection) | told | {"metrics": metrics}


@contextmanager
def charged(path: str | None) -> Iterator[dict[str, Any]]:
    """What a fit is told about the budget book at this path, if there is one."""
    if path is None:
        yield {}
        return
    with BudgetBook(path) as book:
        yield {"budget": book}


def further_costs(certificate: Certificate) -> dict[str, float | None]:
    """Epsilons beside the promised one: of an undirected edge (local), and with a paper's countable errors corrected."""
    found = {"epsilon_per_edge": certificate.per_edge, "epsilon_corrected": certificate.implied.get(CORRECTED)}
    return {name: value for name, value in found.items() if value is not None}


def scores(model: Any, data: Any, kind: str) -> dict[str, float]:
    """Exact accuracy and F1 on one kind of nodes; nothing where nobody has a label, or the method learned from them."""
    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return dict(model.scores(data, kind))
    return {}


def privacy(certificate: Certificate, selection: str) -> Row:
    """What a certificate says, in the fields of a row; a selection that nobody paid for voids it."""
    told: Row = {
        "delta": certificate.delta,
        "epsilon": certificate.epsilon,
        "epsilon_claimed": certificate.epsilon_claimed,
        "holds": certificate.holds,
        "gaps": list(dict.fromkeys(gap.code for gap in certificate.gaps)),
        "releases": releases(certificate),
    }
    return voided(told, NOT_COVERED) if selection == "not covered" else told


def releases(certificate: Certificate) -> list[Row]:
    """Name, noise and size of every release, and its share of the budget of whoever pays most."""
    parts, found = shares(certificate), []
    for release in certificate.releases:
        mechanism: Any = release.mechanism
        noise = getattr(mechanism, "sigma", getattr(mechanism, "scale", None))
        share = parts.get(release.name)
        found.append(
            {
                "name": release.name,
                "noise": noise if noise is None or math.isfinite(noise) else None,
                "dimension": mechanism.size,
                "share": None if share is None else round(share, 6),
            }
        )
    return found
