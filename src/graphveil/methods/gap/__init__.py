"""GAP: aggregation perturbation (Sajadmanesh, Shamsabadi, Bellet and Gatica-Perez, USENIX Security 2023).

1. *Encoder*: an MLP on own features, trained with its own head; its unit embedding is X_0.
2. *Aggregation*: H_l = unit(A_w X_{l-1} + N(0, sigma^2)) for l = 1..K, released once and kept.
3. *Classifier*: one linear layer per hop, joined, on [X_0, H_1, .., H_K].

Sound: weights and sensitivities of ``common/aggregation.py``; encoder and classifier by full-batch private gradients, one row
per node, and both linear: X_0 are unit logits of a softmax regression, which needs far fewer noisy numbers. Training records pay
for all three stages, everybody pays for the mean and the hops. At edge level features and labels are public, so only the hops
cost: sqrt 2 each on undirected data. All queries go block by block and their sums are exact: gradients by
``learn/exact_gradients.py``, hops by the grid of messages. As the paper has it, in memory: ``published.py``.
Tests: ``tests/methods/test_gap.py``, ``tests/methods/test_aggregation.py``, ``tests/audit/test_conformance.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import EDGES, ZERO_OUT, PrivateMethod, guarantees, promised_degree
from graphveil.methods.card import card
from graphveil.methods.common.aggregation import aggregate_blocks, hop_release
from graphveil.methods.common.block_training import sound_block_trainer
from graphveil.methods.common.own_predictor import mean_release
from graphveil.methods.common.private_training import full_batch_release
from graphveil.methods.common.trainer import FullBatch, OpenTraining, records_are_public
from graphveil.methods.gap.algorithm import perturb_aggregations
from graphveil.methods.gap.predictor import GapPredictor, Shape
from graphveil.methods.options import Count, Natural, Positive, Share
from graphveil.privacy.accounting.loss import gaussian_mu
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release, split_mu
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress


class Gap(FullBatch, OpenTraining, PrivateMethod):
    """Noisy multi-hop aggregation between two trained stages.

    Args:
        hidden: width of embeddings and of every hop; 0: none, both stages are linear and logits travel, the default where
            gradients are private; 64 elsewhere (as published).
        encoder_layers: layers of the encoder below its head where gradients are private, unless ``hidden`` is 0.
        encoder_share, classifier_share: parts of mu^2 for the two trained stages; the hops share the rest.
        centring: part of the encoder's share spent on a private mean of the features.
    """

    card = card("gap")
    predictor = GapPredictor
    least_k = 0
    reads_blocks = True
    supports = EDGES | guarantees(Adjacency.RECORD, Adjacency.BOUNDED_DEGREE)
    supports |= guarantees(Adjacency.K_NEIGHBOR, relations=ZERO_OUT)

    hops: Count = 2
    hidden: Natural | None = None
    encoder_layers: Count = 1
    learning_rate: Positive = 0.05
    encoder_share: Share = 0.7
    classifier_share: Share = 0.15

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

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> GapPredictor:
        promise = curator.plan.promise
        predictor = GapPredictor.build(self.shape(curator.facts, promise))
        trainer = sound_block_trainer(curator, coins, progress, self.learning_rate, self)
        weighted = lambda private, sent, key: aggregate_blocks(private, sent, promise)
        return perturb_aggregations(curator, predictor, predictor.stages(trainer), weighted, coins, progress)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        return public, (*promised_degree(plan.promise), *assumptions)


def open_releases(facts: PublicFacts, promise: Promise, shape: Shape) -> tuple[Release, ...]:
    """The hops alone, where records are public."""
    total = gaussian_mu(promise.epsilon, promise.target_delta) if promise.private else math.inf
    return hop_releases(facts, promise, shape, total / math.sqrt(shape.hops) * (1 - 1e-14))


def hop_releases(facts: PublicFacts, promise: Promise, shape: Shape, mu: float) -> tuple[Release, ...]:
    """K noisy aggregations of mu each."""
    return tuple(hop_release(f"hop {hop}", hop, shape.width, mu, facts, promise) for hop in range(1, shape.hops + 1))


def stage_releases(
    facts: PublicFacts, promise: Promise, shape: Shape, shares: Mapping[str, float], *, steps: int, clip: float
) -> tuple[Release, ...]:
    """Mean, encoder, hops and classifier where records are private; the hops get what the shares of the others leave.

    Gradient sums are exact and truncation lengthens no term (``learn/exact_gradients.py``): rounding adds nothing to ``clip``.
    """
    parts = {**shares, "hops": 1 - sum(shares.values())}
    mu = split_mu(promise, parts) if promise.private else dict.fromkeys(parts, math.inf)

    def trained(name: str, size: int) -> Release:
        return full_batch_release(
            name, promise, facts.count("train"), size, steps=steps, clip=clip, mu=mu[name], slack=0.0
        )

    return (
        *((mean_release(facts, promise, mu["mean"]),) if shares["mean"] else ()),
        trained("encoder", shape.encoder_size),
        *hop_releases(facts, promise, shape, mu["hops"] / math.sqrt(shape.hops)),
        trained("classifier", shape.classifier_size),
    )
