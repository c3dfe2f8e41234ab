"""NIP-GNN: noise that depends on a node's influence (anonymous submission, paper 000).

``sound``, adjacency ``record``: (1) a first noisy aggregation of projected unit features or of labels; (2) receiver scales from
the ranks of its rows, and a second aggregation with the senders' weights of Lemma M with scales; (3) further hops that aggregate
*released* rows, combined by the residual ``h = (1 - g) H + g M, g = max(1 - tau/||M - H||, 0)``; (4) a classifier on own features
and released rows by private gradients, or (``labels="rr"``) an ordinary network on released rows and randomised labels. tau is
fixed here (its learning would need gradients of private labels); published mode learns it. Sensitivity 1 per aggregation
(replace: 2, later hops sqrt 2) with Gaussian noise; ``noise="laplace"`` with randomised labels is pure (``nip_gnn_sound.py``). No
degree bound, no released edges.
``published``: ``nip_gnn_published.py``. Tests: ``tests/methods/test_nip_gnn.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, Progress
from graphveil.methods.card import Card
from graphveil.methods.common.group_training import calibrated
from graphveil.methods.common.own_predictor import own_optimizer
from graphveil.methods.common.private_training import descend_privately
from graphveil.methods.nip_gnn.predictor import InfluencePredictor, Shape
from graphveil.methods.nip_gnn.published import GAPS, learn_published, published_plan
from graphveil.methods.nip_gnn.tables import gaussian_releases, pure_releases, release_tables
from graphveil.methods.options import Count, Natural, NonNegative, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation

PAPER_SPLIT, GRADIENT_SPLIT = (0.4, 0.2, 0.4), (0.15, 0.1, 0.75)
CHOICES = {
    "allocation": ("adaptive", "uniform"),
    "beta_rule": ("printed", "proof"),
    "s_rule": ("printed", "intended"),
    "labels": ("gradients", "rr"),
    "noise": ("gaussian", "laplace"),
    "messages": ("features", "labels", "rr-labels"),
}


class NipGnn(PrivateMethod):
    """Influence-dependent noise, calibrated aggregation.

    Args:
        allocation: ``adaptive`` or ``uniform`` (ablation: all nodes alike).
        degree_sampling: published: thin the noisy edges by true degrees; False is the ablation.
        residual: the adaptive residual; False is the ablation.
        aggregation_share, hop_share, label_share: the split of epsilon into A, B (published: edges; sound: further hops) and C;
            default 0.15, 0.1, 0.75 where labels enter through private gradients, else 0.4, 0.2, 0.4 (the paper does not say).
        hops, width: K, width of the public projection (sound).
        hidden: width of the network; 0 for none, the default on private gradients; 64 elsewhere.
        spread: receiver scales lie between 1/spread and spread (sound).
        tau: the residual's threshold where it is not learned (sound, labels by gradients).
        labels: sound: ``gradients`` or ``rr``.
        noise: sound: ``gaussian``, or ``laplace`` for a pure epsilon (with ``labels="rr"``).
        messages: sound: what is aggregated first: ``features``, ``labels``, or ``rr-labels`` (with ``labels="rr"``).
        steps, clip, learning_rate: full-batch private gradients.
        beta_rule, s_rule, influence_rounds, max_degree, max_edges: published: readings of eq. 11 and of s, T, D_max (lists
            longer than that are cut, section 5.2.5), and the number of noisy edges above which it refuses.
        epochs, open_learning_rate: training on released values.
        mode: ``sound`` or ``published``.
    """

    card = Card(
        name="nip-gnn",
        summary="noise scaled by each node's influence, residual aggregation over several hops",
        paper="NIP-GNN: node-level individual private graph neural network (anonymous submission, paper 000)",
        trust="one trusted curator",
        protects="features, labels and contacts (node level)",
        public="number of nodes, feature width, classes, which nodes are for training; published also D_max",
        formula="H_u = sum_j w_j x_j + s_u N, s_u by rank; h = (1-g) H + g M, g = max(1 - tau/||M - H||, 0)",
        when="to study individual noise; published noise drowns everything (signal to noise 0.0002 to 0.009 on Cora)",
    )
    gaps = GAPS

    allocation: Literal["adaptive", "uniform"] = "adaptive"
    degree_sampling: bool = True
    residual: bool = True
    aggregation_share: NonNegative | None = None
    hop_share: NonNegative | None = None
    label_share: NonNegative | None = None
    hops: Count = 2
    hidden: Natural | None = None
    width: Count = 16
    spread: NonNegative = 1.5
    tau: NonNegative = 0.5
    labels: Literal["gradients", "rr"] = "gradients"
    noise: Literal["gaussian", "laplace"] = "gaussian"
    messages: Literal["features", "labels", "rr-labels"] = "features"
    steps: Count = 100
    clip: NonNegative = 0.5
    learning_rate: Positive = 0.1
    beta_rule: Literal["printed", "proof"] = "printed"
    s_rule: Literal["printed", "intended"] = "printed"
    influence_rounds: Count = 2
    max_degree: Count = 200
    max_edges: Count = 50_000_000
    epochs: Count = 100
    open_learning_rate: Positive = 1e-3
    mode: Literal["sound", "published"] = "sound"

    @property
    def supports(self) -> frozenset[Guarantee]:
        if self.mode == "published":
            return frozenset({Guarantee(Level.NODE, Adjacency.NODE, Relation.ZERO_OUT)})
        return frozenset(Guarantee(Level.NODE, Adjacency.RECORD, relation) for relation in Relation)

    def check(self) -> None:
        super().check()
        for option, known in CHOICES.items():
            if getattr(self, option) not in known:
                raise InputError(f"nip-gnn has no {option} {getattr(self, option)!r}; it has: {', '.join(known)}")
        if min(self.split) <= 0 or sum(self.split) > 1 + 1e-9:
            raise InputError(f"the shares {self.split} of A, B and C must be positive and add up to at most 1")
        if self.labels != "rr" and (self.noise == "laplace" or self.messages == "rr-labels"):
            option = "noise='laplace' (a pure epsilon)" if self.noise == "laplace" else "messages='rr-labels'"
            raise InputError(f"nip-gnn: {option} needs labels='rr'; gradients are Gaussian and release no labels")
        if not self.spread >= 1:
            raise InputError(f"spread must be at least 1, got {self.spread}")

    @property
    def split(self) -> tuple[float, float, float]:
        """The shares A, B and C."""
        by_gradients = self.mode == "sound" and self.labels == "gradients"
        first, later, labels = GRADIENT_SPLIT if by_gradients else PAPER_SPLIT
        return (
            first if self.aggregation_share is None else self.aggregation_share,
            later if self.hop_share is None else self.hop_share,
            labels if self.label_share is None else self.label_share,
        )

    @property
    def cap(self) -> int:
        return self.max_degree

    # -- plan ----------------------------------------------------------------------------------------------------

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if self.mode == "published" and promise.level is not Level.NONE:
            return published_plan(self, facts, promise)
        if self.noise == "laplace":
            return Plan(promise, facts, pure_releases(self, facts, promise))
        return calibrated(
            promise,
            lambda mu: gaussian_releases(self, facts, promise, mu),
            lambda releases: Plan(promise, facts, releases),
        )

    def shape(self, facts: PublicFacts) -> Shape:
        width = self.width if self.messages == "features" else facts.classes
        return Shape(facts.features, facts.classes, width, self.hops, self.hidden or 0)

    # -- algorithm -----------------------------------------------------------------------------------------------

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> Any:
        if self.mode == "published" and curator.plan.promise.level is not Level.NONE:
            return learn_published(self, curator, coins, progress)
        if self.labels == "rr":
            return self._learn_from_noisy_labels(curator, coins, progress)
        predictor = InfluencePredictor.build(self.shape(curator.facts))
        predictor.tables = release_tables(self, curator, None)
        predictor.network.initialise(coins)
        optimizer = own_optimizer(curator.facts, self.learning_rate)
        descend_privately(curator, "classifier", predictor.network, predictor.inputs, optimizer, progress)
        return predictor

    def noisy_labels(self, curator: Curator) -> np.ndarray:
        """Randomised training labels, -1 elsewhere; a blank label is a category of its own."""
        train, none = np.flatnonzero(curator.masks["train"]), curator.facts.classes
        query = lambda private: np.where(private.labels[train] < 0, none, private.labels[train])
        labels = np.full(curator.facts.nodes, -1)
        labels[train] = curator.release("labels", query)
        return np.where(labels == none, -1, labels)

    def _learn_from_noisy_labels(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> Any:
        from graphveil.methods.nip_gnn.network import TablePredictor, train_calibrated

        early = self.noisy_labels(curator) if self.messages == "rr-labels" else None
        tables = release_tables(self, curator, early)
        labels = self.noisy_labels(curator) if early is None else early
        scores = train_calibrated(
            np.concatenate(tables, axis=1),
            np.zeros((2, 0), dtype=np.int64),
            labels,
            curator.facts.classes,
            hidden=self.hidden or 64,
            hops=0,
            epochs=self.epochs,
            learning_rate=self.open_learning_rate,
            residual=self.residual,
            coins=coins,
            progress=None if progress is None else lambda done, total: progress("network", done, total),
        )
        return TablePredictor(scores)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        if config.get("kind") == "table":
            from graphveil.methods.nip_gnn.network import TablePredictor

            return TablePredictor(arrays["scores"])
        return InfluencePredictor.restore(config, arrays)
