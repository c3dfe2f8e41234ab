"""The checks that mutants are held against, cheapest first where several would do: each says whether something is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from graphveil.audit.accountants import cross_checks
from graphveil.audit.central.batches import batch_failures
from graphveil.audit.central.conformance import (
    ConformanceError,
    Outcome,
    awkward_graph,
    check_private_method,
    only_releases,
)
from graphveil.audit.central.lock_step import lock_step
from graphveil.audit.central.many_draws import answer_of, curators, many_draws
from graphveil.audit.central.replay import Recorder, Recording
from graphveil.audit.local.audit import audit_local, local_graph
from graphveil.audit.local.clients import on_neighbouring_records
from graphveil.audit.local.replay import listen
from graphveil.errors import GraphveilError, PrivacyError
from graphveil.exchange.collector import Collector
from graphveil.exchange.randomizers import LabelResponse
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.local import Part
from graphveil.progress import silent
from tests.audit.healthy import stopping_at_the_first_failure
from tests.methods.roster_histories import history, moved, squared_factor
from tests.methods.roster_runs import MODES, decided
from tests.methods.roster_search import edges_chosen_badly
from tests.methods.roster_witness import random_world

Check = Callable[[Any, Any], bool]


def recorded(method: Any, promise: Any, seed: int = 0) -> tuple[Recording, Any]:
    """A recorded run on the worst-case graph, and its model."""
    data, _ = awkward_graph(method)
    run = Recording(method, method.plan(method.facts(data), promise), data, seed)
    return run, run.run(data, run.recorder)


def conformance(method: Any, promise: Any) -> bool:
    try:
        with stopping_at_the_first_failure():
            check_private_method(method, [promise])
    except ConformanceError:
        return True
    return False


def draws(method: Any, promise: Any) -> bool:
    return any(True for _ in many_draws(recorded(method, promise)[0], 4000))


def batches(method: Any, promise: Any) -> bool:
    return any(True for _ in batch_failures(recorded(method, promise)[0]))


def choices(method: Any, promise: Any) -> bool:
    """Three runs: in one of ten, a choice falls on the same epoch by chance."""
    for seed in range(3):
        run, model = recorded(method, promise, seed)
        if any(True for _ in only_releases(run, model, Outcome.of(model, run.data))):
            return True
    return False


def decisions(method: Any, promise: Any) -> bool:
    """Roster on histories in which its test has decided otherwise."""
    for mode in MODES:
        with decided(mode):
            if conformance(method, promise):
                return True
    return False


def leave_one_out(method: Any, promise: Any) -> bool:
    """Margins of Roster without noise: the own part of the probe must be taken off."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        world = random_world(rng)
        past = history(rng, world, False)
        if np.abs(past.sums(world)["test"] - past.witnessed(world)["test"]).max() > 1e-4:
            return True
    return False


def one_edge(method: Any, promise: Any) -> bool:
    """One covered edge on histories chosen against Roster: it must cost no more than one record."""
    for apart, together, past in edges_chosen_badly():
        if squared_factor(moved(past.sums(apart), past.sums(together))) > 1 + 1e-9:
            return True
    return False


def occurrences(method: Any, promise: Any) -> bool:
    data, names = awkward_graph(method)
    plan = method.plan(method.facts(data), promise)
    return bool(lock_step(method, plan, data, names, 1, 1000, 0, silent)[1])


def clients(method: Any, promise: Any) -> bool:
    data = local_graph(0)
    heard = listen(method, data, promise, 0)
    told, graph = heard.answers.broadcasts, method.validated(data, "raise")
    return any(True for _ in on_neighbouring_records(method, graph, heard.server.plan, told, 0))


def local(method: Any, promise: Any) -> bool:
    return audit_local(method, promise).violated


def accountants(method: Any, promise: Any) -> bool:
    return any(not check.agrees for check in cross_checks())


def query_labels(method: Any, promise: Any) -> bool:
    run, _ = recorded(method, promise)
    seen: list[np.ndarray] = []
    for curator, _ in curators(run, 1, Recorder):
        curator.release("mean", lambda private: (seen.append(private.labels), answer_of(run.plan.step("mean"), run))[1])
        return bool((seen[0][curator.masks["query"]] >= 0).any())
    return False


def ledger_on_disk(method: Any, promise: Any) -> bool:
    run, _ = recorded(method, promise)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        Ledger(path).append(run.plan.steps[0])
        return not path.exists()


def second_reports(method: Any, promise: Any) -> bool:
    collector = Collector([Round("labels", Part.LABELS, LabelResponse(1.0, 3))], 4)
    try:
        for label in (0, 1):
            collector.accept(Report("labels", np.array([2]), np.array([label])))
    except GraphveilError:
        return False
    return True


def publication(method: Any, promise: Any) -> bool:
    run, model = recorded(method, promise)
    try:
        model.predict_proba(run.data, access="charge")
    except PrivacyError:
        return False
    return True


CHECKS: dict[str, Check] = {
    "conformance": conformance,
    "draws": draws,
    "batches": batches,
    "choices": choices,
    "decisions": decisions,
    "leave one out": leave_one_out,
    "one edge": one_edge,
    "occurrences": occurrences,
    "clients": clients,
    "local": local,
    "accountants": accountants,
    "query labels": query_labels,
    "ledger on disk": ledger_on_disk,
    "second reports": second_reports,
    "publication": publication,
}


def something_is_wrong(name: str, method: Any, promise: Any) -> bool:
    """Whether the check of this name finds anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CHECKS[name](method, promise)
