"""What everybody asks for in the local model: a budget for each part of their record, or its openness, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import LARGEST_EPSILON
from graphveil.privacy.promise import Guarantee, Relation


class Part(StrEnum):
    """The parts of a vertex's record."""

    FEATURES = "features"
    LABELS = "labels"
    EDGES = "edges"


class Openness(StrEnum):
    """A part without a randomizer."""

    RAW = "raw"  # sent in the clear: no protection at all
    WITHHELD = "withheld"  # never sent


Budget = float | Openness
LOCAL = Guarantee("local", "local", Relation.REPLACE)  # type: ignore[arg-type]

IN_PLAIN_WORDS = {
    Part.FEATURES: "the features of every vertex",
    Part.LABELS: "the label of every vertex that has one",
    Part.EDGES: "the contact list of every vertex",
}

DEGREES = "how many contacts everybody has (the length of each list)"
OWNERS = (
    "who owns each pair of vertices (a public hash) and how many contacts everybody owns; an exchange of a contact that "
    "changes these numbers is not covered"
)


@dataclass(frozen=True)
class Local:
    """Each of features, labels and edges is an epsilon, ``"raw"`` (in the clear, said so everywhere) or ``"withheld"``.

    Two records of one vertex may differ in all features and the label (``replace``); of its contact list one entry is
    exchanged for another. The epsilons add up; several entries of a list add up as well.
    """

    features: Budget
    labels: Budget
    edges: Budget

    level = "local"
    adjacency = "local"
    relation = "replace"
    delta: float = 0.0
    k = None
    max_degree = None

    def __post_init__(self) -> None:
        for part in Part:
            object.__setattr__(self, part.value, _budget(part, getattr(self, part.value)))
        if not 0 <= self.delta < 1:
            raise InputError(f"delta must lie in [0, 1), got {self.delta}")

    def budget(self, part: Part) -> Budget:
        value: Budget = getattr(self, part.value)
        return value

    def share(self, part: Part) -> float:
        """The epsilon of a part: 0 if it is withheld, infinite if it is raw."""
        value = self.budget(part)
        if isinstance(value, Openness):
            return math.inf if value is Openness.RAW else 0.0
        return value

    @property
    def guarantee(self) -> Guarantee:
        return LOCAL

    @property
    def raw(self) -> tuple[Part, ...]:
        return tuple(part for part in Part if self.budget(part) is Openness.RAW)

    @property
    def epsilon(self) -> float:
        """Features, label and one list entry together; raw edges are declared public and not counted, raw features or
        labels make it infinite."""
        edges = 0.0 if Part.EDGES in self.raw else self.share(Part.EDGES)
        return self.share(Part.FEATURES) + self.share(Part.LABELS) + edges

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)

    @property
    def covers(self) -> str:
        """In plain words what ``epsilon`` is for."""
        words = {Part.FEATURES: "features", Part.LABELS: "label", Part.EDGES: "one entry of the contact list"}
        named = [words[part] for part in Part if part is not Part.EDGES or part not in self.raw]
        return (
            f"{', '.join(named[:-1])} and {named[-1]} of one vertex" if len(named) > 1 else f"{named[0]} of one vertex"
        )

    def with_default_delta(self, nodes: int) -> Local:
        """Local promises are pure unless a delta was asked for."""
        return self

    def to_json(self) -> dict[str, Any]:
        shown = {part.value: _plain(self.budget(part)) for part in Part}
        return {
            "level": self.level,
            "adjacency": self.adjacency,
            "relation": self.relation,
            "delta": self.delta,
        } | shown

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Local:
        return cls(body["features"], body["labels"], body["edges"], float(body["delta"]))


def _plain(budget: Budget) -> float | str:
    return budget.value if isinstance(budget, Openness) else budget


def _budget(part: Part, value: Any) -> Budget:
    if isinstance(value, str):
        if value in tuple(Openness):
            return Openness(value)
        try:
            value = float(value)
        except ValueError:
            raise InputError(f"{part}: give an epsilon, 'raw' or 'withheld', got {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise InputError(
            f"{part}: epsilon must be positive, got {value}; 'withheld' sends nothing, 'raw' hides nothing"
        )
    if value > LARGEST_EPSILON:
        raise InputError(f"{part}: epsilon {value:g} is above {LARGEST_EPSILON:g}, which hides nothing: say 'raw'")
    return float(value)
