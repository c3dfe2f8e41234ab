"""Audits as runs of an experiment: what the audit finds stands in its row, so that it is kept, resumed and shown like any other.

name: audit
audit: {runs: 2}          # methods and promises that are not named: every one, and one promise per level
epsilons: [4]
seeds: 3
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphveil.errors import InputError
from graphveil.experiments.run import AUDIT, CHECKS, Run, promise_fields
from graphveil.experiments.spec import Grid, MethodEntry
from graphveil.methods.registry import build, method_names, modes_of
from graphveil.privacy.plan import finite
from graphveil.privacy.promise import NonPrivate, Promise

WORST_CASES = "worst cases"
GENERATED: dict[str, Any] = {
    "name": WORST_CASES,
    "prepare": None,
    "split": "official",
    "max_degree": None,
    "options": {},
}
ACCOUNTANTS = "accountants"
WITNESS = ("code", "claimed", "epsilon", "how")
Row = dict[str, Any]


def audit_entries(grid: Grid) -> list[MethodEntry]:
    """The methods to audit: those that are named, else every registered one in every mode that is asked for."""
    assert grid.audit is not None
    if grid.methods is not None:
        return grid.methods
    return [
        MethodEntry(name=name, mode=mode)
        for name in method_names()
        for mode in modes_of(name)
        if mode in grid.audit.modes
    ]


def usual_promises(method: Any, epsilons: list[float] | None, seed: int, place: str) -> list[Promise]:
    """One promise per level and epsilon that the method supports; level local has budgets of its own."""
    from graphveil.audit.everything import promises_of

    if not epsilons:
        raise InputError(f"{place}: no epsilon is named: add epsilons: [4], or promises")
    found = {str(promise): promise for epsilon in epsilons for promise in promises_of(method, epsilon, seed)}
    return list(found.values())


def audit_run(entry: MethodEntry, promise: Promise, seed: int, runs: int) -> Run:
    """The audit of a method under a promise, on the generated graph of worst cases."""
    return Run(
        method=entry.name,
        mode=entry.mode,
        options=entry.options,
        data=GENERATED,
        preparation=None,
        promise=promise_fields(promise),
        seed=seed,
        delta_rule="default" if promise.delta is None else f"{promise.delta:g}",
        label=entry.shown,
        kind=AUDIT,
        settings={"runs": runs},
    )


def check_runs(grid: Grid) -> Iterator[Run]:
    """One run for the cross-checks of the accounting, if they are asked for: they draw nothing and need no seed."""
    if grid.audit is not None and grid.audit.cross_checks:
        data = GENERATED | {"name": "none"}
        promise = promise_fields(NonPrivate())
        yield Run(ACCOUNTANTS, "sound", {}, data, None, promise, 0, label=ACCOUNTANTS, kind=CHECKS)


def audited(run: Run) -> Row:
    """What an audit found, in the fields of a row: provable epsilon, claimed one, and the observed one as a metric."""
    from graphveil.audit import audit_method

    method = build(run.method, {**run.options, "mode": run.mode})
    found = audit_method(method, Promise.from_json(dict(run.promise)), runs=run.settings["runs"], seed=run.seed)
    body = found.to_json()
    return {
        "delta": found.promise.get("delta"),
        "epsilon": finite(found.provable),
        "epsilon_claimed": finite(found.claimed),
        "holds": not found.violated and found.provable <= found.claimed * (1 + 1e-9),
        "gaps": list(found.codes),
        "metrics": {
            "epsilon_observed": finite(found.observed),
            "violated": float(found.violated),
            "unexpected": float(found.unexpected),
            "false_alarm_rate": found.false_alarm,
        },
        "details": {
            "verdict": found.verdict,
            "observed_unbounded": body["observed_unbounded"],
            "witnesses": [{key: entry[key] for key in WITNESS} for entry in body["witnesses"]],
            "failures": body["failures"],
        },
    }


def cross_checked(run: Run) -> Row:
    """Which ways of accounting agree."""
    from graphveil.audit.accountants import cross_checks

    checks = [check.to_json() for check in cross_checks()]
    agreed = sum(check["agrees"] for check in checks)
    return {
        "holds": agreed == len(checks),
        "metrics": {"checks": len(checks), "agree": agreed},
        "details": {"checks": checks},
    }
