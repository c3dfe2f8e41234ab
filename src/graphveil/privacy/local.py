"""What everybody asks for in the local model: a budget for each part of their record, or its openness, in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from graphveil.errors import InputError, PrivacyError
from graphveil.privacy.accounting.loss import Loss, added_epsilon
from graphveil.privacy.facts import EDGE, PublicFacts
from graphveil.privacy.noise import LARGEST_LOCAL_EPSILON
from graphveil.privacy.promise import FAMILY, Adjacency, Guarantee, Level, Promise, Relation, parse_name

if TYPE_CHECKING:
    from graphveil.privacy.plan import Release


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
LOCAL = Guarantee(Level.LOCAL, Adjacency.LOCAL, Relation.REPLACE)
LISTS_ONLY = Guarantee(Level.LOCAL, Adjacency.LOCAL, Relation.ZERO_OUT)
VERTEX, LIST_ENTRY = "vertex", "list entry"
UNITS: dict[str, tuple[Part, ...]] = {  # what may change, and the parts of the record it is in
    VERTEX: (Part.FEATURES, Part.LABELS),
    LIST_ENTRY: (Part.EDGES,),
    EDGE: (Part.EDGES,),
}
ROUNDING = 1e-9  # sums of exact epsilons may differ from the sum asked for in the last digits

PARTS_IN_PLAIN_WORDS = {
    Part.FEATURES: "the features of every vertex",
    Part.LABELS: "the label of every vertex that has one",
    Part.EDGES: "the contact list of every vertex",
}
LISTS_ONLY_IN_PLAIN_WORDS = "one entry of one person's own contact list, there or not, and nothing else about them"
NOT_LOCAL = "reports on edges were made with everybody's lists at hand, as in the paper: no client could make them"
SEEDED_REPORTS = (
    "some reports were made with a seed: whoever guesses it has the records; not for release, the promise does not hold"
)
DEGREES = "how many contacts everybody has (the length of each list)"
OWNERS = (
    "who owns each pair of vertices (a public hash) and how many contacts everybody owns; an exchange of a contact that "
    "changes these numbers is not covered"
)


@dataclass(frozen=True, init=False)
class Local(Promise):
    """Each of features, labels and edges is an epsilon, ``"raw"`` (in the clear, said so everywhere) or ``"withheld"``.

    Two records of one vertex may differ in all features and the label (``replace``); of its contact list one entry is
    exchanged for another. The epsilons add up; several entries of a list add up as well. ``epsilon`` is for features, label
    and one list entry together: raw edges are declared public and not counted, raw features or labels make it infinite.

    *Contact lists and nothing else* is the relation ``zero-out``, the default where features and labels are both raw: one
    entry of a list is there or not (lengths are hidden, too), and ``epsilon`` is for that alone. Exchanging an entry is one
    less and one more: twice that. No part of the vertex itself has an epsilon then.
    """

    features: Budget = Openness.WITHHELD
    labels: Budget = Openness.WITHHELD
    edges: Budget = Openness.WITHHELD

    def __init__(self, features: Any, labels: Any, edges: Any, delta: float = 0.0, relation: str | None = None) -> None:
        if not 0 <= delta < 1:
            raise InputError(f"delta must lie in [0, 1), got {delta}")
        given = {Part.FEATURES: features, Part.LABELS: labels, Part.EDGES: edges}
        fixed = {"level": Level.LOCAL, "adjacency": Adjacency.LOCAL, "delta": delta}
        for name, value in {**fixed, "k": None, "max_degree": None}.items():
            object.__setattr__(self, name, value)
        for part, value in given.items():
            object.__setattr__(self, part.value, _budget(part, value))
        object.__setattr__(self, "relation", self._related(relation))
        object.__setattr__(self, "epsilon", sum(self.share(part) for part in self.counted))

    def _related(self, relation: str | None) -> Relation:
        lists_only = [part for part in Part if isinstance(self.budget(part), float)] == [Part.EDGES]
        if relation is None:
            everything_else = {Part.FEATURES, Part.LABELS} <= {*self.raw}
            return Relation.ZERO_OUT if lists_only and everything_else else Relation.REPLACE
        found = parse_name(Relation, relation)
        if found is Relation.ZERO_OUT and not lists_only:
            raise InputError(
                "relation zero-out is about contact lists alone, of which one entry is there or not: edges need an epsilon, "
                "features and labels must be raw or withheld; --relation replace is for all parts"
            )
        return found

    def budget(self, part: Part) -> Budget:
        value: Budget = getattr(self, part.value)
        return value

    def share(self, part: Part) -> float:
        """The epsilon of a part: 0 if it is withheld, infinite if it is raw."""
        value = self.budget(part)
        return value if isinstance(value, float) else math.inf if value is Openness.RAW else 0.0

    @property
    def raw(self) -> tuple[Part, ...]:
        return tuple(part for part in Part if self.budget(part) is Openness.RAW)

    @property
    def withheld(self) -> tuple[Part, ...]:
        return tuple(part for part in Part if self.budget(part) is Openness.WITHHELD)

    @property
    def counted(self) -> tuple[Part, ...]:
        """The parts that ``epsilon`` is for; the others are declared public."""
        if self.relation is Relation.ZERO_OUT:
            return (Part.EDGES,)
        return tuple(part for part in Part if part is not Part.EDGES or part not in self.raw)

    @property
    def entry_change(self) -> str:
        """What happens to the entry of a contact list that the epsilon of edges is for."""
        return "added or removed" if self.relation is Relation.ZERO_OUT else "exchanged"

    @property
    def covers(self) -> str:
        """In plain words what ``epsilon`` is for."""
        if self.relation is Relation.ZERO_OUT:
            return f"one entry of the contact list of one vertex, {self.entry_change}"
        words = {Part.FEATURES: "features", Part.LABELS: "label", Part.EDGES: "one entry of the contact list"}
        named = [words[part] for part in self.counted]
        return f"{', '.join(named[:-1])} and {named[-1]} of one vertex"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not protected, in words nobody can miss."""
        shown = {part: PARTS_IN_PLAIN_WORDS[part].upper() for part in self.raw}
        return tuple(f"NOT PROTECTED, SENT IN THE CLEAR: {what} ({part} raw)" for part, what in shown.items())

    def at(self, delta: float) -> Local:
        return Local(self.features, self.labels, self.edges, delta, self.relation)

    def with_default_delta(self, nodes: int) -> Local:
        """Local promises are pure unless a delta was asked for."""
        return self

    def payers(self, facts: PublicFacts, named: Iterable[str]) -> tuple[str, ...]:
        return tuple(UNITS)

    def cost(self, kind: str, losses: Iterable[Loss], sampled: float) -> float:
        """Pure epsilons added up; infinite for whatever is in a raw part."""
        return math.inf if set(UNITS[kind]) & set(self.raw) else added_epsilon(losses)

    def total(self, costs: Mapping[str, float]) -> float:
        vertex = 0.0 if self.relation is Relation.ZERO_OUT else costs[VERTEX]
        return vertex + (0.0 if Part.EDGES in self.raw else costs[LIST_ENTRY])

    def check_release(self, release: Release) -> None:
        mechanism: Any = release.mechanism
        covered = getattr(mechanism, "entry_relation", self.relation)
        if release.part == Part.EDGES and covered is not self.relation:
            raise PrivacyError(
                f"edges: epsilon {mechanism.cost:.6g} of round {release.name!r} is for the relation {covered}, "
                f"{self.relation} is promised: zero-out is one entry of a contact list that is there or not, replace one "
                f"that is exchanged (say --relation {covered} if that is what you allow)"
            )

    def kept(self, epsilon: float, delta: float) -> bool:
        most = self.epsilon * (1 + ROUNDING) + ROUNDING
        return math.isfinite(epsilon) and epsilon <= most and delta <= self.target_delta

    def asked(self, part: Part) -> str:
        value = self.budget(part)
        return value.value if isinstance(value, Openness) else f"epsilon {value:g}"

    def to_json(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if key not in ("epsilon", "k", "max_degree")}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Local:
        relation = fields.get("relation", Relation.REPLACE)
        return cls(fields["features"], fields["labels"], fields["edges"], float(fields["delta"]), relation)


FAMILY[Level.LOCAL] = Local


def once(part: str) -> str:
    """Why a round costs each person what its randomizer states, however many answer."""
    return f"everybody randomises their own {part}, once; reports are independent"


def _budget(part: Part, value: Any) -> Budget:
    if isinstance(value, str):
        if value in tuple(Openness):
            return Openness(value)
        try:
            value = float(value)
        except ValueError:
            raise InputError(f"{part}: give an epsilon, 'raw' or 'withheld', got {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise InputError(f"{part}: epsilon must be positive, got {value}; 'withheld' sends, 'raw' hides nothing")
    if value > LARGEST_LOCAL_EPSILON:
        raise InputError(f"{part}: epsilon {value:g} is above {LARGEST_LOCAL_EPSILON:g}, it hides nothing: say 'raw'")
    return float(value)
