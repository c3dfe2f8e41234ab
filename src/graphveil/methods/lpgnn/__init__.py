"""LPGNN (Sajadmanesh and Gatica-Perez 2021): multi-bit features, randomised labels, public edges; KProp and Drop."""

from __future__ import annotations

from typing import Literal

from graphveil.errors import InputError
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
from graphveil.methods.local_method import LocalMethod, ScoresPredictor
from graphveil.methods.options import Count, Fraction, Natural, NonNegative, Positive
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness
from graphveil.privacy.noise import Array

FEATURES = ("reports", "random")


class Lpgnn(LocalMethod):
    """Noisy features are averaged over the public graph (KProp), the loss knows the noise of the labels (Drop).

    p(y|x') = softmax(GNN(KProp(x'))), p(y'|x') = p(y|x') T, and with K_y > 0 both p(y'|x') and the one-hot reports are
    propagated K_y steps more: cross-entropy between softmax(KProp(p')) and argmax KProp(reports). The epoch is kept whose
    forward-corrected loss on the *released* validation labels is least; nothing here sees a clean label. ``published`` is
    the paper's Drop loss on the same reports: its claim needs nothing but public ranges, so the certificate holds.

    Args:
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        feature_steps, label_steps: K_x and K_y.
        loss: ``drop`` (the paper), ``forward`` (no label propagation; better on dense graphs) or ``auto``: start with both
            and keep the one with the lesser loss on the released validation labels (published: Drop).
        features: ``reports``, or ``random``: public random numbers in their place, while the promise withholds features; on
            public edges the network learns as much from these (the propagated noise says where in the graph one is).
        lower, upper: the public range of every attribute.
        compress: wider reports are multiplied by a public random matrix of so many columns (post-processing: speed).
        hidden, epochs, learning_rate, weight_decay, dropout: of training.
        mode: ``sound`` or ``published``.
    """

    card = Card(
        name="lpgnn",
        summary="multi-bit features and randomised labels, denoised by propagation over public edges",
        paper="Sajadmanesh and Gatica-Perez, CCS 2021",
        trust="nobody for features and labels; edges are sent in the clear",
        protects="features and label of one vertex",
        public="edges (raw), the range of the attributes, who is labelled",
        formula="GNN(KProp(multi-bit(x))), loss on p(y|x') T",
        when="to compare with the paper; 'local' is more accurate at half the budget",
    )

    backbone: Literal["gcn", "sage", "gat", "gatv2", "transformer", "graphconv", "cheb", "sgc", "tag"] = "sage"
    feature_steps: Natural = 16
    label_steps: Natural = 2
    loss: Literal["auto", "drop", "forward", "plain"] = "auto"
    features: Literal["reports", "random"] = "reports"
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
        if self.features not in FEATURES:
            raise InputError(f"lpgnn: features is {' or '.join(FEATURES)}, got {self.features!r}")

    def rounds(self, facts: PublicFacts, promise: Local, mean_degree: float = 0.0) -> tuple[Round, ...]:
        if promise.edges is not Openness.RAW:
            raise InputError(
                "lpgnn sends edges in the clear: say --edges-epsilon raw, or use 'local' or 'graph-privatizer'"
            )
        if self.features == "random" and promise.features is not Openness.WITHHELD:
            raise InputError("lpgnn: features=random reads no features: say --features-epsilon withheld")
        return tuple(vertex_rounds(self, facts, promise, read_features=self.features == "reports"))

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        return (*super().public_statements(promise), range_statement(self))

    def train(self, session: Session) -> ScoresPredictor:
        training = PropagatedTraining.of(self)
        rows = None
        if self.features == "random":
            rows = session.coins.standard_normal((session.facts.nodes, self.compress))
        return learn_on_public_edges(training, session, rows)


def learn_on_public_edges(training: PropagatedTraining, session: Session, rows: Array | None = None) -> ScoresPredictor:
    """LPGNN: the same for every method whose edges are raw; ``rows`` stand in for feature reports."""
    rows = heard_rows(session) if rows is None else rows
    labels = NoisyLabels.heard(session)
    inputs = training.propagated(rows, session.raw_edges, session.facts.nodes, session.coins)
    return training.fit(session, {"graph": Candidate(inputs, session.raw_edges)}, labels)
