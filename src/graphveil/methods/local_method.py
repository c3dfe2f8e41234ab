"""The contract of a local method: rounds fixed from public facts, and a network learned from reports.

``train(server)`` is the same function wherever the answers come from. ``fit`` plays all parts in one process for research: every
holder's client randomises its records, the server hears nothing but reports (and what is declared raw). ``fit_server`` learns
from reports that were collected elsewhere: nothing is randomised again, the certificate is the collection's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.files import COLLECTED, Files
from graphveil.exchange.in_process import InProcess
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.graph import Graph
from graphveil.graph.holders import holder_numbers
from graphveil.methods.base import PrivateMethod
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.methods.model import Model, Predictor
from graphveil.privacy.budget.book import BudgetBook
from graphveil.privacy.curator import Tape
from graphveil.privacy.facts import PUBLIC_COINS, PublicFacts
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.local import LOCAL, NOT_LOCAL, Local, Openness, Part
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Gap, Plan
from graphveil.privacy.promise import Guarantee, Promise
from graphveil.progress import Progress

REPORTS_ONLY = "scores are computed from reports alone, so predictions of all vertices may be shown to anybody"
WITH_LENGTHS = (
    "scores are computed from reports and from the public lengths of contact lists, so predictions of all vertices may be shown "
    "to anybody"
)
WITH_RAW_PARTS = "scores are computed from reports and from what was sent in the clear"
WHO_IS_LABELLED = "which vertices have a label that they report (train and validation)"


class LocalMethod(PrivateMethod):
    """Subclasses give ``rounds`` (from public facts) and ``train`` (from reports)."""

    lengths_public: ClassVar[bool] = True  # whether the server is told the lengths of lists, where lists are reported
    reads_everybody: ClassVar[bool] = False  # a published step that no client could run

    @property
    def supports(self) -> frozenset[Guarantee]:
        return frozenset({LOCAL})

    @abstractmethod
    def rounds(self, facts: PublicFacts, promise: Local) -> Iterable[Round]:
        """What will be asked, calibrated to the promise."""

    @abstractmethod
    def train(self, server: Server) -> Predictor:
        """Ask the rounds and learn from the answers."""

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        """What else is public, in sentences for the certificate."""
        return (WHO_IS_LABELLED,)

    def known_gaps(self, facts: PublicFacts, promise: Local) -> tuple[Gap, ...]:
        """The holes in the paper's claim that these options and this promise meet; none in sound mode."""
        return self.gaps

    def claimed(self, promise: Local) -> float | None:
        """What the paper says it costs; None: what is proved."""
        return None

    def plan(self, facts: PublicFacts, promise: Promise) -> Plan:
        if not isinstance(promise, Local):
            raise InputError(
                f"{self.name} is a local method and does not cover level {promise.level}; use --level local with "
                "--features-epsilon, --labels-epsilon and --edges-epsilon (in Python: gv.Local)"
            )
        return super().plan(facts, promise)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        assert isinstance(promise, Local)  # any other was refused by plan
        steps = tuple(round.asked(facts) for round in self.rounds(facts, promise))
        return Plan(promise, facts, steps, claim=self.claimed(promise), gaps=self.known_gaps(facts, promise))

    def validated(self, data: Any, on_bad_rows: str) -> Graph:
        graph = super().validated(data, on_bad_rows)
        if COLLECTED in graph.notes:
            raise InputError(f"this graph was {COLLECTED}; learn from the reports themselves (--reports FILE...)")
        return graph

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
        holders: np.ndarray | None = None,
    ) -> Model:
        """Collect and learn under a ``Local`` promise; ``holders`` names who keeps each vertex (default: one holder)."""
        if budget is not None or previous is not None:
            raise InputError(f"{self.name} has no curator: its reports are paid for by those who send them")
        if tape is not None:
            raise InputError(
                f"{self.name} has no curator to record: audits listen to its answers (graphveil.audit.local)"
            )
        graph = self.validated(data, on_bad_rows)
        plan = self.planned(self.facts_for(graph, promise), promise, plan)
        server = self.in_process(graph, plan, seed, holders, ledger, progress)
        return self.fit_server(server, seed=seed, notes=graph.notes).ordered_by(graph.ids).naming(graph.class_names)

    def fit_reports(
        self,
        files: Files,
        promise: Local | None = None,
        *,
        masks: Mapping[str, np.ndarray] | None = None,
        directed: bool = False,
        mean_degree: float | None = None,
        seed: int | None = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
    ) -> Model:
        """Learn from collected reports; a part that the files do not report yet takes its budget from ``promise``.

        ``masks`` over the slots are public; default: one labelled slot in eight validates, the other labelled ones train.
        ``directed``: a contact that one person lists need not list them. ``mean_degree``: contacts per person on average,
        if that is public; methods may choose their rounds by it. ``seed`` is for public coins only: the noise was drawn
        by the holders. A round that is not in the files stops with ``RoundNotAnswered``, which has the broadcast it needs.
        """
        asked = files.promise if promise is None else joined(files.promise, promise)
        masks = split_of_labelled(files.labelled) if masks is None else masks
        files = files.with_labels_of(masks["train"] | masks["calibration"])
        kinds = {kind: int(mask.sum()) for kind, mask in masks.items()}
        nodes = len(files.ids)
        kinds["other"] = nodes - sum(kinds.values())
        facts = PublicFacts(nodes, files.attributes, files.classes or 2, directed, kinds, mean_degree)
        server = Server(self.plan(facts, asked), masks, files, public_coins(seed), ledger or Ledger(), progress)
        files.check(server.rounds)
        model = self.fit_server(server, notes=files.remarks)
        return model.of(files.ids)

    def in_process(
        self,
        graph: Graph,
        plan: Plan,
        seed: int | None,
        holders: np.ndarray | None = None,
        ledger: Ledger | None = None,
        progress: Progress | None = None,
    ) -> Server:
        """A server that everybody's clients answer in this process, for research."""
        clients = self.clients(graph, plan, Noise(seed), holders)
        return Server(plan, graph.masks, clients, public_coins(seed), ledger or Ledger(), progress)

    def clients(self, graph: Graph, plan: Plan, noise: Noise, holders: np.ndarray | None = None) -> InProcess:
        """Everybody's clients in this process."""
        return InProcess(
            graph,
            [Round.of(plan.release(step.name)) for step in plan.steps],
            noise,
            holders,
            lengths_public=self.told_lengths(plan.promise),
            reads_everybody=self.reads_everybody and reports_lists(plan.promise),
        )

    def fit_server(self, server: Server, *, seed: int | None = None, notes: tuple[str, ...] = ()) -> Model:
        """Learn from a server's answers, wherever they come from."""
        predictor = self.train(server)
        public, assumptions = self.statements(server.plan)
        releases = (server.plan.release(name) for name in server.rounds)
        told = {"public": public, "assumptions": (*notes, *silent(server), *assumptions), "seed": seed}
        return self.certified(predictor, server.plan, releases, holders=server.answers.holders, **told)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        promise = plan.promise
        assert isinstance(promise, Local)  # any other was refused by plan
        everybody = self.reads_everybody and reports_lists(promise)
        if everybody:
            seen = NOT_LOCAL
        elif promise.raw:
            seen = WITH_RAW_PARTS
        else:
            seen = WITH_LENGTHS if self.told_lengths(promise) else REPORTS_ONLY
        return self.public_statements(promise), (seen,)

    def told_lengths(self, promise: Promise) -> bool:
        """Whether the server learns how long everybody's list is."""
        return self.lengths_public and reports_lists(promise)

    def facts_for(self, graph: Graph, promise: Promise) -> PublicFacts:
        """The public facts of a graph; the mean degree is one where the lengths of lists are."""
        facts = PublicFacts.of(graph)
        return replace(facts, mean_degree=graph.lists.arcs / graph.nodes) if self.told_lengths(promise) else facts

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        return ScoresPredictor.restore(config, arrays, public=True)


class RangedMethod(LocalMethod):
    """Reads attributes of the public range ``lower`` to ``upper``."""

    lower: float = 0.0
    upper: float = 1.0

    def check(self) -> None:
        super().check()
        if not self.lower < self.upper:
            raise InputError(f"{self._title}: the public range {self.lower:g}..{self.upper:g} is empty")

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        span = (
            f"every attribute lies in {self.lower:g}..{self.upper:g}; values outside are clipped before they are sent"
        )
        return (*super().public_statements(promise), span)


def joined(reported: Local, wanted: Local) -> Local:
    """The promise of reports that are there and of rounds still to come; a part that is reported cannot be asked otherwise.

    Only contact lists are asked in several rounds: their budget may be larger than what was spent so far. What was sent in the
    clear stays so, and nothing becomes raw by saying it.
    """
    budgets: dict[str, Any] = {}
    for part in Part:
        here, there = reported.budget(part), wanted.budget(part)
        still = Openness.RAW not in (here, there) and (part is Part.EDGES or part in reported.withheld)
        if not (part in wanted.withheld or there == here or still):
            raise InputError(
                f"{part}: the reports were made with {reported.asked(part)}, the flags say {wanted.asked(part)}"
            )
        budgets[part.value] = here if part in wanted.withheld else there
    answered, asked = (not isinstance(one.edges, Openness) for one in (reported, wanted))
    if answered and asked and reported.relation is not wanted.relation:
        raise InputError(
            f"edges: the reports were made under relation {reported.relation}, the flags say {wanted.relation}"
        )
    relation = wanted.relation if asked else reported.relation
    return Local(**budgets, delta=max(reported.target_delta, wanted.target_delta), relation=relation)


def split_of_labelled(labelled: np.ndarray) -> dict[str, np.ndarray]:
    """Labelled slots become train and, one in eight by public coins, calibration; the others are asked about."""
    chosen = np.random.default_rng(PUBLIC_COINS).permutation(np.flatnonzero(labelled))
    calibration = np.zeros(len(labelled), dtype=bool)
    calibration[chosen[: len(chosen) // 8]] = True
    return {"train": labelled & ~calibration, "calibration": calibration, "query": ~labelled}


def silent(server: Server) -> Iterator[str]:
    """In words, the rounds that some of those who were asked did not answer."""
    for name in server.rounds:
        asked, there = server.plan.release(name).reporters, int(server.collector.reported(name).sum())
        if 0 < there < asked:  # a round that reads everybody's lists has no reports
            yield f"round {name!r}: {there} of {asked} who were asked have answered"


def partition(nodes: int, holders: int) -> np.ndarray:
    """The (public) name of the holder of every vertex: parts of equal size (up to one), drawn by public coins."""
    numbers = holder_numbers(nodes, holders)
    width = len(str(holders))
    names = np.array([f"holder-{number + 1:0{width}d}" for number in range(holders)])
    return np.asarray(names[numbers])


def reports_lists(promise: Promise) -> bool:
    """Whether contact lists are reported (and not sent in the clear, or withheld)."""
    return isinstance(promise, Local) and not isinstance(promise.edges, Openness)


def public_coins(seed: int | None) -> np.random.Generator:
    """The stream of public randomness of a run."""
    return np.random.default_rng(PUBLIC_COINS if seed is None else [PUBLIC_COINS, seed])
