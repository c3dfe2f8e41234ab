"""One run from start to row: load, fit, score, attack. The same function for every engine; a failure becomes a row, too."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from graphveil.errors import DataWarning, GraphveilError, InputError
from graphveil.experiments.run import Run
from graphveil.privacy.accounting.loss import Gdp, Loss, Pure, Stated
from graphveil.privacy.certificate import CORRECTED, Certificate
from graphveil.privacy.plan import Release

GRAPHS_KEPT = 2  # per worker: runs on one graph follow each other
NOT_COVERED = "selected on private data: not covered"

Row = dict[str, Any]


def execute(body: Mapping[str, Any]) -> Row:
    """The row of a run given as JSON; whatever goes wrong is its error."""
    run = Run.from_json(body)
    started, cpu = time.perf_counter(), time.process_time()
    found: Row = {"status": "done", "error": None, **EMPTY}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found |= _outcome(run)
        except Exception as error:  # recorded with the run; the rest of the sweep goes on
            plain = isinstance(error, GraphveilError)
            reason = str(error) if plain else f"{type(error).__name__}: {error}"
            found |= {"status": "failed", "error": " ".join(reason.split())[:2000]}
    return run.described() | found | _spent(started, cpu)


EMPTY: Row = {"epsilon": None, "epsilon_claimed": None, "holds": False, "gaps": [], "releases": [], "metrics": {}}


def failed(run: Run, error: str) -> Row:
    """The row of a run that never came back."""
    return run.described() | EMPTY | {"status": "failed", "error": error} | _spent(None, None)


def _spent(started: float | None, cpu: float | None) -> Row:
    return {
        "seconds": None if started is None else round(time.perf_counter() - started, 4),
        "cpu_seconds": None if cpu is None else round(time.process_time() - cpu, 4),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


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
    from graphveil.methods.registry import build
    from graphveil.privacy.promise import Promise

    data, promise = graph_of(run), Promise.from_json(dict(run.promise))
    told: Row = {}
    if run.candidates:
        from graphveil.experiments.selection import select

        model, told = select(run, data, promise)
    else:
        model = build(run.method, {**run.options, "mode": run.mode}).fit(data, promise, seed=run.seed)
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
        "gaps": [gap.code for gap in certificate.gaps],
        "releases": releases(certificate),
    }
    if selection == "not covered":
        told |= {"epsilon": None, "holds": False, "gaps": [*told["gaps"], NOT_COVERED]}
    return told


def releases(certificate: Certificate) -> list[Row]:
    """Name, noise, size and share of the budget of every release; no share where losses of different kinds are composed."""
    weights = _weights(certificate)
    total = None if weights is None else sum(weights)
    found = []
    for number, release in enumerate(certificate.releases):
        mechanism: Any = release.mechanism
        noise = getattr(mechanism, "sigma", getattr(mechanism, "scale", None))
        share = round(weights[number] / total, 6) if weights is not None and total else None
        finite = noise if noise is None or math.isfinite(noise) else None
        found.append({"name": release.name, "noise": finite, "dimension": mechanism.size, "share": share})
    return found


def _weights(certificate: Certificate) -> list[float] | None:
    """Squared Gaussian parameters, or pure epsilons, of whoever pays most; None for a mixture."""
    kinds = sorted({kind for release in certificate.releases for kind in release.sensitivity})
    tried = [[_weight(loss) for loss in _losses(certificate.releases, kind)] for kind in kinds]
    known = [weights for weights in tried if weights and len({unit for unit, _ in weights if unit != "none"}) <= 1]
    if not known or any(unit == "other" for weights in known for unit, _ in weights):
        return None
    return max(([value for _, value in weights] for weights in known), key=sum)


def _losses(releases: Iterable[Release], kind: str) -> list[Loss]:
    return [release.loss(kind) for release in releases]


def _weight(loss: Loss) -> tuple[str, float]:
    match loss:
        case Gdp(mu) if math.isfinite(mu):
            return ("gaussian", mu**2) if mu else ("none", 0.0)
        case Pure(epsilon) | Stated(epsilon, _):
            return ("pure", epsilon) if epsilon else ("none", 0.0)
    return "other", 0.0
