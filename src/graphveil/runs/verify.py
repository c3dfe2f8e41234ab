"""Check a saved run without the data: what it says must be what its method plans, and cost what the accounting gives.

The certificate names the method, its options, the promise and the public facts; everything else follows from them. So the
plan is made again, and every field of every release, every cost and every sentence is compared with what was recorded. Of an
adaptive release all but the noise is fixed by its slot; its share must lie within the slot's limits, and the shares of every
kind of record must add up to at most mu^2. What cannot follow from public facts is said to be unknown, not passed over.
Tests: ``tests/runs/test_verify.py``.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from graphveil.errors import GraphveilError, InputError
from graphveil.files import read_json, read_json_lines
from graphveil.methods.base import TAKEN_AS_PUBLIC, PrivateMethod
from graphveil.methods.registry import modes_of
from graphveil.methods.run_folder import CURATOR, KEPT_FILES, file_digests, read_arrays
from graphveil.privacy.certificate import SCHEMA, Certificate, digest
from graphveil.privacy.certificate_schema1 import KEYS_OF, unlike, upgraded_entry
from graphveil.privacy.plan import Plan, Release, Slot, total_mu
from graphveil.privacy.promise import Level
from graphveil.runs.load import method_of, read_certificate
from graphveil.runs.signing import checked_signature

TOLERANCE = 1e-6  # relative: what another machine's arithmetic may change in the last digits
SCOPE = (
    "this proves that certificate and ledger are what the method plans for this promise and these public facts, and that "
    "the accounting is right; which data were read, and that this code was run, is not in the files"
)
UNSEEDED = "whether the noise was seeded: a seed that was erased from a certificate leaves no trace"
SHARES = "which slots of the plan were used, and why with these shares: only that they are within the plan"
RUNS_BEFORE = "which runs came before, and what they cost: their certificates ({}) are not in this folder"
HOLDERS = "how many vertices each holder speaks for"
NOTE = "whether this is true, and all that was noted: {!r}"
THIRD_PARTY = (
    "anything but the arithmetic, because the method is not here ({}): which releases it plans, with which bounds"
)
EARLIER = (
    "whether the sentences of this certificate are true: an earlier version wrote them, in other words than this one"
)
ROUNDING = 1e-6  # of a sensitivity, by which versions may differ in what they charge for float64
NOT_PUBLISHED = "what is in the rows that stay with the curator: they are not in this folder"
NOT_DERIVED = ("schema", "digest", "releases")


@dataclass(frozen=True)
class Verdict:
    """What disagrees in a run, the epsilon that its releases give, what no check can know, and whose key signed it.

    ``rebuilt``: the plan was made again by the method; otherwise only the arithmetic of the releases was checked.
    """

    disagreements: tuple[str, ...]
    epsilon: float | None
    unknown: tuple[str, ...] = ()
    rebuilt: bool = True
    signed_by: str | None = None

    def __post_init__(self) -> None:
        """Words of a forged file must not look like words of this program: a line stays a line."""
        object.__setattr__(self, "disagreements", tuple(map(_one_line, self.disagreements)))
        object.__setattr__(self, "unknown", tuple(map(_one_line, self.unknown)))


def verify_run(run: Path) -> tuple[list[str], float | None]:
    """What disagrees in a saved run, and the epsilon that its ledger gives; reads no data."""
    verdict = check_run(run)
    return list(verdict.disagreements), verdict.epsilon


def check_run(run: Path, signer: Path | None = None) -> Verdict:
    """All that can be said about a saved run; ``signer``: the public key that must have signed it."""
    body, ledger = read_json(run / "certificate.json"), read_json_lines(run / "ledger.jsonl")
    signed_by, unsigned, forged = checked_signature(run, signer)
    files = list(forged)
    try:
        certificate = read_certificate(run)
        files += _edited_files(run, body)
        found = _written(body, ledger)
        unknown = [] if certificate.seeded or not certificate.promise.private else [UNSEEDED]
        unknown += [HOLDERS] if certificate.holders else []
        if certificate.earlier:
            unknown.append(RUNS_BEFORE.format(", ".join(run.certificate[:12] for run in certificate.earlier)))
        if certificate.own_rows and not (run / CURATOR).exists():
            unknown.append(NOT_PUBLISHED)
        missing = _not_here(certificate.method)
        if missing:
            derived, wrong = _arithmetic(certificate)
            unknown.append(THIRD_PARTY.format(missing))
        else:
            derived, wrong, open_questions = _rebuilt(body, certificate)
            unknown += open_questions
    except (GraphveilError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return Verdict((f"the certificate cannot be interpreted: {error}", *files), None, signed_by=signed_by)
    return Verdict((*found, *wrong, *files), derived.epsilon, (*unknown, *unsigned), not missing, signed_by)


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _written(body: dict[str, Any], ledger: list[Any]) -> list[str]:
    """Whether certificate and ledger are as they were written, as far as they say themselves."""
    found = []
    if body.get("digest") != digest({key: value for key, value in body.items() if key != "digest"}):
        found.append("the certificate was edited after it was written (its digest does not match)")
    if [upgraded_entry(entry) for entry in ledger] != [upgraded_entry(entry) for entry in body["releases"]]:
        found.append("the ledger and the releases on the certificate differ")
    return found


def _not_here(name: str) -> str:
    """Why there is no method of this name; empty if there is one."""
    try:
        modes_of(name)
    except InputError as error:
        return str(error)
    return ""


def _rebuilt(body: dict[str, Any], certificate: Certificate) -> tuple[Certificate, list[str], list[str]]:
    """The certificate as the method would write it, in what the recorded one differs, and what cannot be known."""
    earlier = body["schema"] != SCHEMA
    method = method_of(certificate, earlier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = method.plan(certificate.facts, certificate.promise)
    said, notes = _sentences(method, plan, certificate)
    unknown = [NOTE.format(note) for note in notes] + ([SHARES] if plan.adaptive and plan.promise.private else [])
    if earlier:  # other words are not another promise
        lemmas = {release.name: release.lemma for release in certificate.releases}
        kept_words = replace(plan, steps=tuple(replace(s, lemma=lemmas.get(s.name, s.lemma)) for s in plan.steps))
        kept_words = replace(kept_words, steps=tuple(_as_rounded(s, certificate.releases) for s in kept_words.steps))
        if kept_words != plan or said["assumptions"] != certificate.assumptions:
            unknown.append(EARLIER)
        plan, said["assumptions"] = kept_words, certificate.assumptions
    options = certificate.parameters if earlier else method.get_params()
    made_by = {"method": method.name, "mode": method.mode, "parameters": options, **said}
    kept = {"seed": certificate.seed, "holders": certificate.holders, "earlier": certificate.earlier}
    derived = Certificate.of(plan, certificate.releases, **made_by, **kept)
    found = _other_releases(plan, certificate.releases)
    return derived, found + _other_fields(body, certificate, derived), unknown


def _as_rounded(step: Release | Slot, releases: tuple[Release, ...]) -> Release | Slot:
    """A slot of the plan with the slack of an earlier version, which added up in another way; far below the sensitivity."""
    then = next((getattr(made.mechanism, "slack", None) for made in releases if made.name == step.name), None)
    if not isinstance(step, Slot) or then is None or abs(then - step.slack) > ROUNDING * max(step.sensitivity.values()):
        return step
    return replace(step, slack=then)


def _sentences(method: PrivateMethod, plan: Plan, certificate: Certificate) -> tuple[dict[str, Any], list[str]]:
    """What the method says on a certificate, after the notes on the data that are recorded; and these notes.

    A curator's notes begin with the words that take something out of the promise: no other sentence can be slipped in.
    """
    public, own = method.statements(plan)
    said, local = certificate.assumptions, plan.promise.level is Level.LOCAL
    cut = max(len(said) - len(own), 0)
    before = said[:cut] if said[cut:] == own else ()
    notes = [note for note in before if local or note.startswith(TAKEN_AS_PUBLIC)]
    return {"public": public, "assumptions": (*notes, *own)}, notes


def _other_releases(plan: Plan, releases: tuple[Release, ...]) -> list[str]:
    """How recorded releases differ from those of the plan, field by field."""
    names = [release.name for release in releases]
    planned = {step.name: step for step in plan.steps}
    if len(set(names)) != len(names):
        return ["a release happened twice"]
    if not set(names) <= set(planned) or (not plan.adaptive and names != list(planned)):
        return [f"the releases are {', '.join(names)}; the method plans {', '.join(planned)}"]
    found = []
    for release in releases:
        step = planned[release.name]
        if isinstance(step, Slot):
            step = step.with_noise_of(release) if plan.promise.private else step.release(math.inf)
        expected, recorded = step.to_json(), release.to_json()
        if release.part and 0 <= release.reporters <= step.reporters:  # a plan can only bound who reports
            expected["reporters"] = release.reporters
        found += [
            f"release {release.name!r}: {path} is recorded as {said}, the method plans {follows}"
            for path, said, follows in differences(recorded, expected)
        ]
    return found if found or not (plan.adaptive and plan.promise.private) else _outside_filter(plan, releases)


def _outside_filter(plan: Plan, releases: tuple[Release, ...]) -> list[str]:
    """Slots whose share is outside its limits, and kinds of records that have spent more than mu^2."""
    found = []
    for release in releases:
        slot = plan.step(release.name)
        spent = total_mu([release.mechanism.loss(max(slot.sensitivity.values()))])
        share = math.inf if spent is None else (spent / plan.mu) ** 2
        if isinstance(slot, Slot) and not slot.admits(share, TOLERANCE):
            limits = f"from {slot.min_share:g} to {slot.max_share:g}"
            found.append(f"release {release.name!r} has taken the share {share:g}, the plan allows {limits}")
    for kind in plan.kinds:
        spent = total_mu(release.loss(kind) for release in releases)
        if spent is None or spent > plan.mu * (1 + TOLERANCE):
            found.append(f"{kind} records have spent mu {spent}, the promise allows {plan.mu}")
    return found


def _other_fields(body: dict[str, Any], certificate: Certificate, derived: Certificate) -> list[str]:
    """The keys of the certificate that are not what follows."""
    found: list[str] = []
    expected = derived.to_json()
    recorded, keys = body, {*body, *expected}
    if body["schema"] != SCHEMA:  # schema 1 has no costs where it did not print them
        recorded = certificate.to_json()
        keys = (set(recorded) - (set() if certificate.costs else {"costs"})) | (set(body) - KEYS_OF[body["schema"]])
        for key, (said, follows) in unlike(body, expected).items():
            if not same(said, follows):
                found.append(f"{key!r} is recorded as {said}, the ledger gives {follows}")
    elif not same(body["releases"], expected["releases"]):
        found.append("the releases on the certificate say more than this version knows")
    for key in sorted(keys - set(NOT_DERIVED)):
        if key not in expected:
            found.append(f"this version does not know what {key!r} on a certificate means")
        elif key == "holds" and certificate.holds and not derived.holds:
            found.append(_not_kept(derived))
        elif key not in recorded or not same(recorded[key], expected[key]):
            found.append(f"{key!r} is recorded as {recorded.get(key)}, the ledger gives {expected[key]}")
    return found


def _arithmetic(certificate: Certificate) -> tuple[Certificate, list[str]]:
    """What the recorded releases cost by themselves; nobody may be said to pay less than that."""
    plan = Plan(certificate.promise, certificate.facts, certificate.releases, gaps=certificate.gaps)
    derived = Certificate.of(plan, certificate.releases, method="", mode="", parameters={})
    found = [
        f"release {release.name!r} counts a negative number of rows"
        for release in certificate.releases
        if min(getattr(release.mechanism, "group", None) or (0,)) < 0
    ]
    pairs = [
        (f"the epsilon of {kind} records", cost, certificate.costs.get(kind)) for kind, cost in derived.costs.items()
    ]
    for what, cost, said in (*pairs, ("epsilon", derived.epsilon, certificate.epsilon)):
        if said is not None and (cost is None or cost > said * (1 + TOLERANCE)):
            found.append(f"{what} is recorded as {said}, the ledger gives {cost}")
    if certificate.holds and not derived.holds:
        found.append(_not_kept(derived))
    return derived, found


def _not_kept(derived: Certificate) -> str:
    """Why ``holds`` is not what was recorded, where that is only the last digits of the noise."""
    promised, gives = derived.promise.epsilon, derived.epsilon
    found = "'holds' is recorded as True, the ledger gives False"
    if derived.gaps or gives is None or not promised < gives <= promised * (1 + TOLERANCE):
        return found
    return (
        f"{found}: epsilon {gives:.12g} where {promised:g} was promised. Noise that an earlier version made is like this: it "
        "lacks the reserve for rounding, so the promise is exceeded, by less than a millionth. Train again"
    )


def _edited_files(run: Path, body: Any) -> Iterator[str]:
    recorded, found = read_json(run / "manifest.json"), file_digests(run)
    for name in sorted({*recorded, *found}):
        if recorded.get(name) != found.get(name):
            yield f"{name} is not the file that was saved"
    folder = run / CURATOR
    if folder.exists() and read_json(folder / "manifest.json") != file_digests(folder, KEPT_FILES):
        yield f"the files in {CURATOR} are not those that were saved"
    if not (run / "model.json").exists():
        return
    model = read_json(run / "model.json")
    for key in ("method", "parameters"):
        if not same(model.get(key), body.get(key)):
            yield f"model.json is of another run: its {key} is not that of the certificate"
    if any(entry.get("own_row_excluded") for entry in body["releases"]):
        yield from _own_rows(run, model)


def _own_rows(run: Path, model: dict[str, Any]) -> Iterator[str]:
    """Whether rows for one node alone were left out of what may be published."""
    names = model.get("own_rows")
    published = run / "model.safetensors"
    if names is None or (published.exists() and set(names) & set(read_arrays(published))):
        yield "model.safetensors holds rows that are for one node each: it must not be published; save the model again"


def differences(recorded: Any, expected: Any, path: str = "") -> Iterable[tuple[str, Any, Any]]:
    """Where nested JSON values differ: path, recorded value, expected value."""
    if isinstance(recorded, dict) and isinstance(expected, dict):
        for key in sorted({*recorded, *expected}):
            yield from differences(recorded.get(key), expected.get(key), f"{path}.{key}" if path else key)
    elif not same(recorded, expected):
        yield path, recorded, expected


def same(left: Any, right: Any) -> bool:
    """Equality of nested JSON values, with numbers compared relatively: a tiny number is not taken for another one."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        return numbers and math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=0.0)
    return bool(left == right)
