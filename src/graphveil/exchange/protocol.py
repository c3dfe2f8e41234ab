"""What a collection asks of everybody, in public: the method that will learn, the promise, and the rounds with their randomizers.

A client reads it before anything is randomised and decides whether its owner allows that much; the server checks every report
against it. Stages follow each other: ``first`` has all that hears nothing, every round after it hears a broadcast.
Tests: ``tests/exchange/test_sent.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphveil.errors import GraphveilError, InputError, PrivacyError
from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.randomizers.categories import LabelResponse
from graphveil.exchange.round import Round
from graphveil.exchange.wire import FIRST, SCHEMA, Defect, Stage, identifier
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.plan import Release

VERSION = "graphveil/protocol/1"


@dataclass(frozen=True)
class Protocol:
    """The public rules of a collection; ``rounds`` follow from the rest by the method's plan.

    ``public``: parts in the clear that the operator declares public, so that a broadcast may tell them to all who take part.
    """

    name: str
    method: str
    options: Mapping[str, Any]
    promise: Local
    facts: PublicFacts
    rounds: tuple[Round, ...]
    public: tuple[Part, ...] = ()

    @property
    def tells(self) -> tuple[Part, ...]:
        """The parts that a broadcast passes on in the clear, as they are or as a class that follows from them."""
        asked = any(round.hears for round in self.rounds)
        return tuple(part for part in self.promise.raw if part is not Part.EDGES) if asked else ()

    def check_told(self, allowed: Collection[Part]) -> None:
        """An error if others would be told more than the owner of the records allows."""
        for part in self.tells:
            if part not in allowed:
                raise PrivacyError(
                    f"the collection tells all who take part everybody's {part} in the clear: say --public {part} if that is "
                    "allowed"
                )

    def stage(self, name: str = FIRST, heard: Broadcast | None = None) -> Stage:
        """What is asked at one time; a later stage needs what its round hears."""
        if name not in self.stages:
            raise InputError(f"collection {self.name!r} has no stage {name!r}; it has: {', '.join(self.stages)}")
        rounds = tuple(one for one in self.rounds if (one.name == name if name != FIRST else not one.hears))
        budgets: dict[str, Any] = {}
        for part in Part:
            here, all_of_it = (sum(r.randomizer.cost for r in some if r.part is part) for some in (rounds, self.rounds))
            raw = name == FIRST and part in self.promise.raw
            told = self.promise.share(part) * (here / all_of_it) if here else Openness.WITHHELD
            budgets[part.value] = Openness.RAW if raw else told
        lists_only = not isinstance(budgets["edges"], Openness)
        promise = Local(
            **budgets,
            delta=sum(one.randomizer.delta for one in rounds),
            relation=self.promise.relation if lists_only else None,
        )
        slots, digest = (0, "") if heard is None else (len(heard.ids), heard.digest)
        return Stage(name, promise, rounds, self.facts.features, self.facts.classes, slots, digest)

    @property
    def stages(self) -> tuple[str, ...]:
        return (FIRST, *(round.name for round in self.rounds if round.hears))

    def asking(self, name: str = FIRST, heard: Broadcast | None = None) -> Stage:
        """What a newcomer is asked for who wants a score: the same, and no label."""
        stage = self.stage(name, heard)
        rounds = tuple(one for one in stage.rounds if one.part is not Part.LABELS)
        told, relation = stage.promise, stage.promise.relation
        edges = not isinstance(told.edges, Openness)
        promise = Local(told.features, Openness.WITHHELD, told.edges, told.target_delta, relation if edges else None)
        return replace(stage, promise=promise, rounds=rounds)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": VERSION,
            "wire": SCHEMA,
            "name": self.name,
            "method": self.method,
            "options": dict(self.options),
            "promise": self.promise.to_json(),
            "facts": self.facts.to_json(),
            "rounds": [round.asked(self.facts).to_json() for round in self.rounds],
            "public": [part.value for part in self.public],
            "tells": [part.value for part in self.tells],
            "stages": {name: self._described(name) for name in self.stages},
        }

    def _described(self, name: str) -> dict[str, Any]:
        """A stage in plain numbers, for clients that are not this package."""
        stage = self.stage(name)
        found: dict[str, Any] = {"fields": stage.fields, "hears": next((r.hears for r in stage.rounds), "")}
        for round in stage.rounds:
            told: dict[str, Any] = {
                "part": round.part.value,
                "kind": round.randomizer.kind,
                "epsilon": round.randomizer.cost,
            }
            if isinstance(round.randomizer, LabelResponse):
                told |= {"classes": round.randomizer.classes, "keep": round.randomizer.keep}
            found.setdefault("rounds", {})[round.name] = told
        return found | {"raw": [part.value for part in Part if stage.raw(part)]}

    @classmethod
    def from_json(cls, body: Any) -> Protocol:
        try:
            if body["schema"] != VERSION:
                raise ValueError(f"schema {body['schema']!r}; this version reads {VERSION!r}")
            return cls(
                identifier(body["name"]),
                str(body["method"]),
                dict(body["options"]),
                Local.from_json(body["promise"]),
                PublicFacts(**body["facts"]),
                tuple(Round.of(Release.from_json(entry)) for entry in body["rounds"]),
                tuple(Part(one) for one in body.get("public", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, Defect, GraphveilError) as error:
            raise InputError(f"this is no protocol of a collection: {error}") from None
