"""The contract of a local method: rounds fixed from public facts, clients that answer once, a collector that learns.

``fit`` plays all parts in one process for research: every holder's client randomises its records, the collector hears
nothing but reports (and what is declared raw), and everything it computes is post-processing. The predictor it leaves holds
scores of all slots, computed from reports alone.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphveil.errors import DataWarning, InputError, PrivacyError
from graphveil.exchange.certificate import NOT_LOCAL, LocalCertificate, Spent
from graphveil.exchange.client import NO_LABEL, Client
from graphveil.exchange.collector import Collector
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.report import Round
from graphveil.methods.base import PUBLIC_COINS, PrivateMethod, Progress
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.local import LOCAL, Local, Openness, Part
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Gap
from graphveil.privacy.promise import Guarantee

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.methods.model import Model

REPORTS_ONLY = "scores are computed from reports alone, so predictions of all vertices may be shown to anybody"
WHO_IS_LABELLED = "which vertices have a label that they report (train and validation)"


@dataclass(frozen=True, eq=False)
class Everybody:
    """All contact lists at once, and coins: what a published mechanism that is not local reads. Never there in sound mode."""

    lists: Contacts
    noise: Noise


@dataclass
class Session:
    """What the collector's side may use: public facts, reports, raw parts, public coins."""

    facts: PublicFacts
    promise: Local
    masks: dict[str, np.ndarray]
    collector: Collector
    clients: list[Client]
    coins: np.random.Generator
    ledger: Ledger
    progress: Progress | None
    raw_rows: Any = None
    raw_labels: np.ndarray | None = None
    raw_edges: np.ndarray | None = None
    degrees: np.ndarray | None = None
    everybody: Everybody | None = None

    def ask(self, name: str, broadcast: Any = None) -> Any:
        """One round: the ledger is written, every client answers, the values come back in the order of the slots."""
        round = self.collector.rounds[name]
        self.ledger.append(Spent.of(round, self.reporters(round)))  # type: ignore[arg-type]
        for client in self.clients:
            self.collector.accept(client.report(name, broadcast))
        return self.collector.values(name)

    def ask_everybody(self, name: str, broadcast: Any = None) -> Contacts:
        """A published round that no client could answer, because it reads the lists of several people at once."""
        round = self.collector.rounds[name]
        if self.everybody is None:
            raise PrivacyError(f"round {name!r} reads everybody's lists: it runs in published mode only")
        self.ledger.append(Spent.of(round, self.reporters(round)))  # type: ignore[arg-type]
        randomizer: Any = replace(round.randomizer, lists=self.everybody.lists)  # type: ignore[type-var]
        found: Contacts = randomizer.randomize(self.everybody.lists, broadcast, self.everybody.noise)
        return found

    def reporters(self, round: Round) -> int:
        """How many vertices are asked: train and validation for their label, else everybody."""
        learning = self.facts.count("train") + self.facts.count("calibration")
        return learning if round.part is Part.LABELS else self.facts.nodes

    def tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)


class ScoresPredictor:
    """Scores of every slot, fixed when the reports were in."""

    def __init__(self, scores: np.ndarray, facts: dict[str, Any]) -> None:
        self.scores, self.facts = np.asarray(scores, dtype=np.float64), facts

    def logits(self, graph: Graph) -> np.ndarray:
        return self.scores

    def public_logits(self, nodes: int) -> np.ndarray:
        """Anybody may see them: they are computed from reports alone."""
        return self.scores

    def config(self) -> dict[str, Any]:
        return {"kind": "scores", **self.facts}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"scores": self.scores}


class LocalMethod(PrivateMethod):
    """Subclasses give ``rounds`` (from public facts) and ``train`` (from reports)."""

    lengths_public: ClassVar[bool] = (
        True  # whether the collector is told how long everybody's list is, where lists are reported
    )
    reads_everybody: ClassVar[bool] = False  # published mode runs a step that no client could

    @property
    def supports(self) -> frozenset[Guarantee]:
        return frozenset({LOCAL})

    @abstractmethod
    def rounds(self, facts: PublicFacts, promise: Local, mean_degree: float = 0.0) -> tuple[Round, ...]:
        """What will be asked, calibrated to the promise; ``mean_degree`` is 0 unless ``lengths_public``."""

    @abstractmethod
    def train(self, session: Session) -> ScoresPredictor:
        """Ask the rounds and learn from the answers."""

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        """What else is public, in sentences for the certificate."""
        return (WHO_IS_LABELLED,)

    def known_gaps(self, promise: Local) -> tuple[Gap, ...]:
        """The holes in the paper's claim that this promise meets; none in sound mode."""
        return self.gaps if self.mode == "published" else ()

    def claimed(self, promise: Local) -> float | None:
        """What the paper says it costs; None: what is proved."""
        return None

    def plan(self, facts: PublicFacts, promise: Any, mean_degree: float = 0.0) -> Any:
        """The rounds for a local promise."""
        self.check()
        if not isinstance(promise, Local):
            raise InputError(
                f"{self.name} is a local method and does not cover level {promise.level}; use --level local with "
                "--features-epsilon, --labels-epsilon and --edges-epsilon (in Python: gv.Local)"
            )
        return self.rounds(facts, promise, mean_degree)

    def fit(
        self,
        data: Any,
        promise: Any,
        *,
        seed: int | None = None,
        ledger: Ledger | None = None,
        on_bad_rows: str = "raise",
        progress: Progress | None = None,
        tape: Any = None,
        holders: np.ndarray | None = None,
    ) -> Model:
        """Collect and learn under a ``Local`` promise; ``holders`` names who keeps each vertex (default: one holder)."""
        from graphveil.graph import Graph
        from graphveil.graph.validate import validate
        from graphveil.methods.model import Model

        graph = data if isinstance(data, Graph) else validate(data, on_bad_rows=on_bad_rows)
        facts = PublicFacts.of(graph)
        lists_reported = isinstance(promise, Local) and not isinstance(promise.edges, Openness)
        told = lists_reported and self.lengths_public
        rounds = self.plan(facts, promise, graph.lists.arcs / graph.nodes if told else 0.0)
        noise = Noise(seed)
        clients = clients_of(graph, rounds, noise, holders)
        session = Session(
            facts=facts,
            promise=promise,
            masks=dict(graph.masks),
            collector=Collector(rounds, facts.nodes),
            clients=clients,
            coins=np.random.default_rng(PUBLIC_COINS if seed is None else [PUBLIC_COINS, seed]),
            ledger=ledger or Ledger(),
            progress=progress,
        )
        open_raw_parts(session, graph)
        if told:
            session.degrees = graph.lists.out_degrees
        if self.mode == "published" and self.reads_everybody and lists_reported:
            session.everybody = Everybody(Contacts.own_lists(graph.lists), noise)
        predictor = self.train(session)
        clipped = sum(client.clipped for client in clients)
        if clipped:
            message = (
                f"{clipped} attributes lay outside the public range and were clipped (the number stays with the owners)"
            )
            warnings.warn(message, DataWarning, stacklevel=2)
        certificate = LocalCertificate.of(
            promise,
            facts,
            [(round, session.reporters(round)) for round in rounds],
            method=self.name,
            mode=self.mode,
            parameters=self.get_params(),
            holders={client.holder: len(client.ids) for client in clients},
            gaps=self.known_gaps(promise),
            public=self.public_statements(promise),
            assumptions=(*graph.notes, REPORTS_ONLY if session.everybody is None else NOT_LOCAL),
            claim=self.claimed(promise) if self.mode == "published" else None,
            seed=seed,
        )
        return Model(self, predictor, certificate)  # type: ignore[arg-type]

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> ScoresPredictor:
        return ScoresPredictor(arrays["scores"], {key: value for key, value in config.items() if key != "kind"})


def clients_of(
    graph: Graph, rounds: tuple[Round, ...], noise: Noise, holders: np.ndarray | None = None
) -> list[Client]:
    """One client per holder, with the records of its vertices; only train and validation vertices report a label."""
    names = np.full(graph.nodes, "all") if holders is None else np.asarray(holders).astype(str)
    if names.shape != (graph.nodes,):
        raise InputError(f"holders names a holder for each of {graph.nodes} vertices, got shape {names.shape}")
    labels = np.where(graph.masks["train"] | graph.masks["calibration"], graph.labels, NO_LABEL)
    lists = Contacts.own_lists(graph.lists)
    clients = []
    for name in np.unique(names):
        ids = np.flatnonzero(names == name)
        own = lists if len(ids) == graph.nodes else Contacts.of([lists[vertex] for vertex in ids])
        rows = graph.rows.take(ids).values
        records = {Part.FEATURES: rows, Part.LABELS: labels[ids], Part.EDGES: own}
        clients.append(Client(ids, records, rounds, noise, str(name)))
    return clients


def open_raw_parts(session: Session, graph: Graph) -> None:
    """Hand over what the promise declares raw, and nothing else."""
    promise = session.promise
    if Part.FEATURES in promise.raw:
        session.raw_rows = graph.rows
    if Part.LABELS in promise.raw:
        session.raw_labels = np.where(graph.masks["train"] | graph.masks["calibration"], graph.labels, NO_LABEL)
    if Part.EDGES in promise.raw:
        session.raw_edges = graph.lists.edge_index()
