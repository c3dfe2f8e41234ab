"""What a local collection costs per vertex, per edge and per holder, and what was sent in the clear."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Unit
from graphveil.exchange.report import Round
from graphveil.privacy.certificate import SEEDED, digest
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import IN_PLAIN_WORDS, Local, Part
from graphveil.privacy.plan import Gap

SCHEMA = "graphveil/local-certificate/1"
NOT_LOCAL = "reports on edges were made with everybody's lists at hand, as in the paper: no client could make them"


@dataclass(frozen=True)
class Spent:
    """One round as it stands on a certificate."""

    name: str
    part: str
    mechanism: str
    parameters: Mapping[str, Any]
    unit: str
    epsilon: float | None
    swap_epsilon: float | None
    edge_epsilon: float | None
    delta: float
    vertices: int
    hears: str = ""
    unbounded: str = ""
    edge_change: str = ""

    @classmethod
    def of(cls, round: Round, vertices: int) -> Spent:
        randomizer = round.randomizer
        return cls(
            name=round.name,
            part=round.part.value,
            mechanism=type(randomizer).__name__,
            parameters=public_parameters(randomizer),
            unit=randomizer.unit.value,
            epsilon=_finite(randomizer.epsilon),
            swap_epsilon=_finite(randomizer.swap_epsilon),
            edge_epsilon=_finite(randomizer.edge_epsilon),
            delta=randomizer.delta,
            vertices=vertices,
            hears=round.hears,
            unbounded=randomizer.unbounded,
            edge_change=randomizer.edge_change if round.part is Part.EDGES else "",
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class LocalCertificate:
    """Promise, rounds and their sums. ``epsilon`` is for the record named by ``promise.covers``; ``None``: no finite bound.

    ``per_vertex``: all features and the label. ``per_list``: one entry of one contact list. ``per_edge``: one undirected edge,
    wherever it was reported, rewired or added as each round names it. ``per_holder``: features and labels of all vertices of a
    holder at once (group privacy); their contact lists are not counted in. ``None`` is infinite.
    """

    method: str
    mode: str
    parameters: Mapping[str, Any]
    promise: Local
    facts: PublicFacts
    releases: tuple[Spent, ...]
    holders: Mapping[str, int]
    epsilon_claimed: float | None
    gaps: tuple[Gap, ...] = ()
    public: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    seed: int | None = None

    @classmethod
    def of(
        cls,
        promise: Local,
        facts: PublicFacts,
        rounds: Iterable[tuple[Round, int]],
        *,
        method: str,
        mode: str = "sound",
        parameters: Mapping[str, Any] | None = None,
        holders: Mapping[str, int] | None = None,
        gaps: tuple[Gap, ...] = (),
        public: tuple[str, ...] = (),
        assumptions: tuple[str, ...] = (),
        claim: float | None = None,
        seed: int | None = None,
    ) -> LocalCertificate:
        """``rounds``: each with the number of vertices that reported."""
        spent = tuple(Spent.of(round, vertices) for round, vertices in rounds)
        draft = cls(
            method, mode, dict(parameters or {}), promise, facts, spent, dict(holders or {"all": facts.nodes}), None,
            gaps, public, assumptions, seed,
        )  # fmt: skip
        body = {field.name: getattr(draft, field.name) for field in fields(cls)}
        return cls(**body | {"epsilon_claimed": draft.epsilon if claim is None else _finite(claim)})

    @property
    def per_vertex(self) -> float | None:
        whole = [release.epsilon for release in self.releases if release.unit == Unit.VERTEX]
        return self._total(whole, Part.FEATURES, Part.LABELS)

    @property
    def per_list(self) -> float | None:
        return self._total([release.swap_epsilon for release in self.releases], Part.EDGES)

    @property
    def per_edge(self) -> float | None:
        return self._total([release.edge_epsilon for release in self.releases], Part.EDGES)

    @property
    def per_holder(self) -> dict[str, float | None]:
        one = _number(self.per_vertex)
        return {holder: _finite(count * one if count else 0.0) for holder, count in self.holders.items()}

    @property
    def epsilon(self) -> float | None:
        edges = 0.0 if Part.EDGES in self.promise.raw else _number(self.per_list)
        return _finite(_number(self.per_vertex) + edges)

    @property
    def delta(self) -> float:
        return sum(release.delta for release in self.releases)

    @property
    def holds(self) -> bool:
        within = self.epsilon is not None and self.epsilon <= self.promise.epsilon * (1 + 1e-9) + 1e-9
        return within and not self.gaps and self.delta <= self.promise.delta

    @property
    def seeded(self) -> bool:
        return self.seed is not None

    @property
    def implied(self) -> dict[str, float | None]:
        """The costs by unit, as the certificates of central methods name theirs."""
        costs = {"epsilon per vertex": self.per_vertex, "epsilon per list entry": self.per_list}
        return costs | {"epsilon per edge": self.per_edge}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not protected, in words nobody can miss."""
        lines = [
            f"NOT PROTECTED, SENT IN THE CLEAR: {IN_PLAIN_WORDS[part].upper()} ({part} raw)"
            for part in self.promise.raw
        ]
        lines += [
            f"NOT PROTECTED: ROUND {release.name!r} ({release.mechanism}) HAS NO FINITE EPSILON"
            + (f": {release.unbounded}" if release.unbounded else "")
            for release in self.releases
            if release.epsilon is None
        ]
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "schema": SCHEMA,
            "method": self.method,
            "mode": self.mode,
            "parameters": dict(self.parameters),
            "promise": self.promise.to_json(),
            "covers": self.promise.covers,
            "facts": self.facts.to_json(),
            "releases": [asdict(release) for release in self.releases],
            "epsilon": self.epsilon,
            "epsilon_claimed": self.epsilon_claimed,
            "delta": self.delta,
            "per_vertex": self.per_vertex,
            "per_list_entry": self.per_list,
            "per_edge": self.per_edge,
            "per_holder": {
                name: {"vertices": self.holders[name], "epsilon": cost} for name, cost in self.per_holder.items()
            },
            "raw": [part.value for part in self.promise.raw],
            "warnings": list(self.warnings),
            "holds": self.holds,
            "gaps": [asdict(gap) for gap in self.gaps],
            "public": list(self.public),
            "assumptions": list(self.assumptions),
            "seed": self.seed,
        }
        return body | {"digest": digest(body)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> LocalCertificate:
        if body.get("schema") != SCHEMA:
            raise InputError(f"this certificate has schema {body.get('schema')!r}; this version reads {SCHEMA!r}")
        return cls(
            method=body["method"],
            mode=body["mode"],
            parameters=body["parameters"],
            promise=Local.from_json(body["promise"]),
            facts=PublicFacts(**body["facts"]),
            releases=tuple(Spent(**entry) for entry in body["releases"]),
            holders={name: entry["vertices"] for name, entry in body["per_holder"].items()},
            epsilon_claimed=body["epsilon_claimed"],
            gaps=tuple(Gap(**gap) for gap in body["gaps"]),
            public=tuple(body["public"]),
            assumptions=tuple(body["assumptions"]),
            seed=body["seed"],
        )

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def _total(self, costs: list[float | None], *parts: Part) -> float | None:
        """The sum of the costs, infinite if one of them or one of the parts is."""
        if any(part in self.promise.raw for part in parts):
            return None
        return _finite(sum(_number(cost) for cost in costs))


def _lines(certificate: LocalCertificate) -> list[str]:
    shown = lambda value: "NO FINITE VALUE" if value is None else f"{value:.6g}"
    facts, promise = certificate.facts, certificate.promise
    verdict = "HOLDS" if certificate.holds else "DOES NOT HOLD"
    trust = "local model: no curator is trusted"
    if NOT_LOCAL in certificate.assumptions:
        trust = "which the paper calls local and which is not"
    lines = [f"PRIVACY CERTIFICATE   {certificate.method} ({certificate.mode}), {trust}"]
    lines += [f"  !!!!        {warning}" for warning in certificate.warnings]
    asked = ", ".join(f"{part} {_asked(promise, part)}" for part in Part)
    lines += [
        f"  Promise     {asked}",
        f"  Proved      epsilon {shown(certificate.epsilon)} for {promise.covers}, delta {certificate.delta:g}; "
        f"the promise {verdict}",
        f"  Costs       one vertex (features and label): {shown(certificate.per_vertex)}",
        f"              one entry of a contact list: {shown(certificate.per_list)}",
        f"              one undirected edge, in all lists{_change(certificate)}: {shown(certificate.per_edge)}",
    ]
    for holder, cost in certificate.per_holder.items():
        vertices = certificate.holders[holder]
        lines.append(
            f"              features and labels of all {vertices} vertices of holder {holder!r}: {shown(cost)}"
        )
    if certificate.mode == "published":
        lines.append(f"  Claimed     epsilon {shown(certificate.epsilon_claimed)} by the paper's own accounting")
    lines += [f"  Gap {gap.code:<7} {gap.text}" for gap in certificate.gaps]
    lines.append(f"  Rounds      {len(certificate.releases)}, one memoised report per vertex in each:")
    for release in certificate.releases:
        heard = f", after hearing {release.hears}" if release.hears else ""
        lines.append(
            f"              {release.name}: {release.mechanism} on {release.part}, epsilon {shown(release.epsilon)} per "
            f"{release.unit}, {release.vertices} vertices{heard}"
        )
    lines.append(f"  Public      {facts.nodes} slots, {facts.features} feature columns, {facts.classes} classes")
    lines += [f"              {line}" for line in certificate.public]
    lines += [f"  Terms       {line}" for line in certificate.assumptions]
    if certificate.seeded:
        lines.append(f"  WARNING     {SEEDED}")
    return lines


def _change(certificate: LocalCertificate) -> str:
    """What may happen to the edge, in brackets; nothing if no round reports edges."""
    changes = dict.fromkeys(release.edge_change for release in certificate.releases if release.edge_change)
    return f" ({' / '.join(changes)})" if changes else ""


def _asked(promise: Local, part: Part) -> str:
    value = promise.to_json()[part.value]
    return str(value) if isinstance(value, str) else f"epsilon {value:g}"


def public_parameters(randomizer: Any) -> dict[str, Any]:
    """The public numbers of a randomizer, for JSON; private tables it may hold are left out."""
    plain = (int, float, str, bool, type(None))
    found = (
        {field.name: getattr(randomizer, field.name) for field in fields(randomizer)}
        if is_dataclass(randomizer)
        else {}
    )
    simple = {name: value.value if isinstance(value, Enum) else value for name, value in found.items()}
    return {name: value for name, value in simple.items() if isinstance(value, plain)}


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
