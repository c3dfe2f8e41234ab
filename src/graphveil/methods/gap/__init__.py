"""GAP: aggregation perturbation (Sajadmanesh, Shamsabadi, Bellet and Gatica-Perez, USENIX Security 2023).

1. *Encoder*: an MLP on own features, trained with its own head; its unit embedding is X_0.
2. *Aggregation*: H_l = unit(A_w X_{l-1} + N(0, sigma^2)) for l = 1..K, released once and kept.
3. *Classifier*: one linear layer per hop, joined, on [X_0, H_1, .., H_K].

``sound``: weights and sensitivities of ``aggregation.py``; encoder and classifier by full-batch private gradients, one row per
node, and both linear: X_0 are unit logits of a softmax regression, which needs far fewer noisy numbers. Training records pay
for all three stages, everybody pays for the mean and the hops. At edge level features and labels are public, so only the hops
cost: sqrt 2 each on undirected data. ``published``: features as they are, one noise multiplier for Poisson-sampled DP-Adam and
hops; sensitivity 1 per *directed* edge, or sqrt D (replace: 2 sqrt D) after silently cutting everybody's list to D entries
(``gap_published.py``).
Tests: ``tests/methods/test_gap.py``, ``tests/methods/test_aggregation.py``, ``tests/audit/test_conformance.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, Progress
from graphveil.methods.card import Card
from graphveil.methods.common.aggregation import aggregate, hop_release, plain_sum
from graphveil.methods.common.open_training import train_openly
from graphveil.methods.common.own_predictor import GROWTH, mean_release, own_optimizer, release_centre
from graphveil.methods.common.private_training import BestEpoch, descend_privately, full_batch_release
from graphveil.methods.gap.predictor import GapPredictor, Shape
from graphveil.methods.gap.published import GAPS, published_plan
from graphveil.methods.options import Count, Fraction, Natural, NonNegative, Positive
from graphveil.privacy import plan as planning
from graphveil.privacy.accounting.loss import gaussian_mu
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import Network


class Gap(PrivateMethod):
    """Noisy multi-hop aggregation between two trained stages.

    Args:
        hops: number of noisy aggregations K.
        hidden: width of embeddings and of every hop; 0: none, both stages are linear and logits travel, the default where
            gradients are private; 64 elsewhere (as published).
        encoder_layers: layers of a sound encoder below its head, unless ``hidden`` is 0.
        steps, learning_rate, clip: full-batch private gradient steps of encoder and classifier (sound node level).
        encoder_share, classifier_share: parts of mu^2 for the two trained stages; the hops share the rest.
        centring: part of the encoder's share spent on a private mean of the features.
        epochs: passes over the training nodes at edge level and in published mode.
        open_learning_rate, weight_decay, dropout: ordinary training at edge level.
        max_degree, batch_size, paper_learning_rate, paper_clip: published mode.
        mode: ``sound`` or ``published``.
    """

    card = Card(
        name="gap",
        summary="aggregates learned embeddings over several hops and perturbs every aggregation",
        paper="GAP: Differentially Private Graph Neural Networks with Aggregation Perturbation, USENIX Security 2023",
        trust="one trusted curator",
        protects="edges (edge level); features, labels and contacts (node and k-neighbor level)",
        public="number of nodes, feature width, classes, which nodes are for training; at edge level features and labels",
        formula="H_l = unit(A_w H_{l-1} + N(0, sigma^2)), l = 1..K",
        when="dense graphs whose neighbours' features matter; on small sparse graphs dp-mlp is the line to beat",
    )

    gaps = GAPS

    hops: Count = 2
    hidden: Natural | None = None
    encoder_layers: Count = 1
    steps: Count = 100
    learning_rate: Positive = 0.05
    clip: NonNegative = 0.5
    encoder_share: NonNegative = 0.7
    classifier_share: NonNegative = 0.15
    centring: NonNegative = 0.03
    epochs: Count = 100
    open_learning_rate: Positive = 3e-3
    weight_decay: NonNegative = 0.0
    dropout: Fraction = 0.5
    max_degree: Count = 100
    batch_size: Count = 64
    paper_learning_rate: Positive = 1e-3
    paper_clip: NonNegative = 1.0
    mode: Literal["sound", "published"] = "sound"

    @property
    def supports(self) -> frozenset[Guarantee]:
        edges = {
            Guarantee(Level.EDGE, a, Relation.ZERO_OUT) for a in (Adjacency.EDGE_UNDIRECTED, Adjacency.EDGE_DIRECTED)
        }
        near = Guarantee(Level.K_NEIGHBOR, Adjacency.K_NEIGHBOR, Relation.ZERO_OUT)
        if self.mode == "published":
            return frozenset(
                edges | {near} | {Guarantee(Level.NODE, Adjacency.NODE, relation) for relation in Relation}
            )
        node = {Guarantee(Level.NODE, a, r) for a in (Adjacency.RECORD, Adjacency.BOUNDED_DEGREE) for r in Relation}
        return frozenset(edges | node | {near})

    def check(self) -> None:
        super().check()
        if min(self.hops, self.encoder_layers, self.max_degree) < 1:
            raise InputError("gap needs hops, encoder_layers and max_degree of at least 1")
        if self.hidden == 0 and self.mode == "published":
            raise InputError("published gap has hidden layers; hidden=0 needs mode='sound'")
        if not (
            self.encoder_share > 0 and self.classifier_share > 0 and self.encoder_share + self.classifier_share < 1
        ):
            raise InputError(
                "encoder_share and classifier_share must be positive and leave a part of the budget to the hops"
            )

    def shape(self, facts: PublicFacts, promise: Promise) -> Shape:
        sound = self.mode == "sound" and promise.level not in (Level.EDGE, Level.NONE)
        width = (0 if sound else 64) if self.hidden is None else self.hidden
        paper = self.mode == "published" and promise.level is not Level.NONE
        if width == 0:
            return Shape(facts.features, facts.classes, facts.classes, self.hops, 0)
        return Shape(facts.features, facts.classes, width, self.hops, self.encoder_layers if sound else 2, paper)

    # -- plan ----------------------------------------------------------------------------------------------------

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if self.mode == "published" and promise.level is not Level.NONE:
            return published_plan(self, facts, promise)
        if promise.level in (Level.EDGE, Level.NONE):
            mu = (
                gaussian_mu(promise.epsilon, promise.target_delta) / math.sqrt(self.hops)
                if promise.private
                else math.inf
            )
            return Plan(promise, facts, self._hop_releases(facts, promise, mu * (1 - 1e-14)))
        return Plan(promise, facts, self._sound_releases(facts, promise))

    def _sound_releases(self, facts: PublicFacts, promise: Promise) -> tuple[Release, ...]:
        mean_share = self.encoder_share * self.centring if facts.features else 0.0
        shares = {
            "mean": mean_share,
            "encoder": self.encoder_share - mean_share,
            "classifier": self.classifier_share,
            "hop": (1 - self.encoder_share - self.classifier_share) / self.hops,
        }
        split = {**shares, "hop": shares["hop"] * self.hops}
        mu = planning.split_mu(promise, split) if promise.private else dict.fromkeys(shares, math.inf)
        shape = self.shape(facts, promise)
        stage = {"steps": self.steps, "clip": self.clip}
        return (
            *((mean_release(facts, promise, mu["mean"]),) if mean_share else ()),
            full_batch_release("encoder", promise, facts, shape.encoder_size, mu=mu["encoder"], growth=GROWTH, **stage),
            *self._hop_releases(facts, promise, mu["hop"] / math.sqrt(self.hops)),
            full_batch_release("classifier", promise, facts, shape.classifier_size, mu=mu["classifier"], **stage),
        )

    def _hop_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        width = self.shape(facts, promise).width
        return tuple(hop_release(f"hop {hop}", hop, width, mu, facts, promise) for hop in range(1, self.hops + 1))

    # -- algorithm -----------------------------------------------------------------------------------------------

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> GapPredictor:
        predictor = GapPredictor.build(self.shape(curator.facts, curator.plan.promise), release_centre(curator))
        predictor.encoder.initialise(coins)
        predictor.classifier.initialise(coins)
        self._train(curator, "encoder", predictor.encoder, predictor.own_inputs, coins, progress)
        predictor.hops = self._release_hops(curator, predictor, coins, progress)
        self._train(curator, "classifier", predictor.classifier, predictor.all_inputs, coins, progress)
        return predictor

    def _release_hops(
        self, curator: Curator, predictor: GapPredictor, coins: np.random.Generator, progress: Progress | None
    ) -> list[np.ndarray]:
        """H_1 .. H_K; absent slots send nothing at hop 1, later hops send released rows."""
        from graphveil.graph.unit import unit_array

        promise = curator.plan.promise
        cut = self.mode == "published" and promise.level is not Level.EDGE
        released: list[np.ndarray] = []

        def query(private: Graph) -> np.ndarray:
            rows = released[-1] if released else predictor.embedding(private) * private.present[:, None]
            if not cut:
                return aggregate(private.lists, rows, promise)
            return plain_sum(private.lists.capped(self.max_degree, np.random.default_rng(key)), rows)

        for hop in range(1, self.hops + 1):
            key = int(coins.integers(2**32))
            released.append(unit_array(curator.release(f"hop {hop}", query)))
            if progress is not None:
                progress("hops", hop, self.hops)
        return released

    def _train(
        self,
        curator: Curator,
        name: str,
        network: Network,
        inputs: Any,
        coins: np.random.Generator,
        progress: Progress | None,
    ) -> None:
        from graphveil.learn import Adam

        level = curator.plan.promise.level
        if level in (Level.EDGE, Level.NONE):
            paper = self.mode == "published" and level is Level.EDGE
            train_openly(
                curator,
                name,
                network,
                inputs,
                coins,
                progress,
                epochs=self.epochs,
                learning_rate=self.paper_learning_rate if paper else self.open_learning_rate,
                weight_decay=self.weight_decay,
                dropout=self.dropout,
                batch_size=self.batch_size if paper else None,
                best_epoch=paper,
            )
        elif isinstance(curator, PaperCurator):
            best = BestEpoch.peeking(curator, inputs)
            descend_privately(
                curator, name, network, inputs, Adam(self.paper_learning_rate), progress, after_epoch=best
            )
            best.restore(network)
        else:
            optimizer = own_optimizer(curator.facts, self.learning_rate)
            descend_privately(curator, name, network, inputs, optimizer, progress)

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
