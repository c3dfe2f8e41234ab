"""GraphPrivatizer (paper 004): LPGNN whose contact lists are randomised, too."""

from __future__ import annotations

from typing import Literal

from graphveil.errors import InputError
from graphveil.exchange.randomizers.replacement import Metric, NeighbourReplacement, Strategy
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server as Session
from graphveil.methods.card import Card
from graphveil.methods.common.propagated_training import (
    PropagatedTraining,
    check_range,
    range_statement,
    vertex_rounds,
)
from graphveil.methods.graph_privatizer import buckets as sound
from graphveil.methods.graph_privatizer import published as published
from graphveil.methods.local_method import LocalMethod, ScoresPredictor
from graphveil.methods.lpgnn import learn_on_public_edges
from graphveil.methods.options import Count, Fraction, Natural, NonNegative, Positive
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import DEGREES, Local, Openness, Part
from graphveil.privacy.plan import Gap


class GraphPrivatizer(LocalMethod):
    """Contacts are replaced by similar vertices; features by the multi-bit mechanism, labels by k-RR.

    ``published``: contact u of v becomes u' among u's own contacts with s_alpha(u, u') >= threshold in the noisy features,

        P(u -> u) = e^eps/(e^eps + d - 1),   P(u -> u') = 1/(e^eps + d - 1),

    where candidates are all such contacts (``strategy="t"``) or the most similar one (``"m"``). This reads other people's
    lists, so no client runs it, and it has no finite epsilon (gaps G1 to G5). ``sound``: who is similar is decided by public
    buckets, made of released labels only; the owner of an edge reports the bucket of its contact by k-RR and then any member.
    With raw edges both modes are LPGNN.

    Args:
        strategy, metric, alpha, threshold: of the published replacement.
        mechanism: ``bucket`` (the default), ``krr`` (every slot is a bucket) or ``mean`` (the noisy mean of the released labels
            of one's contacts; needs a delta): sound mode.
        edge_rounds: 1, or 2: half of the edge budget again on buckets (or rows) that were inferred from the first round.
        backbone, feature_steps, label_steps, loss, lower, upper, compress, hidden, epochs, learning_rate, weight_decay, dropout:
            as for lpgnn.
        mode: ``sound`` or ``published``.
    """

    card = Card(
        name="graph-privatizer",
        summary="LPGNN with contacts replaced by similar ones: owner-bucket response, or the paper's leaky replacement",
        paper="GraphPrivatizer: Improved Structural Differential Privacy for Graph Neural Networks (anonymous)",
        trust="nobody in sound mode; the published replacement reads everybody's lists",
        protects="features and label of one vertex; sound mode: one edge that its owner reports",
        public="the range of the attributes, who is labelled, how many contacts everybody has",
        formula="multi-bit(x), k-RR(y), k-RR(bucket of a contact) then a uniform member",
        when="to compare with the paper; with private edges 'local' is more accurate",
    )
    gaps = published.GAPS
    reads_everybody = True

    strategy: Literal["t", "m"] = "t"
    metric: Literal["cosine", "euclidean"] = "cosine"
    alpha: NonNegative = 0.0
    threshold: NonNegative = 0.0
    mechanism: Literal["bucket", "krr", "mean"] = "bucket"
    edge_rounds: Count = 1
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
        for option, value, known in (
            ("strategy", self.strategy, tuple(Strategy)),
            ("metric", self.metric, tuple(Metric)),
            ("mechanism", self.mechanism, sound.MECHANISMS),
            ("edge_rounds", self.edge_rounds, (1, 2)),
        ):
            if value not in known:
                raise InputError(f"graph-privatizer: {option} is {' or '.join(map(str, known))}, got {value!r}")
        if self.alpha > 1:
            raise InputError(f"graph-privatizer: alpha is a share between 0 and 1, got {self.alpha:g}")

    def rounds(self, facts: PublicFacts, promise: Local, mean_degree: float = 0.0) -> tuple[Round, ...]:
        found = vertex_rounds(self, facts, promise)
        if promise.edges is Openness.WITHHELD:
            raise InputError("graph-privatizer needs edges: give --edges-epsilon an epsilon (or raw)")
        if promise.edges is Openness.RAW:
            return tuple(found)
        if self.mode == "sound":
            return (*found, *sound.edge_rounds(self.mechanism, self.edge_rounds, facts, promise))
        replacement = NeighbourReplacement(
            promise.share(Part.EDGES), None, Strategy(self.strategy), Metric(self.metric), self.alpha, self.threshold
        )
        return (*found, Round("edges", Part.EDGES, replacement, "the noisy features and other people's lists"))

    def known_gaps(self, promise: Local) -> tuple[Gap, ...]:
        """All of them are about private edges."""
        return () if promise.edges is Openness.RAW else super().known_gaps(promise)

    def claimed(self, promise: Local) -> float:
        """Theorem 4.4: the sum of the three; raw edges are not counted."""
        return promise.epsilon

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        found = (*super().public_statements(promise), range_statement(self))
        if promise.edges is Openness.RAW:
            return found
        return (*found, DEGREES, *(sound.statements(self.mechanism) if self.mode == "sound" else ()))

    def train(self, session: Session) -> ScoresPredictor:
        training = PropagatedTraining.of(self)
        if session.raw_edges is not None:
            return learn_on_public_edges(training, session)
        if self.mode == "published":
            return published.learn(training, session)
        return sound.learn(training, session, self.mechanism)
