"""What a user asks for: a level, the exact adjacency, a relation, and (epsilon, delta).

Adjacencies (``A[i, k] = 1`` means k sends to i; column k is k's own contact list; slots and their number are public):

``edge-directed``     one entry of A differs
``edge-undirected``   the entries (i, j) and (j, i) differ together
``k-neighbor``        features and label of one node vanish, and up to k of its edges, in both lists; k = 0: edges are public
``record``            features, label and *own* contact list of one node; that others list this node is not part of it
``bounded-degree``    features, label and all edges of one node, in everybody's lists, if no node has more than D (a promise)
``node``              the same on arbitrary graphs, no degree promise
``local``             one person's own record, randomised before it leaves (``local.py``)

Relations: ``zero-out`` compares the data with the same data where one person left everything blank; ``replace``
exchanges one person's data for anybody else's.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from graphveil.errors import InputError
from graphveil.privacy.accounting.loss import Loss, amplified_epsilon
from graphveil.privacy.facts import EDGE, KINDS, PublicFacts

if TYPE_CHECKING:
    from graphveil.privacy.plan import Release

E = TypeVar("E", bound=StrEnum)


class Level(StrEnum):
    EDGE = "edge"
    K_NEIGHBOR = "k-neighbor"
    NODE = "node"
    LOCAL = "local"
    NONE = "none"


class Adjacency(StrEnum):
    EDGE_UNDIRECTED = "edge-undirected"
    EDGE_DIRECTED = "edge-directed"
    K_NEIGHBOR = "k-neighbor"
    RECORD = "record"
    BOUNDED_DEGREE = "bounded-degree"
    NODE = "node"
    LOCAL = "local"
    NONE = "none"


class Relation(StrEnum):
    ZERO_OUT = "zero-out"
    REPLACE = "replace"


ADJACENCIES: dict[Level, tuple[Adjacency, ...]] = {
    Level.EDGE: (Adjacency.EDGE_UNDIRECTED, Adjacency.EDGE_DIRECTED),
    Level.K_NEIGHBOR: (Adjacency.K_NEIGHBOR,),
    Level.NODE: (Adjacency.RECORD, Adjacency.BOUNDED_DEGREE, Adjacency.NODE),
    Level.LOCAL: (Adjacency.LOCAL,),
    Level.NONE: (Adjacency.NONE,),
}

IN_PLAIN_WORDS: dict[Adjacency, str] = {
    Adjacency.EDGE_UNDIRECTED: "whether any one friendship exists; features and labels are public",
    Adjacency.EDGE_DIRECTED: "whether any one directed link exists; features and labels are public",
    Adjacency.K_NEIGHBOR: "one person's features, label and up to k of their friendships, in both contact lists",
    Adjacency.RECORD: "one person's features, label and own contact list; not hidden is that others list this person",
    Adjacency.BOUNDED_DEGREE: "one person's features, label and all their links, as long as nobody has more than D links",
    Adjacency.NODE: "one person's features, label and all their links, on any graph",
    Adjacency.LOCAL: "one person's own record, before it leaves them",
    Adjacency.NONE: "nothing",
}

COMPARED: dict[Relation, str] = {  # with what a release must be nearly the same
    Relation.ZERO_OUT: "the same data with one person's record left blank",
    Relation.REPLACE: "the same data with one person's record exchanged for anybody else's",
}


@dataclass(frozen=True)
class Guarantee:
    """One (level, adjacency, relation) a method can prove, or claims."""

    level: Level
    adjacency: Adjacency
    relation: Relation

    def __str__(self) -> str:
        return f"{self.level} / {self.adjacency} / {self.relation}"


K_NEEDED = "k-neighbor level needs k (and only it takes --k): how many of a person's edges are protected"
BOUND_NEEDED = "adjacency bounded-degree needs max_degree (and only it takes one): the promised largest degree"
FAMILY: dict[str, type[Promise]] = {}  # promises with a class of their own, by level


@dataclass(frozen=True)
class Promise:
    """Level + adjacency + relation + (epsilon, delta). Build one with ``NodeLevel``, ``EdgeLevel``, ``KNeighborLevel``."""

    level: Level
    adjacency: Adjacency
    relation: Relation
    epsilon: float
    delta: float | None = None
    k: int | None = None
    max_degree: int | None = None

    def __post_init__(self) -> None:
        # names become members: a plain "replace" equals Relation.REPLACE but is not it, and would be planned as zero-out
        for name, kind in (("level", Level), ("adjacency", Adjacency), ("relation", Relation)):
            object.__setattr__(self, name, parse_name(kind, getattr(self, name)))
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if (value is not None or name == "epsilon") and (
                isinstance(value, bool) or not isinstance(value, (int, float))
            ):
                raise InputError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
        if not self.epsilon > 0:  # NaN fails too
            raise InputError(f"epsilon must be positive, got {self.epsilon}; ordinary values are between 0.5 and 16")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"delta must lie strictly between 0 and 1, got {self.delta}; leave it out for the default")
        if self.adjacency not in ADJACENCIES[self.level]:
            allowed = ", ".join(ADJACENCIES[self.level])
            raise InputError(f"level {self.level} has no adjacency {self.adjacency}; it has: {allowed}")
        for name, value, belongs, why, least in (
            ("k", self.k, self.level is Level.K_NEIGHBOR, K_NEEDED, 0),
            ("max_degree", self.max_degree, self.adjacency is Adjacency.BOUNDED_DEGREE, BOUND_NEEDED, 1),
        ):
            if belongs != (value is not None):
                raise InputError(why)
            if belongs and not (isinstance(value, int) and not isinstance(value, bool) and least <= value <= 10**12):
                raise InputError(f"{name} must be a whole number of at least {least}, got {value}")

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.level, self.adjacency, self.relation)

    @property
    def private(self) -> bool:
        """False for ``epsilon = inf``: the same pipeline without noise."""
        return math.isfinite(self.epsilon)

    @property
    def target_delta(self) -> float:
        if self.delta is None:
            raise InputError("this promise has no delta yet; call with_default_delta(nodes) first")
        return self.delta

    def with_default_delta(self, nodes: int) -> Promise:
        """Delta 10^-ceil(log10 n), one tenth of that at edge level: from the public n, never from the private edges."""
        if self.delta is not None:
            return self
        digits = math.ceil(math.log10(max(nodes, 2))) + (1 if self.level is Level.EDGE else 0)
        return replace(self, delta=10.0**-digits)

    def at(self, delta: float) -> Promise:
        """The same promise at another delta."""
        return replace(self, delta=delta)

    def payers(self, facts: PublicFacts, named: Iterable[str]) -> tuple[str, ...]:
        """The kinds of records that pay: public kinds of nodes; at edge level edges, or the public classes ``named``."""
        if self.level is Level.EDGE:
            return tuple(sorted(kind for kind in set(named) if kind != EDGE)) or (EDGE,)
        return tuple(kind for kind in KINDS if facts.count(kind))

    def cost(self, kind: str, losses: Iterable[Loss], sampled: float) -> float:
        """Epsilon of these losses for a record of this kind, at the promised delta."""
        return amplified_epsilon(losses, self.target_delta, sampled)

    def total(self, costs: Mapping[str, float]) -> float:
        """The figure to hold against ``epsilon``: that of whoever pays most."""
        return max(costs.values(), default=0.0)

    def check_release(self, release: Release) -> None:
        """An error if a release covers another change than the promised one; only rounds on contact lists can."""

    def kept(self, epsilon: float, delta: float) -> bool:
        """Whether these figures are within the promise."""
        return math.isfinite(epsilon) and epsilon <= self.epsilon and delta <= (self.delta or 0.0)

    def to_json(self) -> dict[str, Any]:
        fields = {key: value for key, value in asdict(self).items() if value is not None}
        return fields | {"epsilon": self.epsilon if self.private else "inf"}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Promise:
        family = FAMILY.get(fields["level"])
        if family is not None and cls is Promise:
            return family.from_json(fields)
        known: dict[str, Any] = {name: fields.get(name) for name in cls.__dataclass_fields__}
        return cls(**known | {"epsilon": float(fields["epsilon"])})

    @classmethod
    def parse(
        cls,
        *,
        level: str | None = "node",
        epsilon: float | None = None,
        delta: float | None = None,
        k: int | None = None,
        adjacency: str | None = None,
        relation: str | None = None,
        max_degree: int | None = None,
        directed: bool = False,
        features: str | float | None = None,
        labels: str | float | None = None,
        edges: str | float | None = None,
        supported: Collection[Guarantee] = (),
    ) -> Promise:
        """The promise that flags describe, or an error in their words.

        Without a ``level``: local if a part of the record has a budget, none without an epsilon, else node. Without an
        ``adjacency``: at node level the first one among those ``supported``. Without a ``relation``: zero-out; at level local
        replace, unless contact lists are all that is protected.
        """
        parts = (features, labels, edges)
        local = any(part is not None for part in parts)
        level = level or ("local" if local else "none" if epsilon is None else "node")
        if level == "local":
            central = {"epsilon": epsilon, "k": k, "adjacency": adjacency, "max-degree": max_degree}
            given = [name for name, value in central.items() if value is not None]
            if given:
                raise InputError(f"--level local takes no --{given[0]}: give each part its own epsilon")
            budgets = ("withheld" if part is None else part for part in parts)
            named = dict(zip(("features", "labels", "edges"), budgets, strict=True))
            return FAMILY[Level.LOCAL].from_json({**named, "delta": delta or 0.0, "relation": relation})
        if local:
            raise InputError("--features-epsilon, --labels-epsilon and --edges-epsilon belong to --level local")
        asked, sense = parse_name(Level, level), None if adjacency is None else parse_name(Adjacency, adjacency)
        if directed and asked is not Level.EDGE:
            raise InputError("--directed belongs to --level edge")
        if asked is Level.NONE:
            if epsilon is not None:
                raise InputError("--level none takes no --epsilon: nothing is protected")
            return NonPrivate()
        if epsilon is None:
            raise InputError(f"--level {asked} needs --epsilon")
        relation = relation or Relation.ZERO_OUT
        if asked is Level.EDGE and relation != Relation.ZERO_OUT:
            raise InputError("level edge adds or removes one edge; it takes no --relation")
        if directed and sense is Adjacency.EDGE_UNDIRECTED:
            raise InputError("--directed contradicts --adjacency edge-undirected")
        if sense is None:
            known = {guarantee.adjacency for guarantee in supported if asked is guarantee.level is Level.NODE}
            wanted = ADJACENCIES[asked] if max_degree is None else (Adjacency.BOUNDED_DEGREE,)
            first = Adjacency.EDGE_DIRECTED if directed else ADJACENCIES[asked][0]
            sense = next((found for found in wanted if found in known), first)
        bound = max_degree if asked is Level.NODE else None
        return Promise(asked, sense, parse_name(Relation, relation), epsilon, delta, k, bound)


def parse_name(kind: type[E], value: str) -> E:
    """The member of ``kind`` with this name, or an error that lists the names."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise InputError(f"unknown {kind.__name__.lower()} {value!r}; known are: {known}") from None


def NodeLevel(
    epsilon: float,
    delta: float | None = None,
    adjacency: str = "record",
    max_degree: int | None = None,
    relation: str = "zero-out",
) -> Promise:
    """Protect one person: features, label and contacts, in the sense of ``adjacency``."""
    names = parse_name(Adjacency, adjacency), parse_name(Relation, relation)
    return Promise(Level.NODE, *names, epsilon, delta, max_degree=max_degree)


def KNeighborLevel(k: int, epsilon: float, delta: float | None = None, relation: str = "zero-out") -> Promise:
    """Protect one person's features and label and up to k of their edges."""
    return Promise(Level.K_NEIGHBOR, Adjacency.K_NEIGHBOR, parse_name(Relation, relation), epsilon, delta, k=k)


def EdgeLevel(epsilon: float, delta: float | None = None, directed: bool = False) -> Promise:
    """Protect whether one edge exists (add or remove it); features and labels are public."""
    adjacency = Adjacency.EDGE_DIRECTED if directed else Adjacency.EDGE_UNDIRECTED
    return Promise(Level.EDGE, adjacency, Relation.ZERO_OUT, epsilon, delta)


def NonPrivate() -> Promise:
    """No protection at all: the ordinary pipeline, said so on the certificate."""
    return Promise(Level.NONE, Adjacency.NONE, Relation.ZERO_OUT, math.inf)
