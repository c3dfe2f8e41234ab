"""Randomised response on contact lists, then LPGNN: the baseline of GraphPrivatizer."""

from __future__ import annotations

from typing import Any

from graphveil.errors import InputError
from graphveil.exchange.randomizers import EdgeListResponse, TwoHopResponse
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.methods.card import card, gaps
from graphveil.methods.common.propagated_method import PropagatedMethod, PublishedListMethod
from graphveil.methods.options import Count
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Part


class RrEdges(PropagatedMethod):
    """Every bit of everybody's contact list flips with probability 1/(e^(eps/2) + 1); features and labels as in LPGNN.

    The bits of all n slots flip, with half of the edge budget each, because an exchange of one contact is two bits. With raw
    edges this is LPGNN.

    Args:
        max_edges: refuse to make more reported entries than this (in expectation n^2/(e^(eps/2) + 1)).
    """

    card = card("rr-edges")
    lengths_public = False

    max_edges: Count = 50_000_000

    def rounds_on_lists(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        budget = self.list_budget(promise)
        lists = EdgeListResponse(budget / 2, facts.nodes)
        expected = lists.flip * facts.nodes**2
        if expected > self.max_edges:
            raise InputError(
                f"rr-edges would report about {expected:.2g} entries for {facts.nodes} vertices at edge epsilon {budget:g}, "
                f"more than max_edges={self.max_edges:g}: use a larger epsilon, or 'local' or 'graph-privatizer'"
            )
        return (Round("edges", Part.EDGES, lists),)

    def reported_lists(self, server: Server, rows: Any) -> Contacts:
        lists: Contacts = server.ask("edges")
        return lists


class PublishedRrEdges(PublishedListMethod):
    """Only the bits within two hops flip, with the whole budget each: no client could do that and no epsilon bounds it.

    Args:
        max_edges: refuse to make more entries within two hops than this.
    """

    card = RrEdges.card
    gaps = gaps("rr-edges")
    lengths_public = False
    reads_everybody = True

    max_edges: Count = 50_000_000

    def rounds_on_lists(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        response = TwoHopResponse(self.list_budget(promise), None, self.max_edges)
        return (Round("edges", Part.EDGES, response, "contacts of contacts"),)

    def claimed(self, promise: Local) -> float:
        return promise.epsilon

    def reported_lists(self, server: Server, rows: Any) -> Contacts:
        return server.ask_everybody("edges")
