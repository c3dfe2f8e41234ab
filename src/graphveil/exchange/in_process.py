"""Everybody in one process, for research: the clients of every holder, behind the interface that a server asks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.errors import DataWarning, InputError
from graphveil.exchange.client import NO_LABEL, Client
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise

if TYPE_CHECKING:
    from graphveil.graph import Graph


class InProcess:
    """The clients of a graph, one per holder; ``holders`` names who keeps each vertex (default: one holder).

    ``lengths_public``: whether the lengths of contact lists are told. ``reads_everybody``: whether rounds that no client
    could answer are allowed: published modes only.
    """

    def __init__(
        self,
        graph: Graph,
        rounds: Iterable[Round],
        noise: Noise,
        holders: np.ndarray | None = None,
        *,
        lengths_public: bool = False,
        reads_everybody: bool = False,
    ) -> None:
        self._graph, self._noise = graph, noise
        self._labels = np.where(graph.masks["train"] | graph.masks["calibration"], graph.labels, NO_LABEL)
        senders, receivers = graph.lists.edge_index()
        order = np.lexsort((receivers, senders))
        self._lists = Contacts.of_pairs(senders[order], receivers[order], graph.nodes)  # everybody's own
        self.lengths_public, self.reads_everybody = lengths_public, reads_everybody
        self.clients = list(self._clients(tuple(rounds), holders))

    @property
    def holders(self) -> Mapping[str, int]:
        return {client.holder: len(client.ids) for client in self.clients}

    def answer(self, round: Round, broadcast: Any) -> list[Report]:
        reports = [client.report(round.name, broadcast) for client in self.clients]
        clipped = sum(client.clipped for client in self.clients)
        if clipped and round.part is Part.FEATURES:
            what = "some attributes lay outside the public range and were clipped"
            warnings.warn(f"{what} (how many stays with their owners)", DataWarning, stacklevel=3)
        return reports

    def answer_with_everybody(self, round: Round, broadcast: Any) -> Contacts:
        reads: Any = round.randomizer
        found: Contacts = replace(reads, lists=self._lists).randomize(self._lists, broadcast, self._noise)
        return found

    def in_the_clear(self, part: Part) -> Any:
        if part is Part.FEATURES:
            rows: Any = self._graph.rows
            return rows.values
        return self._labels if part is Part.LABELS else self._graph.lists.edge_index()

    def lengths(self) -> np.ndarray | None:
        return self._graph.lists.out_degrees if self.lengths_public else None

    @property
    def everybodys_lists(self) -> Contacts | None:
        """All contact lists, for rounds that read them at once; None where no round may."""
        return self._lists if self.reads_everybody else None

    def _clients(self, rounds: tuple[Round, ...], holders: np.ndarray | None) -> Iterable[Client]:
        graph = self._graph
        names = np.full(graph.nodes, "all") if holders is None else np.asarray(holders).astype(str)
        if names.shape != (graph.nodes,):
            raise InputError(f"holders names a holder for each of {graph.nodes} vertices, got shape {names.shape}")
        for name in np.unique(names):
            ids = np.flatnonzero(names == name)
            own = self._lists if len(ids) == graph.nodes else Contacts.of([self._lists[vertex] for vertex in ids])
            rows: Any = graph.rows.take(ids)
            records = {Part.FEATURES: rows.values, Part.LABELS: self._labels[ids], Part.EDGES: own}
            yield Client(ids, records, rounds, self._noise, str(name))
