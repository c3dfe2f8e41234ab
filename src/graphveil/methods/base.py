"""The contract of every method: options as fields, ``plan`` from public facts, ``fit`` through a curator (or from reports)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from graphveil.errors import DataWarning, InputError
from graphveil.graph import Graph
from graphveil.learn import engine
from graphveil.methods.card import Card
from graphveil.methods.model import Model, Predictor
from graphveil.methods.options import Options, refuse_unknown
from graphveil.methods.previous import Following, Previous, follow
from graphveil.methods.registry import SOUND, VERBS, method_class
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.curator import Curator, Tape
from graphveil.privacy.facts import PUBLIC_COINS, PublicFacts
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Gap, Plan, Release
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation
from graphveil.progress import Progress, silent

if TYPE_CHECKING:
    from graphveil.privacy.budget.book import BudgetBook

OWN_ROW = (
    "a prediction is computed from the releases and the node's own features: giving it to that node is covered, "
    "giving it to others is covered for everybody but that node"
)
OWN_ROWS = (
    "row r of {} is for node r alone, the noise does not cover it before others: these rows stay with the curator (folder "
    "'curator' of a saved run), a prediction goes to its own node only, the other files may be published"
)
LITTLE = 32.0  # an epsilon above it is said to be no protection
TAKEN_AS_PUBLIC = "taken as public, not covered by the promise"
FEATURES_PUBLIC = "features and labels of all nodes (at edge level only the edges are protected)"


def _doubts(promise: Promise, facts: PublicFacts) -> Iterable[str]:
    """What the numbers of a promise mean where they promise little."""
    if promise.level in (Level.LOCAL, Level.NONE):
        return
    if not promise.private:
        yield "epsilon inf: no noise is added and nobody is protected; this shows what the method reaches without a promise"
        return
    if promise.epsilon > LITTLE:
        yield (
            f"epsilon {promise.epsilon:g} promises next to nothing: one record may change any odds "
            f"e^{promise.epsilon:g} times; ordinary are 0.5 to 16"
        )
    if promise.target_delta > (1 + 1e-9) / facts.nodes:
        yield f"delta {promise.delta:g} is above 1/n = {1 / facts.nodes:.3g}: some people may be exposed outright"


def guarantees(*adjacencies: Adjacency, relations: Iterable[Relation] = Relation) -> frozenset[Guarantee]:
    """Each of these adjacencies with each of these relations."""
    levels = {Adjacency.EDGE_UNDIRECTED: Level.EDGE, Adjacency.EDGE_DIRECTED: Level.EDGE}
    levels[Adjacency.K_NEIGHBOR] = Level.K_NEIGHBOR
    pairs = product(adjacencies, relations)
    return frozenset(Guarantee(levels.get(adjacency, Level.NODE), adjacency, relation) for adjacency, relation in pairs)


ZERO_OUT = (Relation.ZERO_OUT,)
EDGES = guarantees(Adjacency.EDGE_UNDIRECTED, Adjacency.EDGE_DIRECTED, relations=ZERO_OUT)


def promised_degree(promise: Promise) -> tuple[str, ...]:
    """What a bounded degree assumes."""
    if promise.max_degree is None:
        return ()
    return (
        f"nobody has more than {promise.max_degree} contacts in either direction (promised by the user, not checked)",
    )


def own_rows_kept(plan: Plan) -> tuple[str, ...]:
    """What follows from tables whose noise leaves out the row's own node."""
    named = [step.name for step in plan.steps if isinstance(step, Release) and step.own_row_excluded]
    return (OWN_ROWS.format(", ".join(named)),) if named else ()


class PrivateMethod(Options):
    """A method with options as fields; subclasses give ``design`` and ``learn``.

    Each mode is a class of its own: ``Gap(mode="published")`` makes the published class of the method that ``Gap`` is.
    """

    card: ClassVar[Card]
    gaps: ClassVar[tuple[Gap, ...]] = ()
    curator: ClassVar[type[Curator]] = Curator
    predictor: ClassVar[type[Any]]
    least_k: ClassVar[int] = 1  # at k-neighbor level; 0 where features and label alone can be protected
    reads_blocks: ClassVar[bool] = False  # whether a graph in a folder is taken, too
    learns_from: ClassVar[tuple[str, ...]] = ("train",)  # kinds of records whose labels the model is fitted to
    mode: str = SOUND

    def __new__(cls, *, mode: str | None = None, **options: Any) -> Self:
        chosen: Any = cls if mode in (None, cls.mode) else method_class(cls.card.name, mode)
        if chosen is not cls:
            return chosen(**options)  # type: ignore[no-any-return]
        refuse_unknown(cls, cls.card.name, options)
        return super().__new__(cls)

    @property
    def name(self) -> str:
        return self.card.name

    _title = name

    @property
    def supports(self) -> frozenset[Guarantee]:
        """The guarantees this method proves (sound) or claims (published)."""
        raise NotImplementedError

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The releases this method will make for a promise it supports; reads nothing but public facts."""
        raise NotImplementedError

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> Predictor:
        """The algorithm: everything private goes through the curator, ``coins`` are public."""
        raise NotImplementedError

    def takes(self, predictor: Predictor, promise: Promise) -> bool:
        """Whether :meth:`learn_on` can take over what this predictor of the same method holds."""
        return False

    def learn_on(
        self, previous: Previous, curator: Curator, coins: np.random.Generator, progress: Progress
    ) -> Predictor:
        """:meth:`learn`, taking over what an earlier run released and nothing else of it (``previous.py``)."""
        raise NotImplementedError

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        """The predictor saved as ``config`` and ``arrays``."""
        restored: Predictor = self.predictor.restore(config, arrays)
        return restored

    def facts(self, data: Any) -> PublicFacts:
        """The public facts of these data as a fit would see them."""
        return PublicFacts.of(self.validated(data, "zero"))

    def facts_for(self, graph: Graph, promise: Promise) -> PublicFacts:
        """The public facts of a graph under this promise."""
        return PublicFacts.of(graph)

    def validated(self, data: Any, on_bad_rows: str) -> Graph:
        """The graph of a PyG ``Data`` object, with the masks this method needs."""
        from graphveil.graph.validate import check_graph, validate

        known = check_graph(data) if isinstance(data, Graph) else validate(data, on_bad_rows=on_bad_rows)  # type: ignore[arg-type]
        if known.on_disk and not self.reads_blocks:
            raise InputError(
                f"{self.name} ({self.mode}) needs the whole graph in memory: import it to .npz, or take roster, ballot, dp-mlp, "
                "gap or mlp, which read a folder block by block"
            )
        return self.arrange(known)

    def in_blocks(self, promise: Promise) -> bool:
        """Whether a run under this promise asks its queries block by block (``learn/engine``), which workers can do."""
        return self.reads_blocks

    def check_blocks(self, promise: Promise) -> None:
        """Refuse to run on workers what is not run block by block."""
        if not self.in_blocks(promise):
            raise InputError(
                f"{self.name} ({self.mode}) does not run in blocks at level {promise.level} with these options: leave "
                "--engine ray out, or take roster, ballot, dp-mlp or gap at node level, or gap or mlp at edge level"
            )

    def arrange(self, graph: Graph) -> Graph:
        """The graph with the public masks this method needs; may read nothing but masks, and notes what it changed."""
        return graph

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What else is public, and what is assumed, in sentences for the certificate."""
        public = (FEATURES_PUBLIC,) if plan.promise.level is Level.EDGE else ()
        assumptions = () if plan.promise.level in (Level.EDGE, Level.NONE) else (OWN_ROW,)
        return public, (*own_rows_kept(plan), *assumptions)

    def fit(
        self,
        data: Any,
        promise: Promise,
        *,
        seed: int | None = None,
        ledger: Ledger | None = None,
        on_bad_rows: str = "raise",
        progress: Progress | None = None,
        tape: Tape | None = None,
        plan: Plan | None = None,
        budget: BudgetBook | None = None,
        previous: Model | None = None,
    ) -> Model:
        """Train on a PyG ``Data`` object under ``promise``; noise comes from the operating system unless ``seed`` is given.

        ``plan``: what :meth:`plan` gave for the same facts and promise, where it is at hand. ``budget``: the book of the data
        set, which admits the run or refuses it before anything private is read. ``previous``: the model of an earlier export;
        methods that can take over what it released do so, and the certificate says what both cost people who are in both
        (``previous.py``).
        """
        if not isinstance(data, Graph) and getattr(data, "y", 0) is None:
            raise InputError(
                f"data.y is missing: {self.name} learns from labels, one class per node and -1 where there is none"
            )
        graph = self.validated(data, on_bad_rows)
        promise = promise if budget is None else budget.completed(promise)
        plan = self.planned(self.facts_for(graph, promise), promise, plan)
        ledger = ledger or Ledger()
        following = Following(None, ()) if previous is None else follow(self, previous, graph, plan.promise)
        if budget is None:
            return self._learnt(graph, plan, ledger, seed, progress, tape, following)
        reservation = budget.reserve(plan, method=self.name, mode=self.mode, seeded=seed is not None)
        try:
            model = self._learnt(graph, plan, ledger, seed, progress, tape, following)
        except BaseException:
            reservation.give_up(ledger.entries)
            raise
        reservation.settle(ledger.entries, certificate=model.certificate.to_json()["digest"])
        return model

    def _learnt(
        self,
        graph: Graph,
        plan: Plan,
        ledger: Ledger,
        seed: int | None,
        progress: Progress | None,
        tape: Tape | None,
        following: Following,
    ) -> Model:
        curator = self.curator(graph, plan, Noise(seed, engine.threads()), ledger, tape)
        coins = np.random.default_rng(PUBLIC_COINS if seed is None else [PUBLIC_COINS, seed])
        if following.taken is None:
            predictor = self.learn(curator, coins, progress or silent)
        else:
            predictor = self.learn_on(following.taken, curator, coins, progress or silent)
        public, assumptions = self.statements(plan)
        notes = (f"{TAKEN_AS_PUBLIC}: {note}" for note in (*graph.notes, *following.notes))
        told = {"public": public, "assumptions": (*notes, *assumptions), "seed": seed, "earlier": following.earlier}
        model = self.certified(predictor, plan, ledger.entries, **told)
        return model.ordered_by(graph.ids).naming(graph.class_names)

    def certified(self, predictor: Predictor, plan: Plan, releases: Iterable[Release], **told: Any) -> Model:
        """What a finished run returns; ``told`` as for :meth:`Certificate.of`."""
        told |= {"method": self.name, "mode": self.mode, "parameters": self.get_params()}
        return Model(self, predictor, Certificate.of(plan, tuple(releases), **told))

    def plan(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The releases this method will make, for a promise it supports; the default delta is filled in."""
        if not isinstance(promise, Promise):
            raise InputError(f"a promise is something like graphveil.NodeLevel(epsilon=8), got {promise!r}")
        promise = promise.with_default_delta(facts.nodes)
        if promise.guarantee not in self.supports and promise.level is not Level.NONE:
            known = "; ".join(sorted(map(str, self.supports))) or "nothing (it is not private)"
            raise InputError(
                f"{self.name} ({self.mode}) does not cover {promise.guarantee}; it {VERBS[self.mode]}: {known}"
            )
        if promise.k is not None and promise.k < self.least_k:
            raise InputError(f"{self.name} ({self.mode}) takes k of at least {self.least_k} at k-neighbor level")
        for message in _doubts(promise, facts):
            warnings.warn(message, DataWarning, stacklevel=2)
        if promise.adjacency is Adjacency.EDGE_DIRECTED and not facts.directed:
            message = "these data are undirected: edge-directed protects one stored direction, not the friendship"
            warnings.warn(message, DataWarning, stacklevel=2)
        self.check()
        return self.design(facts, promise)

    def planned(self, facts: PublicFacts, promise: Promise, plan: Plan | None) -> Plan:
        """``plan`` if it is for these facts and this promise, else an error; without one, a new plan."""
        if (where := engine.chosen()) is not None and where.elsewhere:
            self.check_blocks(promise)
        if plan is None:
            return self.plan(facts, promise)
        if plan.facts != facts or plan.promise != promise.with_default_delta(facts.nodes):
            raise InputError(f"the plan given to {self.name} is for other public facts or another promise")
        return plan

    def set_params(self, **values: Any) -> Self:
        """Options by name; another ``mode`` turns this object into one of that mode's class, with its defaults."""
        other = method_class(self.name, values["mode"]) if "mode" in values else type(self)
        if other is not type(self):
            kept = {name: value for name, value in self._changed().items() if name in other.parameter_defaults()}
            changed = other(**kept | {name: value for name, value in values.items() if name != "mode"})
            self.__dict__.clear()
            self.__class__ = other  # type: ignore[assignment]
            self.__dict__.update(changed.__dict__)
            return self
        return super().set_params(**values)

    def _changed(self) -> dict[str, Any]:
        defaults = self.parameter_defaults()
        return {key: value for key, value in self.get_params().items() if value != defaults[key] and key != "mode"}
