"""Auto: the method that fits a promise, chosen by the promise and never by the data.

``rules()`` lists what is chosen for which promise, and why (``graphveil methods auto``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod
from graphveil.methods.model import Model
from graphveil.methods.registry import AUTO, SOUND, method_class
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import (
    Adjacency,
    EdgeLevel,
    Guarantee,
    KNeighborLevel,
    Level,
    NodeLevel,
    NonPrivate,
    Promise,
    Relation,
)

CoverEdges = Literal["released", "all"]
ROSTER = "a person's own contact list is part of the record, so a private model may read it"
COVERED = "; on undirected data one edge costs no more than one record in everything that is released"
NO_LISTS = "one edge must be covered in the predictions of its two ends, too, and ballot's predictions read no lists"
VANISH = "people who vanish from other people's lists are covered by ballot only"
ONE_NEIGHBOR = "with one edge of a person protected in both lists, learning from lists still pays"
NEIGHBORS = "many edges of a person, in both lists, cost ballot less than a method that learns from lists"
EDGES = "features and labels are public at edge level; ballot reads edges through noisy tallies"
NOBODY = "no curator is trusted: records are randomised before they leave"
NOTHING = "nothing is protected: an ordinary network"


@dataclass(frozen=True)
class Choice:
    """A method and the reason, in one line."""

    method: PrivateMethod
    why: str

    def __str__(self) -> str:
        return f"auto chose {self.method.name}: {self.why}"


class Auto:
    """Plans and fits like a method; plan, model and certificate are those of the method it chooses.

    Args:
        cover_edges: ``all`` if one edge must be covered in the predictions of its two ends, too; ``released`` if not: only these
            two see them.
        options: go to the chosen method.
    """

    name, mode = AUTO, SOUND

    def __init__(self, *, cover_edges: str = "released", mode: str = SOUND, **options: Any) -> None:
        if cover_edges not in get_args(CoverEdges):
            raise InputError(f"cover_edges takes {' or '.join(get_args(CoverEdges))}, got {cover_edges!r}")
        if mode != SOUND:
            raise InputError("auto chooses among sound methods; for what a paper does, name its method")
        self.cover_edges, self.options = cover_edges, options

    @property
    def supports(self) -> frozenset[Guarantee]:
        """What some method it may choose proves."""
        return frozenset().union(*(method_class(name)().supports for name in ("roster", "ballot", "local")))

    def choose(self, promise: Promise) -> Choice:
        """The method for this promise, and why."""
        name, why = self._rule(promise)
        return Choice(method_class(name)(**self.options), why)

    def _rule(self, promise: Promise) -> tuple[str, str]:
        match promise.level, promise.adjacency:
            case Level.NONE, _:
                return "sage", NOTHING
            case Level.LOCAL, _:
                return "local", NOBODY
            case Level.EDGE, _:
                return "ballot", EDGES
            case Level.K_NEIGHBOR, _ if promise.k == 1 and promise.relation is Relation.ZERO_OUT:
                return "roster", ONE_NEIGHBOR
            case Level.K_NEIGHBOR, _:
                return "ballot", NEIGHBORS
            case _, Adjacency.RECORD if self.cover_edges == "all":
                return "ballot", NO_LISTS
            case _, Adjacency.RECORD:
                return "roster", ROSTER + COVERED
        return "ballot", VANISH

    def facts(self, data: Any) -> PublicFacts:
        """The public facts of these data."""
        return PublicFacts.of(data)

    def plan(self, facts: PublicFacts, promise: Promise) -> Plan:
        """What the chosen method plans."""
        return self.choose(promise).method.plan(facts, promise)

    def set_params(self, **values: Any) -> Auto:
        """``cover_edges``, and options for the chosen method."""
        self.__init__(**{**self.get_params(), **values})  # type: ignore[misc]
        return self

    def fit(self, data: Any, promise: Promise, **coins: Any) -> Model:
        """What the chosen method learns; ``coins`` as for :meth:`PrivateMethod.fit`."""
        return self.choose(promise).method.fit(data, promise, **coins)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"cover_edges": self.cover_edges, **self.options}

    def __repr__(self) -> str:
        given = {key: value for key, value in self.get_params().items() if (key, value) != ("cover_edges", "released")}
        return f"Auto({', '.join(f'{key}={value!r}' for key, value in given.items())})"


def rules() -> list[dict[str, str]]:
    """For every kind of promise the method that auto chooses, and why."""
    one, released, everything = 1.0, Auto(), Auto(cover_edges="all")
    kinds: list[tuple[str, Auto, Promise]] = [
        ("node, record", released, NodeLevel(one)),
        ("node, record, --cover-edges all", everything, NodeLevel(one)),
        ("node, node or bounded-degree", released, NodeLevel(one, adjacency="node")),
        ("k-neighbor, k = 1, zero-out", released, KNeighborLevel(1, one)),
        ("k-neighbor otherwise", released, KNeighborLevel(5, one)),
        ("edge", released, EdgeLevel(one)),
        ("local", released, Local("withheld", one, "raw")),
        ("none", released, NonPrivate()),
    ]
    chosen = [(words, auto.choose(promise)) for words, auto, promise in kinds]
    return [{"promise": words, "method": choice.method.name, "why": choice.why} for words, choice in chosen]
