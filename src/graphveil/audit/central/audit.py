"""The audit of a central method: conformance on every neighbour, then lower bounds in lock step, then one run from outside."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any

from graphveil.audit.central.conformance import awkward_graph, inspect_method
from graphveil.audit.central.lock_step import declared_pair, lock_step
from graphveil.audit.central.many_draws import DRAWS, many_draws
from graphveil.audit.central.one_run import one_run_audit
from graphveil.audit.central.replay import Recording
from graphveil.audit.result import Audit, Evidence, Failure
from graphveil.audit.settings import audit_settings, awkward_nodes, dense, in_blocks
from graphveil.audit.witnesses import witnesses
from graphveil.errors import InputError, PrivacyError
from graphveil.graph.validate import validate
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Level, Promise
from graphveil.progress import Progress, silent

RUNS = 2
GENERATED_DELTA = 1e-4  # the default delta of a graph of 33 people would be 0.01
CORRECTED_NOISE = "with the paper's countable errors corrected its noise is worth epsilon"
OWN_LISTS = (
    "a prediction reads the node's own contact list: those of people whose list loses an entry with the neighbour are their own "
    "affair and not compared, everybody else's are"
)
CHECKS = (
    "the accounted epsilon is the promised one, and the ledger is the plan",
    "every release moves by at most its declared sensitivity on every neighbour; "
    "methods that run in blocks do so in five blocks and two threads",
    "with equal releases, model, certificate and others' predictions are equal",
    "noise has the declared scale and law, lies on the public grid and is drawn number by number; "
    "so does that of every planned release, one number or many, drawn ten thousand times (of wide tables: a part)",
    "noise is independent across releases and along each of them; a table of several blocks of records does not repeat it",
    "batches are coins of the declared rate, equal for all records and drawn anew at every step; an empty one is a noisy step",
    "the worst pair of the declared sensitivities, sampled, does not refute the accounted epsilon",
    "a record touches no more rows of a sampled sum than its declared group",
    "seeded runs repeat, unseeded ones do not; epsilon = inf adds no noise and claims nothing; NaN rows are refused",
)


def audit_central(
    method: PrivateMethod,
    promise: Promise,
    data: Any = None,
    *,
    name: str = "",
    runs: int = RUNS,
    samples: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    outside: bool = True,
    small: bool = True,
    progress: Progress | None = None,
) -> Audit:
    """Audit ``method`` under ``promise`` on ``data``, or on a small graph made of worst cases.

    ``runs`` histories are audited in lock step, with ``samples`` draws each (default: as many as are cheap); every planned
    release is drawn ``draws`` times through a curator; ``outside`` adds one training run on a graph with canaries, judged by its
    model alone. ``small``: hyper-parameters that the user has left alone are set to small ones (``settings.py``).
    """
    started, tell = time.perf_counter(), progress or silent
    if promise.level is Level.NONE or not method.supports:
        raise InputError(f"{method.name} promises nothing at level {promise.level}: there is nothing to audit")
    if not promise.private:
        raise InputError("epsilon = inf promises nothing: there is nothing to audit")
    settings = audit_settings(method) if small else {}
    method = method.clone().set_params(**settings)
    if data is None:
        data, names = awkward_graph(method, seed)
        name = "worst-case graph (generated)"
        promise = promise.at(GENERATED_DELTA) if promise.delta is None else promise
    else:
        data = dense(data)
        names = awkward_nodes(data, seed)
    with warnings.catch_warnings(), in_blocks(int(data.num_nodes)):
        warnings.simplefilter("ignore")
        facts = PublicFacts.of(data)
        lists = validate(data, on_bad_rows="zero").lists
        widest = int(max(lists.out_degrees.max(), lists.in_degrees.max()))
        if promise.max_degree is not None and widest > promise.max_degree:
            raise InputError(
                f"the promise says that nobody has more than {promise.max_degree} contacts, but this graph has a node with "
                f"{widest}: say --max-degree {widest}, or give other --data"
            )
        plan = method.plan(method.facts(data), promise)
        promise = plan.promise
        tell("conformance", 0, 1)
        report = inspect_method(method, [promise], seed, (data, names))
        tell("conformance", 1, 1)
        accounted, failures = declared_pair(plan, samples, seed)
        evidence: list[Evidence] = []
        run = Recording(method, plan, data, seed)
        try:
            tell("draws", 0, 1)
            run.run(data, run.recorder)
            for failure in many_draws(run, draws):
                report.add(plan, failure)
            tell("draws", 1, 1)
            evidence, found = lock_step(method, plan, data, names, runs, samples, seed, tell)
            failures += found
            if outside and plan.steps:
                tell("one run", 0, 1)
                evidence.append(one_run_audit(method, promise, seed))
                tell("one run", 1, 1)
        except PrivacyError as error:  # a run that the curator refuses shows nothing more
            report.add(plan, Failure("refused", "", str(error)))
        failures = [*report.failures, *failures]
    return Audit(
        method=method.name,
        mode=method.mode,
        promise={**promise.to_json(), "delta": promise.delta},
        data=f"{name}, {facts.nodes} nodes",
        settings=settings,
        claimed=promise.epsilon if plan.claim is None else plan.claim,
        provable=plan.epsilon() if plan.provable else math.inf,
        shares=tuple(report.moved.values()),
        failures=tuple(failures),
        codes=tuple(sorted(report.codes)),
        evidence=tuple(evidence),
        accounting=tuple(accounted),
        witnesses=witnesses(method.name, [gap.code for gap in plan.gaps]),
        checks=CHECKS,
        known_gaps=tuple(gap.code for gap in plan.gaps),
        notes=tuple(_notes(method, plan)),
        seed=seed,
        seconds=time.perf_counter() - started,
    )


def _notes(method: PrivateMethod, plan: Plan) -> Iterator[str]:
    """What a reader of the verdict should know."""
    if plan.corrected is not None:
        yield f"{CORRECTED_NOISE} {plan.corrected:.4g}"
    reads_lists = getattr(getattr(method, "predictor", None), "reads_lists", False)
    if reads_lists and plan.promise.level is Level.K_NEIGHBOR:
        yield OWN_LISTS
