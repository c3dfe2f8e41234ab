"""A collection is planned: what a method would ask under a promise becomes a public protocol.

Rounds must not depend on how many people take part, which nobody knows beforehand; where they would, the collection is refused.
So is one whose broadcast would tell everybody what was sent in the clear, unless the operator declares those parts public: the
declaration stands in the protocol, and every holder's client asks its owner to agree.
Tests: ``tests/service/test_service.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphveil.errors import GraphveilError, InputError
from graphveil.exchange.protocol import Protocol
from graphveil.exchange.round import Round
from graphveil.exchange.wire import Defect, identifier
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Part


@dataclass(frozen=True)
class Wanted:
    """What an operator says about a new collection; budgets are an epsilon, ``raw`` or ``withheld``."""

    name: str
    method: str
    classes: int
    attributes: int = 0
    features: float | str = "withheld"
    labels: float | str = "withheld"
    edges: float | str = "withheld"
    delta: float = 0.0
    relation: str | None = None
    directed: bool = False
    mean_degree: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    public: Sequence[str] = ()  # parts in the clear that all who take part may be told


def planned(wanted: Wanted) -> Protocol:
    """The protocol of a collection, or an error that says what cannot be."""
    from graphveil.methods.local_method import LocalMethod
    from graphveil.methods.registry import build

    try:
        name = identifier(wanted.name)
    except Defect as defect:
        raise InputError(f"the name of a collection: {defect}") from None
    if not name.replace("-", "_").isidentifier() or not name.isascii():
        raise InputError("the name of a collection has letters, digits and hyphens")
    try:
        method: Any = build(wanted.method, dict(wanted.options))
    except GraphveilError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the options of {wanted.method!r} cannot be used: {type(error).__name__}") from None
    if not isinstance(method, LocalMethod):
        raise InputError(f"{wanted.method!r} trusts a curator: a collection needs a local method")
    promise = Local(wanted.features, wanted.labels, wanted.edges, wanted.delta, wanted.relation)
    plans = []
    for people in (1_000, 1_000_000):
        told = PublicFacts(people, wanted.attributes, wanted.classes, wanted.directed, mean_degree=wanted.mean_degree)
        plans.append((told, method.plan(told, promise)))
    (facts, plan), (_, other) = plans
    rounds, others = ([Round.of(one.release(step.name)) for step in one.steps] for one in (plan, other))
    if rounds != others:
        raise InputError(f"what {wanted.method!r} asks depends on how many take part: collect it with files")
    lists = [one for one in rounds if one.hears and not one.randomizer.report_width]
    if lists or method.reads_everybody or plan.gaps:
        raise InputError(
            f"{wanted.method!r} asks for lists of people, or more than a client can do: collect it with files"
        )
    return declared(
        Protocol(name, wanted.method, dict(method.get_params()), promise, facts, tuple(rounds)), wanted.public
    )


def declared(protocol: Protocol, public: Sequence[str]) -> Protocol:
    """The protocol with the parts that its operator declares public; an error if one is missing that a broadcast tells."""
    try:
        parts = tuple(part for part in Part if part in {Part(one) for one in public})
    except ValueError:
        raise InputError(f"--public takes {', '.join(part.value for part in Part)}") from None
    if any(part not in protocol.promise.raw for part in parts):
        raise InputError("--public is for parts that are sent in the clear (raw); the others are protected")
    missing = [part.value for part in protocol.tells if part not in parts]
    if missing:
        flags = " ".join(f"--public {one}" for one in missing)
        raise InputError(
            f"a broadcast of this collection tells all who take part everybody's {' and '.join(missing)} (or a class that "
            f"follows from them) in the clear: give them an epsilon, or declare them public ({flags})"
        )
    return replace(protocol, public=parts)
