"""Who is protected, from what, by how much, by which noisy releases, and what stays public: one type, central and local.

*How the schema may grow.* Within a number keys may be added, and are then left out where they say nothing; none is removed,
renamed or given another meaning, and every reader ignores keys it does not know (``verify`` reports them). Whatever breaks this
gets the next number; earlier numbers are still read (``certificate_schema1.py``). The digest covers all keys.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from graphveil.errors import InputError
from graphveil.privacy.accounting.loss import Stated
from graphveil.privacy.budget.charge import Charge
from graphveil.privacy.certificate_schema1 import upgraded
from graphveil.privacy.certificate_text import html, lines
from graphveil.privacy.earlier import EarlierRun, together
from graphveil.privacy.facts import EDGE, PublicFacts
from graphveil.privacy.local import LIST_ENTRY, SEEDED_REPORTS, VERTEX, Local
from graphveil.privacy.plan import Gap, Plan, Release, finite, total_mu
from graphveil.privacy.promise import Adjacency, Level, Promise

SCHEMA = "graphveil/certificate/2"
CORRECTED = "epsilon with the paper's countable errors corrected (not a guarantee)"


@dataclass(frozen=True)
class Certificate:
    """The result of a run, as far as privacy goes.

    ``costs`` is what each kind of record pays (central), or each part of a record (local: one vertex with all features and
    its label, one entry of one contact list, one undirected edge wherever it is reported). ``epsilon`` is what can be proved
    (``None``: no finite bound), ``epsilon_claimed`` what the method's paper would say; the two are equal in sound mode.
    ``implied`` holds further consequences of the same releases, ``weaker`` the kinds of records that the promise covers only
    under another adjacency, ``holders`` how many vertices each holder of a local collection reports. ``earlier`` are the runs on
    earlier exports that this one follows, ``together`` what all of them cost whoever was in every one.
    """

    method: str
    mode: str
    parameters: Mapping[str, Any]
    promise: Promise
    facts: PublicFacts
    releases: tuple[Release, ...]
    costs: Mapping[str, float | None]
    epsilon: float | None
    epsilon_claimed: float | None
    delta: float | None
    holds: bool
    gaps: tuple[Gap, ...] = ()
    public: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    implied: Mapping[str, float | None] = field(default_factory=dict)
    seed: int | None = None
    weaker: Mapping[str, Adjacency] = field(default_factory=dict)
    holders: Mapping[str, int] = field(default_factory=dict)
    earlier: tuple[EarlierRun, ...] = ()
    together: float | None = None

    @classmethod
    def of(cls, plan: Plan, releases: tuple[Release, ...], **told: Any) -> Certificate:
        """The certificate of a finished run: the plan's epsilon for an adaptive plan, else that of the ledger.

        ``told`` are the fields that neither says: method, mode, parameters, and where there are any public, assumptions, seed
        and holders.
        """
        costs, seeded_reports = paid(plan, releases), SEEDED_REPORTS in told.get("assumptions", ())
        proved = plan.promise.total(costs) if plan.provable and plan.promise.level is not Level.NONE else math.inf
        delta = plan.promise.delta
        if plan.promise.level is Level.LOCAL:  # the sum of what the rounds state
            losses = [release.mechanism.loss(1.0) for release in releases]
            delta = sum(loss.delta for loss in losses if isinstance(loss, Stated)) if losses else 0.0
        return cls(
            promise=plan.promise,
            facts=plan.facts,
            releases=releases,
            costs={kind: finite(cost if plan.provable else math.inf) for kind, cost in costs.items()},
            epsilon=finite(proved),
            epsilon_claimed=finite(proved if plan.claim is None else plan.claim),
            delta=delta,
            holds=not plan.gaps and plan.promise.kept(proved, delta or 0.0) and not seeded_reports,
            gaps=plan.gaps,
            implied=implied(plan, releases),
            weaker=plan.weaker,
            together=_together(plan, told.get("earlier", ())),
            **told,
        )

    @property
    def seeded(self) -> bool:
        """Whether noise can be drawn again by whoever knows a seed, of this run or of a holder."""
        return self.seed is not None or SEEDED_REPORTS in self.assumptions

    @property
    def own_rows(self) -> tuple[str, ...]:
        """The releases of which row r is for node r alone: whoever publishes anything must leave these rows out."""
        return tuple(release.name for release in self.releases if release.own_row_excluded)

    @property
    def per_vertex(self) -> float | None:
        return self.costs.get(VERTEX)

    @property
    def per_list(self) -> float | None:
        return self.costs.get(LIST_ENTRY)

    @property
    def per_edge(self) -> float | None:
        return self.costs.get(EDGE)

    @property
    def per_holder(self) -> dict[str, float | None]:
        """Features and labels of all vertices of a holder at once (group privacy); their contact lists are not counted in."""
        one = self.per_vertex
        return {name: 0.0 if not size else None if one is None else size * one for name, size in self.holders.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not protected, in words nobody can miss."""
        if not isinstance(self.promise, Local):
            return ()
        unbounded = [
            f"NOT PROTECTED: ROUND {release.name!r} ({release.mechanism.kind}) HAS NO FINITE EPSILON: {reason}"
            for release in self.releases
            if (reason := release.mechanism.unbounded)
        ]
        return (*self.promise.warnings, *unbounded)

    def to_json(self) -> dict[str, Any]:
        unsaid = ("holders",) if self.earlier else ("holders", "earlier", "together")
        told = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in unsaid}
        body = {"schema": SCHEMA, **{name: _plain(value) for name, value in told.items()}}
        if isinstance(self.promise, Local):
            each = self.per_holder
            body |= {
                "covers": self.promise.covers,
                "warnings": list(self.warnings),
                "holders": {name: {"vertices": self.holders[name], "epsilon": each[name]} for name in self.holders},
            }
        return body | {"digest": digest(body)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Certificate:
        schema = body.get("schema") if isinstance(body, Mapping) else None
        try:
            if schema != SCHEMA:
                body = upgraded(body, schema)
            read: dict[str, Any] = {
                "promise": Promise.from_json(body["promise"]),
                "facts": PublicFacts(**body["facts"]),
                "releases": tuple(Release.from_json(entry) for entry in body["releases"]),
                "gaps": tuple(Gap(**gap) for gap in body["gaps"]),
                "public": tuple(body["public"]),
                "assumptions": tuple(body["assumptions"]),
                "weaker": {kind: Adjacency(name) for kind, name in body["weaker"].items()},
                "holders": {name: entry["vertices"] for name, entry in body.get("holders", {}).items()},
                "earlier": tuple(EarlierRun.from_json(entry) for entry in body.get("earlier", ())),
                "together": body.get("together"),
            }
            return cls(**{name: read[name] if name in read else body[name] for name in cls.__dataclass_fields__})
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise InputError(f"the certificate is damaged: {type(error).__name__}: {error}") from None

    def __str__(self) -> str:
        return "\n".join(lines(self))

    def _repr_html_(self) -> str:
        return html(self)


def _plain(value: Any) -> Any:
    """A field of a certificate as JSON has it."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, (PublicFacts, Promise, Release, EarlierRun)):
        return value.to_json()
    return asdict(value) if isinstance(value, Gap) else dict(value) if isinstance(value, Mapping) else value


def paid(plan: Plan, releases: tuple[Release, ...]) -> dict[str, float]:
    """What every kind of record pays. An adaptive plan is a filter: its epsilon, never what one history happened to spend."""
    if plan.promise.level is Level.NONE:
        return {}
    return dict.fromkeys(plan.kinds, plan.epsilon()) if plan.adaptive else plan.costs(releases)


def _together(plan: Plan, earlier: tuple[EarlierRun, ...]) -> float | None:
    """What this run and all before it cost; nothing where there are none, or no finite bound."""
    if not earlier:
        return None
    return finite(together(plan.promise, Charge.of_plan(plan, plan.promise.target_delta), earlier))


def implied(plan: Plan, releases: tuple[Release, ...]) -> dict[str, float | None]:
    """Consequences worth printing beside epsilon."""
    if plan.promise.level in (Level.NONE, Level.LOCAL):
        return dict(plan.implied)
    if not plan.provable:
        corrected = {} if plan.corrected is None else {CORRECTED: finite(plan.corrected)}
        return {**corrected, **plan.implied}
    further: dict[str, float | None] = {}
    mus = [plan.mu] if plan.adaptive else [total_mu(r.loss(kind) for r in releases) for kind in plan.kinds]
    if mus and None not in mus:
        further["mu"] = finite(max(mu for mu in mus if mu is not None))
    rare = plan.promise.at(plan.promise.target_delta / 100)
    strict = plan.epsilon(rare.target_delta) if plan.adaptive else rare.total(plan.costs(releases, rare))
    further["epsilon at delta/100"] = finite(strict)
    return {**further, **plan.implied}


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON: shows that a file was edited, not who wrote it (that would need a signature)."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
