"""The baseline as published: only bits within two hops flip, which no client could do and no epsilon bounds."""

from __future__ import annotations

from typing import Any, Literal

from graphveil.exchange.randomizers import TwoHopResponse
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.methods.card import gaps
from graphveil.methods.common.propagated_method import PAPER_SCALE, PaperLoss, PropagatedMethod
from graphveil.methods.options import Count
from graphveil.methods.rr_edges import RrEdges
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Part


class PublishedRrEdges(PropagatedMethod):
    """Only the bits within two hops flip, with the whole budget each; who that is depends on the edges.

    Args:
        max_edges: refuse to make more entries within two hops than this.
    """

    card = RrEdges.card
    gaps = gaps("rr-edges")
    lengths_public = False
    reads_everybody = True
    input_scale = PAPER_SCALE

    max_edges: Count = 50_000_000
    loss: PaperLoss = "drop"
    mode: Literal["published"] = "published"

    def rounds_on_lists(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        response = TwoHopResponse(self.list_budget(promise), None, self.max_edges)
        return (Round("edges", Part.EDGES, response, "contacts of contacts"),)

    def claimed(self, promise: Local) -> float:
        return promise.epsilon

    def reported_lists(self, server: Server, rows: Any) -> Contacts:
        return server.ask_everybody("edges")
