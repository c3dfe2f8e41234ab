"""The certificate of a run as one plain page: for whoever answers for the data and never saw a formula.

Its sentences are those of the certificate. What is added is the meaning of epsilon: how often somebody could be right who knows
everything about everybody else, sees all that was released, and has to tell two cases apart that a coin decided. Under
(epsilon, delta) that is at most ``(e^epsilon + delta) / (1 + e^epsilon)``, under a Gaussian parameter mu ``Phi(mu / 2)``; both
hold, so the smaller one is printed (Kairouz, Oh and Viswanath 2015; Dong, Roth and Su 2022).
Test: ``tests/report/test_certificate_page.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from graphveil.privacy.certificate import Certificate
from graphveil.privacy.certificate_text import (
    SEEDED,
    covered_only,
    following_words,
    promise_words,
    public_sizes,
    release_words,
    shown,
    verdict_words,
)
from graphveil.privacy.local import PARTS_IN_PLAIN_WORDS, Local, Openness, Part
from graphveil.privacy.promise import COMPARED, IN_PLAIN_WORDS, Adjacency, Level, Promise, Relation
from graphveil.privacy.shares import shares_by_kind
from graphveil.report.page import rendered

if TYPE_CHECKING:
    from graphveil.runs.verify import Verdict

HUES = ("blue", "vermilion", "green", "purple", "orange", "sky", "wine", "olive")
WHICH = "which of the two data sets was used"
GAMES = {
    Level.EDGE: "whether one particular link exists",
    Level.K_NEIGHBOR: WHICH,
    Level.NODE: WHICH,
}
EDGE_COMPARED = "the same data with one link added or removed"


def certificate_page(certificate: Certificate, verdict: Verdict | None = None, run: str = "") -> str:
    """The page; ``verdict``: what checking the files of the run gave."""
    return rendered("certificate.html", title="Privacy certificate", **_values(certificate, verdict, run))


def certainty(certificate: Certificate) -> float | None:
    """The largest probability of a right guess about one person; None if nothing bounds it."""
    if certificate.epsilon is None or certificate.promise.level is Level.NONE:
        return None
    odds, delta = certificate.epsilon, certificate.delta or 0.0
    found = (1 + delta * math.exp(-odds)) / (1 + math.exp(-odds))
    mu = certificate.implied.get("mu")
    return min(found, 0.5 * (1 + math.erf(mu / math.sqrt(8))) if mu is not None else 1.0, 1.0)


def _values(certificate: Certificate, verdict: Verdict | None, run: str) -> dict[str, Any]:
    promise = certificate.promise
    protected, _, open_part = IN_PLAIN_WORDS[promise.adjacency].partition("; ")
    local = isinstance(promise, Local)
    return {
        "subtitle": f"{certificate.method} ({certificate.mode})" + (f", run {run}" if run else ""),
        "nothing": promise.adjacency is Adjacency.NONE,
        "holds": certificate.holds,
        "verdict": verdict_words(certificate),
        "alarms": [*certificate.warnings, *([SEEDED] if certificate.seeded else [])],
        "gaps": certificate.gaps,
        "protected": _parts(promise) if isinstance(promise, Local) else [protected],
        "only": covered_only(certificate.weaker),
        "asked": "" if promise.adjacency is Adjacency.NONE else promise_words(promise),
        "compared": _compared(promise),
        "amount": _amount(certificate),
        "together": following_words(certificate),
        "not_hidden": _not_hidden(certificate, open_part),
        "budget": _budget(certificate),
        "releases": [
            (r.name, release_words(r, local).removeprefix(f"{r.name}: "), r.lemma) for r in certificate.releases
        ],
        "public": [public_sizes(certificate.facts, local), *certificate.public],
        "terms": certificate.assumptions,
        "costs": _costs(certificate),
        "implied": [(name, shown(value, False)) for name, value in certificate.implied.items()],
        "checked": None if verdict is None else _checked(verdict),
        "digest": certificate.to_json()["digest"],
        "run": run,
    }


def _compared(promise: Promise) -> str:
    """With what the releases must look nearly the same: never more than the proved epsilon is for."""
    if isinstance(promise, Local):
        exchanged = "" if promise.relation is Relation.ZERO_OUT else ", exchanged"
        return f"the same data with {promise.covers}{exchanged}"
    return EDGE_COMPARED if promise.level is Level.EDGE else COMPARED[promise.relation]


def _game(promise: Promise) -> str:
    """What is to be told by a guess that the proved epsilon bounds."""
    if not isinstance(promise, Local):
        return GAMES.get(promise.level, "")
    if promise.relation is Relation.ZERO_OUT:
        return "whether one particular entry is in the contact list of one person, from that person's own reports"
    return f"which of two records, unlike in {promise.covers}, one person has, from that person's own reports"


def _parts(promise: Local) -> list[str]:
    """What becomes of each part of a record."""
    said = {Openness.RAW: "SENT IN THE CLEAR, not protected", Openness.WITHHELD: "never sent"}
    found = []
    for part in Part:
        budget = promise.budget(part)
        how = (
            said[budget]
            if isinstance(budget, Openness)
            else f"randomised before it leaves its owner, {promise.asked(part)}"
        )
        found.append(f"{PARTS_IN_PLAIN_WORDS[part]}: {how}")
    return found


def _costs(certificate: Certificate) -> list[tuple[str, str]]:
    """What each kind of record pays, where that differs."""
    costs = certificate.costs
    return [(kind, shown(cost, True)) for kind, cost in costs.items()] if len(set(costs.values())) > 1 else []


def _amount(certificate: Certificate) -> dict[str, Any]:
    """Epsilon asked, proved and claimed, and what the proved one means."""
    promise, sure = certificate.promise, certainty(certificate)
    asked = "" if isinstance(promise, Local) or not promise.private else f"{promise.epsilon:g}"
    claimed = shown(certificate.epsilon_claimed, True) if certificate.mode == "published" else ""
    return {
        "asked": asked,
        "proved": shown(certificate.epsilon, True),
        "claimed": claimed,
        "delta": "" if certificate.delta is None else f"{certificate.delta:g}",
        "covers": promise.covers if isinstance(promise, Local) else "",
        "game": _game(promise),
        "of_hundred": None if sure is None else _of_hundred(sure),
        "sure": None if sure is None else round(100 * sure, 2),
    }


def _of_hundred(sure: float) -> str:
    """Never rounded in favour of the promise."""
    times = math.ceil(1000 * sure - 1e-9) / 10
    return f"{times:g}" if times < 99.9 else "more than 99.9"


def _not_hidden(certificate: Certificate, open_part: str) -> list[str]:
    found = [open_part.removeprefix("not hidden is ")] if open_part else []
    if isinstance(certificate.promise, Local):
        found += [PARTS_IN_PLAIN_WORDS[part] for part in certificate.promise.raw]
    return [*found, "everything under “Public” below"]


def _budget(certificate: Certificate) -> list[dict[str, Any]]:
    """One bar per way in which the budget is split, named after the kinds of records that pay so."""
    hues = {release.name: HUES[n % len(HUES)] for n, release in enumerate(certificate.releases)}
    bars: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for kind, found in shares_by_kind(certificate).items():
        bars.setdefault(tuple(found.items()), []).append(kind)
    return [
        {
            "kinds": ", ".join(kinds),
            "parts": [{"name": name, "percent": f"{100 * part:.1f}", "hue": hues.get(name)} for name, part in parts],
        }
        for parts, kinds in bars.items()
    ]


def _checked(verdict: Verdict) -> dict[str, Any]:
    from graphveil.runs.verify import SCOPE

    return {
        "consistent": not verdict.disagreements,
        "rebuilt": verdict.rebuilt,
        "disagreements": verdict.disagreements,
        "unknown": verdict.unknown,
        "signed_by": verdict.signed_by,
        "scope": SCOPE,
    }
