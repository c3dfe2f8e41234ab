"""Randomised response on contact lists, then LPGNN: the baseline of GraphPrivatizer."""

from __future__ import annotations

from typing import Literal

from graphveil.errors import InputError
from graphveil.exchange.randomizers import EdgeListResponse, TwoHopResponse
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server as Session
from graphveil.methods.card import Card
from graphveil.methods.common.backbone_training import NoisyLabels
from graphveil.methods.common.propagated_training import (
    Candidate,
    PropagatedTraining,
    check_range,
    heard_rows,
    range_statement,
    vertex_rounds,
)
from graphveil.methods.graph_privatizer.published import reported_arcs
from graphveil.methods.local_method import LocalMethod, ScoresPredictor
from graphveil.methods.lpgnn import learn_on_public_edges
from graphveil.methods.options import Count, Fraction, Natural, NonNegative, Positive
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.plan import Gap

GAPS = (
    Gap(
        "G4",
        "only people within two hops can be reported, and who they are is decided by edges, other people's among them: "
        "epsilon is infinite, and no client knows this list",
        check="exact ratio",
        release="edges",
    ),
    Gap(
        "G5",
        "both ends report an undirected edge: it would cost 2 eps even with lists of everybody",
        check="exact ratio",
        release="edges",
    ),
    Gap(
        "G6",
        "exchanging one contact for another flips two bits: eps per bit is 2 eps per exchange, not the other way round",
        check="exact ratio",
        release="edges",
    ),
)


class RrEdges(LocalMethod):
    """Every bit of everybody's contact list flips with probability 1/(e^eps + 1); features and labels as in LPGNN.

    ``sound``: the bits of all n slots flip, with half of the edge budget each, because an exchange of one contact is two bits.
    ``published``: only the bits within two hops flip, with the whole budget; who that is depends on the edges, so there is no
    finite epsilon. With raw edges both are LPGNN.

    Args:
        max_edges: refuse to make more reported entries than this (in expectation n^2/(e^(eps/2) + 1) in sound mode).
        backbone, feature_steps, label_steps, loss, lower, upper, compress, hidden, epochs, learning_rate, weight_decay, dropout:
            as for lpgnn.
        mode: ``sound`` or ``published``.
    """

    card = Card(
        name="rr-edges",
        summary="LPGNN on contact lists whose bits were flipped by randomised response",
        paper="baseline of GraphPrivatizer (anonymous)",
        trust="nobody in sound mode; the published one reads contacts of contacts",
        protects="features, label and one contact of one vertex (sound mode)",
        public="the range of the attributes, who is labelled",
        formula="bit XOR Bernoulli(1/(e^eps + 1))",
        when="as a baseline; it fills sparse lists with strangers",
    )
    gaps = GAPS
    lengths_public = False
    reads_everybody = True

    max_edges: Count = 50_000_000
    backbone: Literal["gcn", "sage", "gat", "gatv2", "transformer", "graphconv", "cheb", "sgc", "tag"] = "gcn"
    feature_steps: Natural = 16
    label_steps: Natural = 2
    loss: Literal["auto", "drop", "forward", "plain"] = "auto"
    lower: NonNegative = 0.0
    upper: NonNegative = 1.0
    compress: Count = 512
    hidden: Count = 64
    epochs: Count = 100
    learning_rate: Positive = 1e-2
    weight_decay: NonNegative = 1e-3
    dropout: Fraction = 0.5
    mode: Literal["sound", "published"] = "sound"

    def check(self) -> None:
        super().check()
        check_range(self)
        _ = PropagatedTraining.of(self).trainings

    def rounds(self, facts: PublicFacts, promise: Local, mean_degree: float = 0.0) -> tuple[Round, ...]:
        found = vertex_rounds(self, facts, promise)
        if promise.edges is Openness.WITHHELD:
            raise InputError("rr-edges needs edges: give --edges-epsilon an epsilon (or raw)")
        if promise.edges is Openness.RAW:
            return tuple(found)
        budget = promise.share(Part.EDGES)
        if self.mode == "published":
            response = TwoHopResponse(budget, None, self.max_edges)
            return (*found, Round("edges", Part.EDGES, response, "contacts of contacts"))
        lists = EdgeListResponse(budget / 2, facts.nodes)
        expected = lists.flip * facts.nodes**2
        if expected > self.max_edges:
            raise InputError(
                f"rr-edges would report about {expected:.2g} entries for {facts.nodes} vertices at edge epsilon {budget:g}, "
                f"more than max_edges={self.max_edges:g}: use a larger epsilon, or 'local' or 'graph-privatizer'"
            )
        return (*found, Round("edges", Part.EDGES, lists))

    def known_gaps(self, promise: Local) -> tuple[Gap, ...]:
        """All of them are about private edges."""
        return () if promise.edges is Openness.RAW else super().known_gaps(promise)

    def claimed(self, promise: Local) -> float:
        return promise.epsilon

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        return (*super().public_statements(promise), range_statement(self))

    def train(self, session: Session) -> ScoresPredictor:
        training = PropagatedTraining.of(self)
        if session.raw_edges is not None:
            return learn_on_public_edges(training, session)
        rows, labels = heard_rows(session), NoisyLabels.heard(session)
        lists = session.ask_everybody("edges") if self.mode == "published" else session.ask("edges")
        arcs = reported_arcs(lists)
        inputs = training.propagated(rows, arcs, session.facts.nodes, session.coins)
        return training.fit(session, {"graph": Candidate(inputs, arcs)}, labels)
