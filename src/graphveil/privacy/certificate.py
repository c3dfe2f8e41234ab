"""Who is protected, from what, by how much, by which noisy releases, and what stays public."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphveil.errors import InputError
from graphveil.privacy.accounting.loss import amplified_epsilon
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import (
    DpGradient,
    EdgeFlips,
    Exact,
    Gaussian,
    GumbelTop,
    Laplace,
    RandomizedResponse,
)
from graphveil.privacy.plan import Gap, Plan, Release, total_mu
from graphveil.privacy.promise import IN_PLAIN_WORDS, Adjacency, Level, Promise

SCHEMA = "graphveil/certificate/1"
CORRECTED = "epsilon with the paper's countable errors corrected (not a guarantee)"
SEEDED = "seeded: not for release (anyone who knows the seed can subtract the noise)"


@dataclass(frozen=True)
class Certificate:
    """The result of a run, as far as privacy goes.

    ``epsilon`` is what can be proved (``None``: no finite bound), ``epsilon_claimed`` what the method's paper would say;
    the two are equal in sound mode. ``implied`` holds further consequences of the same releases, ``weaker`` the kinds of
    records that the promise covers only under another adjacency.
    """

    method: str
    mode: str
    parameters: Mapping[str, Any]
    promise: Promise
    facts: PublicFacts
    releases: tuple[Release, ...]
    epsilon: float | None
    epsilon_claimed: float | None
    holds: bool
    gaps: tuple[Gap, ...] = ()
    public: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    implied: Mapping[str, float | None] | None = None
    seed: int | None = None
    weaker: Mapping[str, Adjacency] | None = None

    @classmethod
    def of(
        cls,
        plan: Plan,
        releases: tuple[Release, ...],
        *,
        method: str,
        mode: str,
        parameters: Mapping[str, Any],
        public: tuple[str, ...],
        assumptions: tuple[str, ...],
        seed: int | None,
    ) -> Certificate:
        """The certificate of a finished run: the plan's epsilon for an adaptive plan, else that of the ledger."""
        proved, further = prove(plan, releases)
        claimed = proved if plan.claim is None else plan.claim
        return cls(
            method=method,
            mode=mode,
            parameters=dict(parameters),
            promise=plan.promise,
            facts=plan.facts,
            releases=releases,
            epsilon=_finite(proved),
            epsilon_claimed=_finite(claimed),
            holds=not plan.gaps and math.isfinite(proved) and proved <= plan.promise.epsilon,
            gaps=plan.gaps,
            public=public,
            assumptions=assumptions,
            implied=further,
            seed=seed,
            weaker=dict(plan.weaker),
        )

    @property
    def delta(self) -> float | None:
        return self.promise.delta

    @property
    def seeded(self) -> bool:
        return self.seed is not None

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "schema": SCHEMA,
            "method": self.method,
            "mode": self.mode,
            "parameters": dict(self.parameters),
            "promise": self.promise.to_json(),
            "facts": self.facts.to_json(),
            "releases": [release.to_json() for release in self.releases],
            "epsilon": self.epsilon,
            "epsilon_claimed": self.epsilon_claimed,
            "delta": self.delta,
            "holds": self.holds,
            "gaps": [
                {"code": gap.code, "text": gap.text, "check": gap.check, "release": gap.release} for gap in self.gaps
            ],
            "public": list(self.public),
            "assumptions": list(self.assumptions),
            "implied": dict(self.implied or {}),
            "seed": self.seed,
            "weaker": dict(self.weaker or {}),
        }
        return body | {"digest": digest(body)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Certificate:
        schema = body.get("schema") if isinstance(body, dict) else None
        if schema != SCHEMA:
            raise InputError(f"this certificate has schema {schema!r}; this version reads {SCHEMA!r}")
        try:
            return cls(
                method=body["method"],
                mode=body["mode"],
                parameters=body["parameters"],
                promise=Promise.from_json(body["promise"]),
                facts=PublicFacts(**body["facts"]),
                releases=tuple(Release.from_json(entry) for entry in body["releases"]),
                epsilon=body["epsilon"],
                epsilon_claimed=body["epsilon_claimed"],
                holds=body["holds"],
                gaps=tuple(Gap(**gap) for gap in body["gaps"]),
                public=tuple(body["public"]),
                assumptions=tuple(body["assumptions"]),
                implied=body["implied"],
                seed=body["seed"],
                weaker={kind: Adjacency(name) for kind, name in body["weaker"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise InputError(f"the certificate is damaged: {type(error).__name__}: {error}") from None

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def prove(plan: Plan, releases: tuple[Release, ...]) -> tuple[float, dict[str, float | None]]:
    """Epsilon of the worst-paid kind of record, and the consequences worth printing beside it.

    An adaptive plan is a filter: the promise is its epsilon, never what one history happened to spend.
    """
    if plan.promise.level is Level.NONE:
        return math.inf, {}
    if not plan.provable:
        corrected = {} if plan.corrected is None else {CORRECTED: _finite(plan.corrected)}
        return math.inf, {**corrected, **plan.implied}
    delta = plan.promise.target_delta
    further: dict[str, float | None] = {}
    if plan.adaptive:
        further["mu"] = _finite(plan.mu)
        further["epsilon at delta/100"] = _finite(plan.epsilon(delta / 100))
        return plan.epsilon(), {**further, **plan.implied}
    losses = {kind: tuple(release.loss(kind) for release in releases) for kind in plan.kinds}
    paid = {kind: amplified_epsilon(loss, delta, plan.sampled) for kind, loss in losses.items()}
    proved = max(paid.values(), default=0.0)
    mus = [total_mu(loss) for loss in losses.values()]
    if mus and None not in mus:
        further["mu"] = max(mu for mu in mus if mu is not None)
    further["epsilon at delta/100"] = _finite(
        max((amplified_epsilon(loss, delta / 100, plan.sampled) for loss in losses.values()), default=0.0)
    )
    further |= {f"epsilon paid by {kind} records": _finite(value) for kind, value in paid.items()}
    return proved, {**further, **plan.implied}


def digest(body: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON: shows that a file was edited, not who wrote it (that would need a signature)."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _lines(certificate: Certificate) -> list[str]:
    promise, facts = certificate.promise, certificate.facts
    shown = "no finite value" if certificate.epsilon is None else f"{certificate.epsilon:.6g}"
    lines = [f"PRIVACY CERTIFICATE   {certificate.method} ({certificate.mode})"]
    if promise.adjacency is Adjacency.NONE:
        lines.append("  Protected: nothing; this run is not private.")
        return lines
    extra = f", k = {promise.k}" if promise.k else f", D = {promise.max_degree}" if promise.max_degree else ""
    lines += [
        f"  Protected   {IN_PLAIN_WORDS[promise.adjacency]}",
        f"  Promise     level {promise.level}, adjacency {promise.adjacency}, relation {promise.relation}{extra}; "
        f"epsilon {promise.epsilon:g}, delta {promise.delta:g}",
        f"  Proved      epsilon {shown} at delta {promise.delta:g}; the promise {_verdict(certificate)}",
    ]
    for adjacency in sorted(set((certificate.weaker or {}).values())):
        kinds = " and ".join(kind for kind, weaker in (certificate.weaker or {}).items() if weaker == adjacency)
        lines.insert(2, f"  BUT ONLY    for {kinds} nodes: {IN_PLAIN_WORDS[adjacency]}")
    if certificate.mode == "published":
        claimed = "none" if certificate.epsilon_claimed is None else f"{certificate.epsilon_claimed:.6g}"
        lines.append(f"  Claimed     epsilon {claimed} by the paper's own accounting")
    lines += [f"  Gap {gap.code:<7} {gap.text}" for gap in certificate.gaps]
    for name, value in (certificate.implied or {}).items():
        lines.append(f"              {name}: {'unbounded' if value is None else f'{value:.6g}'}")
    lines.append(f"  Releases    {len(certificate.releases)} noisy releases read private data:")
    lines += [f"              {_release_line(release)}" for release in certificate.releases]
    sizes = (
        f"{facts.nodes} slots, {facts.features} feature columns, {facts.classes} classes, which slots are "
        + ", ".join(f"{kind} ({count})" for kind, count in facts.kinds.items() if count)
    )
    lines.append(f"  Public      {sizes}")
    lines += [f"              {line}" for line in certificate.public]
    lines += [f"  Terms       {line}" for line in certificate.assumptions]
    if certificate.seeded:
        lines.append(f"  WARNING     {SEEDED}")
    return lines


def _verdict(certificate: Certificate) -> str:
    return "HOLDS" if certificate.holds else "DOES NOT HOLD"


def _release_line(release: Release) -> str:
    match release.mechanism:
        case Gaussian(sigma, dimension):
            noise = f"Gaussian noise {sigma:.4g} on {dimension} numbers"
        case Laplace(scale, dimension):
            noise = f"Laplace noise {scale:.4g} on {dimension} numbers"
        case DpGradient(sigma, clip, steps, dimension, rate):
            batch = "full batches" if rate == 1 else f"Poisson batches of rate {rate:.4g}"
            noise = f"{steps} gradient steps, clip {clip:g}, noise {sigma:.4g} on {dimension} numbers, {batch}"
            if release.mechanism.group:
                noise += f", groups of {release.mechanism.group} rows"
        case RandomizedResponse(epsilon, categories):
            noise = f"randomised response, epsilon {epsilon:.4g}, {categories} categories"
        case EdgeFlips(epsilon, pairs):
            noise = f"one coin for each of {pairs} pairs, epsilon {epsilon:.4g}"
        case GumbelTop(scale, picks, rows, columns):
            noise = f"{picks} picks in each of {rows} rows of {columns}, Gumbel noise {scale:.4g}"
        case Exact(steps):
            noise = f"NO NOISE ({steps} steps)"
    reads = ", ".join(f"{kind} {bound:.4g}" for kind, bound in release.sensitivity.items() if bound)
    own = "; own row excluded" if release.own_row_excluded else ""
    return f"{release.name}: {noise}; sensitivity {reads or 'none'}{own}"
