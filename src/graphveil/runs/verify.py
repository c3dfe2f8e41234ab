"""Recompute what a saved run claims from its ledger alone, without the data."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

from graphveil.errors import GraphveilError, InputError
from graphveil.exchange.certificate import LocalCertificate
from graphveil.files import read_json, read_json_lines
from graphveil.methods.model import file_digests
from graphveil.methods.registry import build
from graphveil.privacy.certificate import Certificate, digest, prove
from graphveil.privacy.plan import Plan, Release, Slot, total_mu
from graphveil.runs.local_verify import is_local, local_disagreements

TOLERANCE = 1e-6
SCOPE = (
    "this proves that certificate, ledger and plan agree with each other and with the accounting; "
    "who wrote them would need a signature"
)


def disagreements(body: dict[str, Any], ledger: list[Any], plan: Plan) -> list[str]:
    """Everything in which certificate, ledger, plan and recomputed accounting disagree; empty if consistent.

    ``plan`` is what the method itself plans for the certificate's promise, facts and parameters.
    """
    found: list[str] = []
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    if body.get("digest") != digest(unsigned):
        found.append("the certificate was edited after it was written (its digest does not match)")
    if ledger != body.get("releases"):
        found.append("the ledger and the releases on the certificate differ")
    try:
        certificate = Certificate.from_json(body)
        proved, further = prove(plan, certificate.releases)
    except (GraphveilError, ArithmeticError) as error:
        return [*found, f"the certificate cannot be interpreted: {error}"]
    if [gap.code for gap in certificate.gaps] != [gap.code for gap in plan.gaps]:
        found.append("the gaps on the certificate are not those of the plan")
    if dict(certificate.weaker or {}) != dict(plan.weaker):
        found.append("the kinds of records covered by less than the promise are not those of the plan")
    if certificate.mode != certificate.parameters.get("mode", "sound"):
        found.append("the mode on the certificate is not the one of the method's parameters")
    planned = [] if plan.adaptive else [step.to_json() for step in plan.steps]
    if not plan.adaptive and not _same(planned, [release.to_json() for release in certificate.releases]):
        found.append("the releases are not the ones the method plans for this promise and these public facts")
    found += _outside_filter(plan, certificate) if plan.adaptive else []
    if not _same(certificate.epsilon, proved if math.isfinite(proved) else None):
        found.append(f"epsilon is recorded as {certificate.epsilon}, the ledger gives {proved}")
    claimed = proved if plan.claim is None else plan.claim
    if not _same(certificate.epsilon_claimed, claimed if math.isfinite(claimed) else None):
        found.append(
            f"the claimed epsilon is recorded as {certificate.epsilon_claimed}, the accounting gives {claimed}"
        )
    if not _same(dict(certificate.implied or {}), further):
        found.append("the figures implied by the releases do not match the ledger")
    if body.get("delta") != certificate.promise.delta:
        found.append("two different deltas are recorded")
    holds = not plan.gaps and math.isfinite(proved) and proved <= certificate.promise.epsilon
    if certificate.holds != holds:
        found.append(f"'holds' is recorded as {certificate.holds}, it is {holds}")
    return found


def _outside_filter(plan: Plan, certificate: Certificate) -> list[str]:
    """How the releases of an adaptive run leave its plan: slots that do not exist, other bounds, or more than mu^2."""
    slots = {step.name: step for step in plan.steps}
    releases = certificate.releases
    if len({release.name for release in releases}) != len(releases):
        return ["a release happened twice"]
    for release in releases:
        slot = slots.get(release.name)
        if slot is None or not _same(dict(slot.sensitivity), dict(release.sensitivity)):
            return [f"release {release.name!r} is not a slot of the plan, or has other sensitivities"]
        if plan.promise.private and isinstance(slot, Slot) and not _fills(slot, release):
            return [f"release {release.name!r} is not the Gaussian release of its slot"]
    if not plan.promise.private:
        return []
    spent = {kind: total_mu(release.loss(kind) for release in releases) for kind in plan.kinds}
    return [
        f"{kind} records have spent mu {mu}, the promise allows {plan.mu}"
        for kind, mu in spent.items()
        if mu is None or mu > plan.mu * (1 + TOLERANCE)
    ]


def _fills(slot: Slot, release: Release) -> bool:
    bound = max(slot.sensitivity.values())
    return release.mechanism.fills(slot.dimension, slot.steps, bound, slot.replaces)


def _same(left: Any, right: Any) -> bool:
    """Equality of nested JSON values with numbers compared to the tolerance."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, float) or isinstance(right, float):
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        return numbers and abs(left - right) <= TOLERANCE * max(1.0, abs(right))
    return bool(left == right)


def verify_run(run: Path) -> tuple[list[str], float | None]:
    """What disagrees in a saved run, and the epsilon that its ledger gives; reads no data."""
    body, ledger = read_json(run / "certificate.json"), read_json_lines(run / "ledger.jsonl")
    if is_local(body):
        return _verify_local(run, body, ledger)
    try:
        certificate = Certificate.from_json(body)
        method = build(certificate.method, dict(certificate.parameters))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = method.plan(certificate.facts, certificate.promise)
        epsilon = prove(plan, certificate.releases)[0]
    except (GraphveilError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return [f"the certificate cannot be interpreted: {error}"], None
    found = disagreements(body, ledger, plan) + _edited_files(run)
    return found, epsilon if math.isfinite(epsilon) else None


def _verify_local(run: Path, body: dict[str, Any], ledger: list[Any]) -> tuple[list[str], float | None]:
    try:
        if body["mode"] != body["parameters"].get("mode", "sound"):
            raise InputError(f"the method has no mode {body['mode']!r}, or its parameters name another one")
        certificate = LocalCertificate.from_json(body)
        method: Any = build(certificate.method, dict(certificate.parameters))
        gaps = method.known_gaps(certificate.promise)
    except (GraphveilError, KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"the certificate cannot be interpreted: {error}"], None
    return local_disagreements(body, ledger, gaps) + _edited_files(run), certificate.epsilon


def _edited_files(run: Path) -> list[str]:
    recorded, found = read_json(run / "manifest.json"), file_digests(run)
    names = sorted({*recorded, *found})
    return [f"{name} is not the file that was saved" for name in names if recorded.get(name) != found.get(name)]
