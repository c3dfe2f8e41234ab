"""Choosing among candidates on private validation nodes: paid for, or marked as not covered.

*Charged* (Papernot and Steinke 2022, arXiv 2110.03620): a geometric number of repetitions with the given mean, each with a
candidate drawn at random and fresh noise, and the one with the best noisy validation score is kept. One repetition is mu-
GDP: the fit, and a Gaussian release of how many validation nodes it classifies correctly. One person changes that number by
at most one under adjacency ``record``, because a prediction is computed from the releases and the node's own record. The
Renyi cost of the whole is that of ``dp_accounting.RepeatAndSelectDpEvent``; mu is the largest for which it stays within the
promise. The number of repetitions is secret and is not kept, nor is how long they took (``Run.secret_length``); whoever watches
the run sees it. Test: ``tests/experiments/test_selection.py``.

*Not covered*: every candidate is fitted under the whole promise and the best exact validation accuracy decides, as papers do.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from random import Random, SystemRandom
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.experiments.run import Run
from graphveil.methods.model import as_graph
from graphveil.methods.registry import build
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.mechanisms import Gaussian
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Plan, Release, total_mu
from graphveil.privacy.promise import Adjacency, Promise

MEAN = 10.0  # repetitions, unless the specification says another number
SCORE_SHARE = 0.1  # of the squared Gaussian parameter of one repetition: for the noisy validation score
GEOMETRIC = 1.0  # the shape of the number of repetitions
RECORD_ONLY = (
    "charged selection counts correct validation nodes, which one person changes by at most one under adjacency record only; "
    "use that, or selection: 'not covered'"
)

Told = dict[str, Any]


def check_selection(method: Any, promise: Promise, charged: bool) -> None:
    """Refuse a selection that cannot be made, or not be paid for."""
    if "calibration" in method.learns_from:
        raise InputError(f"{method.name} learns from validation nodes: none are left to select on")
    if charged and promise.adjacency is not Adjacency.RECORD:
        raise InputError(RECORD_ONLY)
    if charged and not promise.private:
        raise InputError("charged selection needs a finite epsilon: without noise there is nothing to pay for")


def select(run: Run, data: Any, promise: Promise) -> tuple[Any, Told]:
    """The selected model, and what its row says besides its certificate (``metrics``, ``epsilon``)."""
    return _charged(run, data, promise) if run.selection == "charged" else _best(run, data, promise)


def _best(run: Run, data: Any, promise: Promise) -> tuple[Any, Told]:
    models = [_method(run, candidate).fit(data, promise, seed=run.seed) for candidate in run.candidates]
    reached = [model.scores(data, "calibration")["accuracy"] for model in models]
    chosen = int(np.argmax(reached))
    return models[chosen], {"metrics": {"selected": float(chosen)}}


def _charged(run: Run, data: Any, promise: Promise) -> tuple[Any, Told]:
    graph = _method(run, run.candidates[0]).validated(data, "raise")
    promise = promise.with_default_delta(graph.nodes)
    mean = run.selection_mean or MEAN
    mu = repetition_mu(promise.epsilon, promise.target_delta, mean)
    fit, score = mu * math.sqrt(1 - SCORE_SHARE), mu * math.sqrt(SCORE_SHARE)
    once = replace(promise, epsilon=gaussian_epsilon(fit, promise.target_delta))
    for candidate in run.candidates:
        method = _method(run, candidate)
        _check_gaussian(method.plan(method.facts_for(method.validated(data, "raise"), once), once), fit)
    coins: Random = SystemRandom() if run.seed is None else Random(run.seed)
    best: tuple[float, int, Any] = (-math.inf, 0, None)
    while True:
        chosen, seed = coins.randrange(len(run.candidates)), None if run.seed is None else coins.getrandbits(31)
        model = _method(run, run.candidates[chosen]).fit(data, once, seed=seed)
        noisy = _noisy_score(model, data, score, seed)
        best = max(best, (noisy, chosen, model), key=lambda entry: entry[0])
        if coins.random() < 1 / mean:
            break
    cost = selection_epsilon(mu, promise.target_delta, mean)
    held = {"epsilon": cost, "epsilon_claimed": cost, "holds": best[2].certificate.holds and cost <= promise.epsilon}
    return best[2], {"metrics": {"selected": float(best[1])}, **held}


def _method(run: Run, candidate: Any) -> Any:
    return build(run.method, {**run.options, **candidate, "mode": run.mode})


def _noisy_score(model: Any, data: Any, mu: float, seed: int | None) -> float:
    """How many validation nodes are classified correctly, released with mu-GDP."""
    graph = as_graph(data)
    asked = graph.masks["calibration"] & (graph.labels >= 0)
    correct = float((model.predict(graph).numpy() == graph.labels)[asked].sum())
    noise = Noise(None if seed is None else seed + 1)
    return float(Gaussian.for_mu(1.0, mu, 1).apply(np.array([correct]), noise)[0])


def _check_gaussian(plan: Plan, mu: float) -> None:
    """Refuse a plan whose cost is not that of one Gaussian with parameter mu."""
    releases = [step for step in plan.steps if isinstance(step, Release)]
    spent = [plan.mu] if plan.adaptive else [total_mu(one.loss(kind) for one in releases) for kind in plan.kinds]
    if not plan.provable or any(one is None or one > mu * (1 + 1e-9) for one in spent):
        raise InputError(
            "charged selection needs a method whose releases are Gaussian and whose promise is proved; "
            "this one is not: use selection: 'not covered'"
        )


@cache
def selection_epsilon(mu: float, delta: float, mean: float) -> float:
    """Epsilon of a geometric number of repetitions (with this mean) of something mu-GDP, of which the best one is shown."""
    from dp_accounting.dp_event import GaussianDpEvent, RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant

    event = RepeatAndSelectDpEvent(GaussianDpEvent(1 / mu), mean, GEOMETRIC)
    return float(RdpAccountant().compose(event).get_epsilon(delta))


@cache
def repetition_mu(epsilon: float, delta: float, mean: float) -> float:
    """The largest mu (within a thousandth) for which the selection stays within epsilon."""
    low, high = 1e-4, 1e3
    if selection_epsilon(low, delta, mean) > epsilon:
        raise InputError(f"epsilon {epsilon:g} is too small for a selection among {mean:g} repetitions on average")
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if selection_epsilon(middle, delta, mean) <= epsilon else (low, middle)
    return low
