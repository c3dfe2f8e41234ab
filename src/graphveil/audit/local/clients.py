"""Does a client send what its randomizers draw, of its own record, and nothing else?

Exact ratios are about randomizers, a replay is about the server; between them stands the client, which chooses whom it reports
and what it gives to the randomizer. Two checks, both on clients as they are.

*Neighbouring records.* The clients of several holders answer every round, with reports that their randomizers can have made; then
one vertex has another record in one part, and they answer again with the same coins and broadcasts. A round of another part must
be answered in the same words. In a round of this part the same people report, lists of public length keep it, and everybody
else's report is the same. The vertex that changes is the last one that the round asks, so that its record cannot shift the coins
of others. Exact: no false alarms.

*Whole reports.* A client that holds many copies of the two worst records answers once; its reports must follow the densities
whose ratio is bounded by epsilon (``exact_ratios.py``), so what is bounded is the ratio of what was sent.
Tests: ``tests/audit/test_clients.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphveil.audit.result import Failure
from graphveil.exchange.client import Client
from graphveil.exchange.collector import Collector
from graphveil.exchange.randomizers import BucketResponse, EdgeListResponse
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.randomizers.categories import owns
from graphveil.exchange.randomizers.replacement import ReadsEverybody
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.graph import Graph, Lists
from graphveil.methods.local_method import LocalMethod
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Plan

CHECK = "client"
SAME_COINS, FEWER, SMALL = 24, 4, 500  # answers that are compared, each with other coins; fewer above so many vertices
HOLDERS = 4


def reports_of_a_client(
    round: Round, records: tuple[Any, Any], draws: int, broadcast: Any, noise: Noise
) -> tuple[list[Any], list[Any]]:
    """What one client with ``draws`` copies of either record sends for them."""
    copies = [record for record in records for _ in range(draws)]
    held = Contacts.of(copies) if round.part is Part.EDGES else np.array(copies)
    randomizer: Any = round.randomizer
    if isinstance(randomizer, BucketResponse):  # which ends report is decided by slots, which these copies do not have
        randomizer = replace(randomizer, owned=False)
    client = Client(np.arange(2 * draws), {round.part: held}, [replace(round, randomizer=randomizer)], noise)
    report = client.report(round.name, broadcast)
    rows = [report.row(number) for number in range(len(report))]
    first = int(np.count_nonzero(report.ids < draws))
    return rows[:first], rows[first:]


def on_neighbouring_records(
    method: LocalMethod, graph: Graph, plan: Plan, broadcasts: Mapping[str, Any], seed: int
) -> Iterator[Failure]:
    """What the clients' answers show besides each vertex's own randomised record."""
    hidden = any(
        getattr(step.mechanism, "lengths", "public") == "hidden"
        for step in (plan.release(one.name) for one in plan.steps)
    )
    for name, broadcast in broadcasts.items():
        asked = Round.of(plan.release(name))
        if isinstance(asked.randomizer, ReadsEverybody):
            continue
        for coins in range(seed, seed + (SAME_COINS if graph.nodes <= SMALL else FEWER)):
            before = _answers(method, graph, plan, asked, broadcast, coins)
            if refused := _refused(asked, before, graph.nodes):
                yield Failure(CHECK, name, f"clients send what their randomizer cannot have made: {refused}")
                return
            for part in Part:
                for vertex, other in _neighbours(graph, asked, part, hidden):
                    after = _answers(method, other, plan, asked, broadcast, coins)
                    found = _difference(asked, before, after, vertex if part is asked.part else None)
                    if found:
                        yield Failure(CHECK, name, f"{found} when the {part} of slot {vertex} change, with equal coins")
                        return


def _answers(method: LocalMethod, graph: Graph, plan: Plan, asked: Round, broadcast: Any, coins: int) -> list[Report]:
    """Everybody's reports: several holders, fresh clients, these coins."""
    holders = np.arange(graph.nodes) * HOLDERS // graph.nodes
    return method.clients(graph, plan, Noise(coins), holders).answer(asked, broadcast)


def _refused(asked: Round, reports: list[Report], slots: int) -> str:
    """What a collector has against these reports, order within a list included."""
    collector = Collector([asked], slots)
    for report in reports:
        collector.accept(report)
    return str(collector.refused[0]) if collector.refused else ""


def _difference(asked: Round, before: list[Report], after: list[Report], changed: int | None) -> str:
    """What differs between two answers, the report of ``changed`` aside; empty if nothing does."""
    if [(r.round, r.holder) for r in before] != [(r.round, r.holder) for r in after]:
        return "other holders answer"
    for here, there in zip(before, after, strict=True):
        if not np.array_equal(here.ids, there.ids):
            return "other people report"
        for number, vertex in enumerate(here.ids.tolist()):
            one, other = (_row(report, number) for report in (here, there))
            told = not isinstance(asked.randomizer, EdgeListResponse)  # noisy bits hide the length of a list
            if told and one.shape != other.shape:
                return "a report has another length"
            if vertex != changed and not np.array_equal(one, other):
                return (
                    "somebody else's report is another"
                    if changed is not None
                    else "a report on something else is another"
                )
    return ""


def _row(report: Report, number: int) -> np.ndarray:
    """One vertex's report; the order within a list means nothing."""
    row = np.asarray(report.row(number))
    return np.sort(row) if isinstance(report.values, Contacts) else row


def _neighbours(graph: Graph, asked: Round, part: Part, hidden: bool) -> Iterator[tuple[int, Graph]]:
    """Graphs in which one vertex has another record of this part: another class, the shortest or longest row, one contact.

    Where lengths of lists are ``hidden``, also one contact less.
    """
    labelled = (graph.masks["train"] | graph.masks["calibration"]) & (graph.labels >= 0)
    reporting = np.flatnonzero(labelled) if Part.LABELS in (part, asked.part) else np.arange(graph.nodes)
    last = int(reporting[-1])
    if part is Part.LABELS:
        for label in range(graph.classes):
            if label != graph.labels[last]:
                yield last, replace(graph, labels=np.where(np.arange(graph.nodes) == last, label, graph.labels))
    elif part is Part.FEATURES:
        lengths = graph.rows.squared_norms().numpy()
        for row in (int(lengths.argmin()), int(lengths.argmax())):
            chosen = np.where(np.arange(graph.nodes) == last, row, np.arange(graph.nodes))
            yield last, replace(graph, rows=graph.rows.take(chosen))
    else:
        yield from _exchanged(graph, getattr(asked.randomizer, "owned", False))
        if hidden:
            yield _dropped(graph, reporting)


def _dropped(graph: Graph, reporting: np.ndarray) -> tuple[int, Graph]:
    """The one of those who report with the shortest list (that is not empty) loses its first contact."""
    senders, receivers = graph.lists.edge_index()
    lengths = np.bincount(senders, minlength=graph.nodes)
    some = reporting[lengths[reporting] > 0]
    vertex = int(some[lengths[some].argmin()])
    kept = np.arange(len(senders)) != np.flatnonzero(senders == vertex)[0]
    return vertex, replace(graph, lists=Lists.from_edge_index(np.stack([senders[kept], receivers[kept]]), graph.nodes))


def _exchanged(graph: Graph, owned: bool) -> Iterator[tuple[int, Graph]]:
    """The last vertex that can exchanges one of its contacts for a stranger; one that it owns for another, where these count."""
    senders, receivers = graph.lists.edge_index()
    for vertex in range(graph.nodes - 1, -1, -1):
        contacts = receivers[senders == vertex]
        strangers = np.setdiff1d(np.arange(graph.nodes), [*contacts, vertex])
        if owned:
            contacts, strangers = (those[owns(np.full(len(those), vertex), those)] for those in (contacts, strangers))
        if len(contacts) and len(strangers):
            swapped = np.where((senders == vertex) & (receivers == contacts[0]), strangers[-1], receivers)
            yield vertex, replace(graph, lists=Lists.from_edge_index(np.stack([senders, swapped]), graph.nodes))
            return
