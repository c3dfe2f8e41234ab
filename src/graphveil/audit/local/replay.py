"""Does the collector read reports only? The same run on another graph, with the reports of the first.

Everything that a local method computes from reports and from what is declared raw is post-processing, so with equal reports and
equal raw parts every broadcast, every score and the certificate come out equal, whatever else the graph holds. The other graph
differs in all that must not be seen: rows of features are exchanged, labels are other ones, contacts are strangers; lists keep
their lengths where these are public and change them where not. Whatever still differs was read past the randomizers.
Rounds that read everybody's lists (published modes, ``Session.ask_everybody``) have no finite epsilon anyway: no replay.
Tests: ``tests/audit/test_local_replay.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphveil.audit.central.conformance import Failure
from graphveil.exchange.certificate import Spent
from graphveil.exchange.report import digest_of
from graphveil.graph import Graph, Lists
from graphveil.graph.validate import validate
from graphveil.methods.local_method import LocalMethod, Session
from graphveil.privacy.local import Local, Openness, Part

LEAK = "leak"


@dataclass
class Heard:
    """A run, its sessions, and what each round heard, in the order of the rounds."""

    model: Any = None
    sessions: list[Session] = field(default_factory=list)
    broadcasts: dict[str, Any] = field(default_factory=dict)

    @property
    def session(self) -> Session:
        return self.sessions[0]


@contextmanager
def _training_with(method: LocalMethod, prepare: Callable[[Session], None]) -> Iterator[None]:
    """While this lasts, ``prepare`` sees every session before the method learns from it."""
    train = method.train

    def prepared(session: Session) -> Any:
        prepare(session)
        return train(session)

    method.train = prepared  # type: ignore[method-assign]
    try:
        yield
    finally:
        del method.train


def listen(method: LocalMethod, data: Any, promise: Local, seed: int) -> Heard:
    """Run the method and keep its session and what each round heard."""
    heard = Heard()

    def prepare(session: Session) -> None:
        heard.sessions.append(session)
        for verb in ("ask", "ask_everybody"):
            original = getattr(session, verb)

            def asked(name: str, broadcast: Any = None, original: Any = original) -> Any:
                heard.broadcasts[name] = np.copy(broadcast) if isinstance(broadcast, np.ndarray) else broadcast
                return original(name, broadcast)

            setattr(session, verb, asked)

    with _training_with(method, prepare):
        heard.model = method.fit(data, promise, seed=seed)
    return heard


def replay(method: LocalMethod, data: Any, promise: Local, seed: int, heard: Heard) -> list[Failure]:
    """The run ``heard`` again on :func:`unseen_changed`, with its reports; what came out differently."""
    if heard.session.everybody is not None:
        return []
    graph = data if isinstance(data, Graph) else validate(data)
    told = method.lengths_public and not any(_hides_lengths(round) for round in heard.session.collector.rounds.values())
    other = unseen_changed(graph, promise, lengths_public=told)
    failures: list[Failure] = []
    asked: list[str] = []

    def prepare(session: Session) -> None:
        if session.collector.rounds != heard.session.collector.rounds:
            failures.append(Failure(LEAK, "rounds", "what is asked depends on more than public facts"))
        session.collector = heard.session.collector

        def ask(name: str, broadcast: Any = None) -> Any:
            round = session.collector.rounds[name]
            session.ledger.append(Spent.of(round, session.reporters(round)))  # type: ignore[arg-type]
            asked.append(name)
            if name not in heard.broadcasts or digest_of(broadcast) != digest_of(heard.broadcasts[name]):
                failures.append(Failure(LEAK, name, "with equal reports, another graph gives another broadcast"))
            return session.collector.values(name)

        session.ask = ask  # type: ignore[method-assign]

    with _training_with(method, prepare):
        model = method.fit(other, promise, seed=seed)
    if asked != list(heard.broadcasts):
        failures.append(Failure(LEAK, "rounds", "with equal reports, another graph gives another order of rounds"))
    if not _same_predictor(model.predictor, heard.model.predictor):
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
        labels = np.where(
            labels >= 0, (labels + 1 + np.arange(nodes) % max(graph.classes - 1, 1)) % graph.classes, labels
        )
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


def _hides_lengths(round: Any) -> bool:
    return round.part is Part.EDGES and getattr(round.randomizer, "lengths", "public") == "hidden"


def _same_predictor(one: Any, other: Any) -> bool:
    arrays = [predictor.arrays() for predictor in (one, other)]
    same = all(np.array_equal(arrays[0][name], arrays[1].get(name)) for name in arrays[0])
    return same and one.config() == other.config()
