"""Does the collector read reports only? The same run on another graph, with the reports of the first.

Everything that a local method computes from reports and from what is declared raw is post-processing, so with equal reports and
equal raw parts every broadcast, every score and the certificate come out equal, whatever else the graph holds. The other graph
differs in all that must not be seen: rows of features are exchanged, labels are other ones, contacts are strangers; lists keep
their lengths where these are public and change them where not. Whatever still differs was read past the randomizers. Nothing is
patched: a server is given answers that listen, and then answers that repeat.
Rounds that read everybody's lists (published modes, ``Server.ask_everybody``) have no finite epsilon anyway: no replay.
Tests: ``tests/audit/test_local_replay.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphveil.audit.result import Failure
from graphveil.exchange.in_process import InProcess
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.report import Report, digest_of
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.graph import Graph, Lists
from graphveil.methods.local_method import LocalMethod, public_coins
from graphveil.methods.model import Model
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.noise import Noise

LEAK = "leak"


@dataclass
class Passing:
    """Answers that pass on what is not a report."""

    answers: InProcess

    @property
    def holders(self) -> Mapping[str, int]:
        return self.answers.holders

    @property
    def reads_everybody(self) -> bool:
        return self.answers.reads_everybody

    def answer_with_everybody(self, round: Round, broadcast: Any) -> Contacts:
        return self.answers.answer_with_everybody(round, broadcast)

    def in_the_clear(self, part: Part) -> Any:
        return self.answers.in_the_clear(part)

    def lengths(self) -> np.ndarray | None:
        return self.answers.lengths()


@dataclass
class Listening(Passing):
    """Passes on what everybody says, and keeps what each round heard and what came back."""

    broadcasts: dict[str, Any] = field(default_factory=dict)
    reports: dict[str, list[Report]] = field(default_factory=dict)

    def answer(self, round: Round, broadcast: Any) -> list[Report]:
        self.broadcasts[round.name] = copy(broadcast)
        self.reports[round.name] = self.answers.answer(round, broadcast)
        return self.reports[round.name]

    def answer_with_everybody(self, round: Round, broadcast: Any) -> Contacts:
        self.broadcasts[round.name] = copy(broadcast)
        return super().answer_with_everybody(round, broadcast)


@dataclass
class Repeating(Passing):
    """The reports of an earlier run, with the raw parts of this graph; notes where the server asks for something else."""

    earlier: Listening
    asked: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def answer(self, round: Round, broadcast: Any) -> list[Report]:
        self.asked.append(round.name)
        heard = self.earlier.broadcasts
        if round.name not in heard or digest_of(broadcast) != digest_of(heard[round.name]):
            self.failures.append(Failure(LEAK, round.name, "with equal reports, another graph gives another broadcast"))
        return self.earlier.reports.get(round.name, [])


@dataclass(frozen=True)
class Heard:
    """A run: its model, its server, and what was asked and answered."""

    model: Model
    server: Server
    answers: Listening

    @property
    def clients(self) -> InProcess:
        return self.answers.answers


def listen(method: LocalMethod, data: Any, promise: Local, seed: int) -> Heard:
    """Run the method and keep its server and what each round heard."""
    graph = method.validated(data, "raise")
    plan = method.plan(method.facts_for(graph, promise), promise)
    answers = Listening(method.clients(graph, plan, Noise(seed)))
    server = Server(plan, graph.masks, answers, public_coins(seed))
    return Heard(method.fit_server(server, seed=seed, notes=graph.notes), server, answers)


def replay(method: LocalMethod, data: Any, promise: Local, seed: int, heard: Heard) -> list[Failure]:
    """The run ``heard`` again on :func:`unseen_changed`, with its reports; what came out differently."""
    if heard.clients.reads_everybody:
        return []
    edges = [round.randomizer for round in heard.server.rounds.values() if round.part is Part.EDGES]
    told = method.lengths_public and not any(getattr(one, "lengths", "public") == "hidden" for one in edges)
    other = unseen_changed(method.validated(data, "raise"), promise, lengths_public=told)
    plan = method.plan(method.facts_for(other, promise), promise)
    if plan.steps != heard.server.plan.steps:
        return [Failure(LEAK, "rounds", "what is asked depends on more than public facts")]
    answers = Repeating(method.clients(other, plan, Noise(seed)), heard.answers)
    server = Server(plan, other.masks, answers, public_coins(seed))
    model = method.fit_server(server, seed=seed, notes=other.notes)
    failures = answers.failures
    if answers.asked != list(heard.answers.broadcasts):
        failures.append(Failure(LEAK, "rounds", "with equal reports, another graph gives another order of rounds"))
    predictors: list[Any] = [made.predictor for made in (model, heard.model)]
    one, other_one = predictors
    arrays, before = (made.arrays() | {"public scores": made.public_logits(other.nodes)} for made in (one, other_one))
    same = all(name in before and np.array_equal(arrays[name], before[name]) for name in arrays)
    if not same or one.config() != other_one.config():
        failures.append(Failure(LEAK, "model", "with equal reports, another graph gives other scores"))
    if model.certificate != heard.model.certificate:
        failures.append(Failure(LEAK, "certificate", "with equal reports, another graph gives another certificate"))
    return failures


def unseen_changed(graph: Graph, promise: Local, lengths_public: bool) -> Graph:
    """The same raw parts and public facts, and other values in everything that is randomised or withheld."""
    nodes = graph.nodes
    rows, labels, lists = graph.rows, graph.labels, graph.lists
    if Part.FEATURES not in promise.raw:
        rows = rows.take(np.roll(np.arange(nodes), 1))
    if Part.LABELS not in promise.raw:
        others = (labels + 1 + np.arange(nodes) % max(graph.classes - 1, 1)) % graph.classes
        labels = np.where(labels >= 0, others, labels)
    if Part.EDGES not in promise.raw:
        reported = not isinstance(promise.edges, Openness)
        lists = _other_lists(lists, keep_lengths=lengths_public and reported)
    return replace(graph, rows=rows, labels=labels, lists=lists)


def _other_lists(lists: Lists, keep_lengths: bool) -> Lists:
    """Every contact becomes another vertex, a fixed number of slots further on; a third is dropped unless lengths are kept."""
    senders, receivers = lists.edge_index()
    nodes = lists.nodes
    if nodes < 3:
        return lists
    place = (receivers - senders - 1) % nodes  # 0 .. nodes - 2: a numbering of everybody else
    moved = (senders + 1 + (place + nodes // 3 + 1) % (nodes - 1)) % nodes
    kept = np.ones(len(senders), dtype=bool) if keep_lengths else (senders + receivers) % 3 > 0
    return Lists.from_edge_index(np.stack([senders, moved])[:, kept], nodes)
