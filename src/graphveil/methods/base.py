"""The contract of every central method: parameters in ``__init__``, ``plan`` from public facts, ``fit`` through a curator."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, get_args, get_type_hints

import numpy as np

from graphveil.errors import DataWarning, InputError
from graphveil.methods.card import Card
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.curator import Curator, PaperCurator, Tape
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Gap, Plan
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.methods.model import Model

Progress = Callable[[str, int, int], None]
MODES = ("sound", "published")
PUBLIC_COINS = 0x5EED  # stream of public randomness (initial weights, neighbour caps); never used for noise

OWN_ROW = (
    "a prediction is computed from the releases and the node's own features: giving it to that node is covered, "
    "giving it to others is covered for everybody but that node"
)
TAKEN_AS_PUBLIC = "taken as public, not covered by the promise"
FEATURES_PUBLIC = "features and labels of all nodes (at edge level only the edges are protected)"


class Predictor(Protocol):
    """What a fit leaves behind: released numbers, and how to score nodes with them and their own rows."""

    def logits(self, graph: Graph) -> np.ndarray: ...

    def config(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, np.ndarray]: ...


class PrivateMethod:
    """A method with hyper-parameters as constructor arguments; subclasses give ``plan`` and ``learn``."""

    card: ClassVar[Card]
    modes: ClassVar[tuple[str, ...]] = MODES
    gaps: ClassVar[tuple[Gap, ...]] = ()
    mode: str = "sound"
    may_be_zero: ClassVar[frozenset[str]] = frozenset()  # counts for which none is a sensible number

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def supports(self) -> frozenset[Guarantee]:
        """The guarantees this method proves (sound) or claims (published)."""
        raise NotImplementedError

    def plan(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The releases this method will make; reads nothing but public facts."""
        raise NotImplementedError

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> Predictor:
        """The algorithm: everything private goes through the curator, ``coins`` are public."""
        raise NotImplementedError

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        """The predictor saved as ``config`` and ``arrays``."""
        raise NotImplementedError

    def arrange(self, graph: Graph) -> Graph:
        """The graph with the public masks this method needs; may read nothing but masks, and notes what it changed."""
        return graph

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What else is public, and what is assumed, in sentences for the certificate."""
        public = (FEATURES_PUBLIC,) if plan.promise.level is Level.EDGE else ()
        assumptions = () if plan.promise.level in (Level.EDGE, Level.NONE) else (OWN_ROW,)
        return public, assumptions

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
    ) -> Model:
        """Train on a PyG ``Data`` object under ``promise``; noise comes from the operating system unless ``seed`` is given."""
        from graphveil.graph import Graph
        from graphveil.graph.validate import validate
        from graphveil.methods.model import Model

        graph = self.arrange(data if isinstance(data, Graph) else validate(data, on_bad_rows=on_bad_rows))
        plan = self.checked_plan(PublicFacts.of(graph), promise)
        ledger = ledger or Ledger()
        kind = PaperCurator if self.mode == "published" else Curator
        curator = kind(graph, plan, Noise(seed), ledger, tape)
        coins = np.random.default_rng(PUBLIC_COINS if seed is None else [PUBLIC_COINS, seed])
        predictor = self.learn(curator, coins, progress)
        public, assumptions = self.statements(plan)
        certificate = Certificate.of(
            plan,
            tuple(ledger.entries),
            method=self.name,
            mode=self.mode,
            parameters=self.get_params(),
            public=public,
            assumptions=(*(f"{TAKEN_AS_PUBLIC}: {note}" for note in graph.notes), *assumptions),
            seed=seed,
        )
        return Model(self, predictor, certificate)

    def checked_plan(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The plan for a promise this method supports, with the default delta filled in."""
        self.check_parameters()
        promise = promise.with_default_delta(facts.nodes)
        if promise.guarantee not in self.supports and promise.level is not Level.NONE:
            known = "; ".join(sorted(map(str, self.supports))) or "nothing (it is not private)"
            verb = "proves" if self.mode == "sound" else "claims"
            raise InputError(f"{self.name} ({self.mode}) does not cover {promise.guarantee}; it {verb}: {known}")
        if promise.private and promise.target_delta >= 1 / facts.nodes:
            message = (
                f"delta {promise.delta:g} is not below 1/n = {1 / facts.nodes:.3g}: some people may be exposed outright"
            )
            warnings.warn(message, DataWarning, stacklevel=3)
        if promise.adjacency is Adjacency.EDGE_DIRECTED and not facts.directed:
            message = "these data are undirected: edge-directed protects one stored direction, not the friendship"
            warnings.warn(message, DataWarning, stacklevel=3)
        return self.plan(facts, promise)

    def check_parameters(self) -> None:
        """Refuse parameters of the wrong kind; subclasses add their own."""
        if self.mode not in self.modes:
            raise InputError(f"{self.name} has no mode {self.mode!r}; it has: {', '.join(self.modes)}")
        hints = get_type_hints(type(self).__init__)
        for name, value in self.get_params().items():
            if not _fits(value, hints[name]):
                raise InputError(f"{self.name}: option {name} takes {_spoken(hints[name])}, got {value!r}")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self._check_range(name, value)

    def _check_range(self, name: str, value: float) -> None:
        """Counts start at 1, rates are positive, dropout is a probability, nothing is negative; all before any spending."""
        default = self.parameter_defaults()[name]
        least = 0 if isinstance(default, float) or isinstance(value, float) or name in self.may_be_zero else 1
        if name == "dropout" and value >= 1:
            raise InputError(f"{self.name}: dropout must be below 1, got {value}")
        if name.endswith("rate") and value <= 0:
            raise InputError(f"{self.name}: {name} must be positive, got {value}")
        if not least <= value <= 1e9:
            raise InputError(f"{self.name}: {name} must lie between {least} and 1e9, got {value}")

    @classmethod
    def parameter_defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls.__init__)
        return {name: p.default for name, p in signature.parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.parameter_defaults()}

    def set_params(self, **values: Any) -> PrivateMethod:
        for name, value in values.items():
            if name not in self.parameter_defaults():
                known = ", ".join(self.parameter_defaults())
                raise InputError(f"{self.name} has no option {name!r}; it has: {known}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {k: v for k, v in self.get_params().items() if v != self.parameter_defaults()[k]}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


def _fits(value: Any, hint: Any) -> bool:
    """Whether a parameter has its annotated type; whole numbers pass for floats, NaN and infinity for nothing."""
    allowed = get_args(hint) or (hint,)
    if isinstance(value, bool):
        return bool in allowed
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, tuple(allowed)) or (isinstance(value, int) and float in allowed)


def _spoken(hint: Any) -> str:
    words = {int: "a whole number", float: "a number", str: "a name", bool: "true or false", type(None): "nothing"}
    return " or ".join(words.get(part, str(part)) for part in get_args(hint) or (hint,))
