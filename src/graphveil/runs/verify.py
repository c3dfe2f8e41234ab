"""Recompute what a saved run claims from its ledger alone, without the data: one check for central and local runs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from graphveil.errors import GraphveilError
from graphveil.files import read_json, read_json_lines
from graphveil.methods.model import file_digests
from graphveil.privacy.certificate import SCHEMA, Certificate, digest
from graphveil.privacy.certificate_schema1 import KEYS_OF, unlike, upgraded_entry
from graphveil.privacy.plan import Plan, Release, Slot, total_mu
from graphveil.runs.load import method_of, read_certificate

TOLERANCE = 1e-6
SCOPE = (
    "this proves that certificate, ledger and plan agree with each other and with the accounting; "
    "who wrote them would need a signature"
)
NOT_DERIVED = ("schema", "digest", "releases")


def verify_run(run: Path) -> tuple[list[str], float | None]:
    """What disagrees in a saved run, and the epsilon that its ledger gives; reads no data."""
    body, ledger = read_json(run / "certificate.json"), read_json_lines(run / "ledger.jsonl")
    try:
        certificate, earlier = read_certificate(run), body["schema"] != SCHEMA
        method = method_of(certificate, earlier)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = method.plan(certificate.facts, certificate.promise)
        kept = {name: getattr(certificate, name) for name in ("public", "assumptions", "seed", "holders")}
        options = certificate.parameters if earlier else method.get_params()
        made_by = {"method": method.name, "mode": method.mode, "parameters": options}
        derived = Certificate.of(plan, certificate.releases, **made_by, **kept)
        found = disagreements(body, ledger, certificate, derived, plan)
    except (GraphveilError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return [f"the certificate cannot be interpreted: {error}"], None
    return found + _edited_files(run), derived.epsilon


def disagreements(
    body: dict[str, Any], ledger: list[Any], certificate: Certificate, derived: Certificate, plan: Plan
) -> list[str]:
    """Everything in which certificate, ledger, plan and recomputed accounting disagree; empty if consistent.

    ``derived`` is the certificate that follows from the releases and from what the method itself plans.
    """
    found: list[str] = []
    if body.get("digest") != digest({key: value for key, value in body.items() if key != "digest"}):
        found.append("the certificate was edited after it was written (its digest does not match)")
    if [upgraded_entry(entry) for entry in ledger] != [upgraded_entry(entry) for entry in body["releases"]]:
        found.append("the ledger and the releases on the certificate differ")
    if plan.adaptive:
        found += _outside_filter(plan, certificate)
    elif not _same(_planned(plan.steps), _planned(certificate.releases)):
        found.append("the releases are not the ones the method plans for this promise and these public facts")
    expected = derived.to_json()
    recorded, keys = body, {*body, *expected}
    if body["schema"] != SCHEMA:  # schema 1 has no costs where it did not print them
        recorded = certificate.to_json()
        keys = (set(recorded) - (set() if certificate.costs else {"costs"})) | (set(body) - KEYS_OF[body["schema"]])
        for key, (said, follows) in unlike(body, expected).items():
            if not _same(said, follows):
                found.append(f"{key!r} is recorded as {said}, the ledger gives {follows}")
    elif not _same(body["releases"], expected["releases"]):
        found.append("the releases on the certificate say more than this version knows")
    for key in sorted(keys - set(NOT_DERIVED)):
        if key not in expected:
            found.append(f"this version does not know what {key!r} on a certificate means")
        elif key not in recorded or not _same(recorded[key], expected[key]):
            found.append(f"{key!r} is recorded as {recorded.get(key)}, the ledger gives {expected[key]}")
    return found


def _planned(steps: tuple[Release | Slot, ...]) -> list[dict[str, Any]]:
    """Releases without how many people really reported, which a plan can only bound."""
    return [{key: value for key, value in step.to_json().items() if key != "reporters"} for step in steps]


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
        if plan.promise.private and isinstance(slot, Slot) and not slot.filled_by(release):
            return [f"release {release.name!r} is not the Gaussian release of its slot"]
    if not plan.promise.private:
        return []
    spent = {kind: total_mu(release.loss(kind) for release in releases) for kind in plan.kinds}
    return [
        f"{kind} records have spent mu {mu}, the promise allows {plan.mu}"
        for kind, mu in spent.items()
        if mu is None or mu > plan.mu * (1 + TOLERANCE)
    ]


def _edited_files(run: Path) -> list[str]:
    recorded, found = read_json(run / "manifest.json"), file_digests(run)
    names = sorted({*recorded, *found})
    return [f"{name} is not the file that was saved" for name in names if recorded.get(name) != found.get(name)]


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
