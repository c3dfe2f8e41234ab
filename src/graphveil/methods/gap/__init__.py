"""GAP: aggregation perturbation (Sajadmanesh, Shamsabadi, Bellet and Gatica-Perez, USENIX Security 2023).

1. *Encoder*: an MLP on own features, trained with its own head; its unit embedding is X_0.
2. *Aggregation*: H_l = unit(A_w X_{l-1} + N(0, sigma^2)) for l = 1..K, released once and kept.
3. *Classifier*: one linear layer per hop, joined, on [X_0, H_1, .., H_K].

Sound: weights and sensitivities of ``common/aggregation.py``; encoder and classifier by full-batch private gradients, one row
per node, and both linear: X_0 are unit logits of a softmax regression, which needs far fewer noisy numbers. Training records pay
for all three stages, everybody pays for the mean and the hops. At edge level features and labels are public, so only the hops
cost: sqrt 2 each on undirected data. As the paper has it: ``published.py``.
Tests: ``tests/methods/test_gap.py``, ``tests/methods/test_aggregation.py``, ``tests/audit/test_conformance.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.aggregation import aggregate
from graphveil.methods.common.trainer import EDGES, OPEN_RATE, records_are_public, sound_trainer
from graphveil.methods.gap.algorithm import perturb_aggregations
from graphveil.methods.gap.bounds import open_releases, stage_releases
from graphveil.methods.gap.predictor import GapPredictor, Shape
from graphveil.methods.options import Count, Fraction, Natural, NonNegative, Positive, Share
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation
from graphveil.progress import Progress


class Gap(PrivateMethod):
    """Noisy multi-hop aggregation between two trained stages.

    Args:
        hops: number of noisy aggregations K.
        hidden: width of embeddings and of every hop; 0: none, both stages are linear and logits travel, the default where
            gradients are private; 64 elsewhere (as published).
        encoder_layers: layers of the encoder below its head where gradients are private, unless ``hidden`` is 0.
        steps, learning_rate, clip: full-batch private gradient steps of encoder and classifier.
        encoder_share, classifier_share: parts of mu^2 for the two trained stages; the hops share the rest.
        centring: part of the encoder's share spent on a private mean of the features.
        epochs, open_learning_rate, weight_decay, dropout: ordinary training at edge level.
    """

    card = card("gap")
    supports = EDGES | {
        Guarantee(Level.K_NEIGHBOR, Adjacency.K_NEIGHBOR, Relation.ZERO_OUT),
        *(Guarantee(Level.NODE, Adjacency.RECORD, relation) for relation in Relation),
        *(Guarantee(Level.NODE, Adjacency.BOUNDED_DEGREE, relation) for relation in Relation),
    }

    hops: Count = 2
    hidden: Natural | None = None
    encoder_layers: Count = 1
    steps: Count = 100
    learning_rate: Positive = 0.05
    clip: Positive = 0.5
    encoder_share: Share = 0.7
    classifier_share: Share = 0.15
    centring: Fraction = 0.03
    epochs: Count = 100
    open_learning_rate: Positive = OPEN_RATE
    weight_decay: NonNegative = 0.0
    dropout: Fraction = 0.5

    def check(self) -> None:
        if self.encoder_share + self.classifier_share >= 1:
            raise InputError("encoder_share and classifier_share must leave a part of the budget to the hops")

    def shape(self, facts: PublicFacts, promise: Promise) -> Shape:
        public = records_are_public(promise)
        width = (64 if public else 0) if self.hidden is None else self.hidden
        if width == 0:
            return Shape(facts.features, facts.classes, facts.classes, self.hops, 0)
        return Shape(facts.features, facts.classes, width, self.hops, 2 if public else self.encoder_layers)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        shape = self.shape(facts, promise)
        if records_are_public(promise):
            return Plan(promise, facts, open_releases(facts, promise, shape))
        shares = {"encoder": self.encoder_share, "classifier": self.classifier_share}
        shares["mean"] = self.encoder_share * self.centring if facts.features else 0.0
        shares["encoder"] -= shares["mean"]
        return Plan(promise, facts, stage_releases(facts, promise, shape, shares, steps=self.steps, clip=self.clip))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> GapPredictor:
        promise = curator.plan.promise
        trainer = sound_trainer(
            curator,
            coins,
            progress,
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            open_learning_rate=self.open_learning_rate,
            weight_decay=self.weight_decay,
            dropout=self.dropout,
        )
        weighted = lambda lists, rows, key: aggregate(lists, rows, promise)
        return perturb_aggregations(curator, self.shape(curator.facts, promise), trainer, weighted, coins, progress)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> GapPredictor:
        return GapPredictor.restore(config, arrays)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        if plan.promise.adjacency is Adjacency.BOUNDED_DEGREE:
            bound = plan.promise.max_degree
            promised = f"nobody has more than {bound} contacts in either direction (promised by the user, not checked)"
            own = (
                "row r of every released table is for node r alone: the saved model holds all rows and must stay with the "
                "curator; what is published may be the networks and each node's own row"
            )
            assumptions = (promised, own, *assumptions)
        return public, assumptions
