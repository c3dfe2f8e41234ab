"""NIP-GNN: noise that depends on a node's influence (anonymous submission, paper 000).

Sound, adjacency ``record``: (1) a first noisy aggregation of projected unit features or of labels; (2) receiver scales from
the ranks of its rows, and a second aggregation with the senders' weights of Lemma M with scales; (3) further hops that aggregate
*released* rows, combined by the residual ``h = (1 - g) H + g M, g = max(1 - tau/||M - H||, 0)``; (4) a classifier on own features
and released rows by private gradients, or (``labels="rr"``) an ordinary network on released rows and randomised labels. tau is
fixed here (its learning would need gradients of private labels); published mode learns it. Sensitivity 1 per aggregation
(replace: 2, later hops sqrt 2) with Gaussian noise; ``noise="laplace"`` with randomised labels is pure (``algorithm.py``). No
degree bound, no released edges.
As published: ``published.py``. Tests: ``tests/methods/test_nip_gnn.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, guarantees
from graphveil.methods.card import card
from graphveil.methods.common.branches import BranchPredictor, BranchShape
from graphveil.methods.common.labels import label_release, noisy_labels
from graphveil.methods.common.own_predictor import GROWTH, own_optimizer
from graphveil.methods.common.private_training import calibrated, descend_privately, full_batch_release
from graphveil.methods.common.scores import KIND, ScoresPredictor
from graphveil.methods.model import Predictor
from graphveil.methods.nip_gnn import algorithm
from graphveil.methods.options import Count, Natural, NonNegative, Positive, Range, Share
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

PAPER_SPLIT, GRADIENT_SPLIT = (0.4, 0.2, 0.4), (0.15, 0.1, 0.75)
HIDDEN = 64  # of the network on randomised labels


class NipGnn(PrivateMethod):
    """Influence-dependent noise, calibrated aggregation.

    Args:
        allocation: ``adaptive`` or ``uniform`` (ablation: all nodes alike).
        residual: the adaptive residual; False is the ablation.
        aggregation_share, hop_share, label_share: the split of epsilon into A, B (further hops) and C; default 0.15, 0.1, 0.75
            where labels enter through private gradients, else 0.4, 0.2, 0.4 (the paper does not say).
        hops, width: K, width of the public projection.
        hidden: width of the network; 0 for none, the default on private gradients; 64 with ``labels="rr"``.
        spread: receiver scales lie between 1/spread and spread.
        noise: ``gaussian``, or ``laplace`` for a pure epsilon (with ``labels="rr"``).
        messages: what is aggregated first: ``features``, ``labels``, or ``rr-labels`` (with ``labels="rr"``).
        epochs, open_learning_rate: training on released values (``labels="rr"``).
    """

    card = card("nip-gnn")
    supports = guarantees(Adjacency.RECORD)

    allocation: Literal["adaptive", "uniform"] = "adaptive"
    residual: bool = True
    aggregation_share: Share | None = None
    hop_share: Share | None = None
    label_share: Share | None = None
    hops: Count = 2
    hidden: Natural | None = None
    width: Count = 16
    spread: Annotated[float, Range(1)] = 1.5
    tau: NonNegative = 0.5
    labels: Literal["gradients", "rr"] = "gradients"
    noise: Literal["gaussian", "laplace"] = "gaussian"
    messages: Literal["features", "labels", "rr-labels"] = "features"
    steps: Count = 100
    clip: Positive = 0.5
    learning_rate: Positive = 0.1
    epochs: Count = 100
    open_learning_rate: Positive = 1e-3

    def check(self) -> None:
        super().check()
        if sum(self.split) > 1 + 1e-9:
            raise InputError(f"the shares {self.split} of A, B and C must add up to at most 1")
        if self.labels != "rr" and (self.noise == "laplace" or self.messages == "rr-labels"):
            option = "noise='laplace' (a pure epsilon)" if self.noise == "laplace" else "messages='rr-labels'"
            raise InputError(f"nip-gnn: {option} needs labels='rr'; gradients are Gaussian and release no labels")

    @property
    def split(self) -> tuple[float, float, float]:
        """The shares A, B and C."""
        first, later, labels = GRADIENT_SPLIT if self.labels == "gradients" else PAPER_SPLIT
        return self.aggregation_share or first, self.hop_share or later, self.label_share or labels

    def shape(self, facts: PublicFacts) -> BranchShape:
        width = self.width if self.messages == "features" else facts.classes
        return BranchShape(facts.features, facts.classes, width, self.hidden or 0, self.hops)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if self.noise == "laplace":
            return Plan(promise, facts, self._pure_releases(facts, promise))
        return calibrated(promise, facts, partial(self._gaussian_releases, facts, promise))

    def _gaussian_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        """Shares of mu^2; randomised labels cost C epsilon."""
        labels, shape, responses = self.split[2], self.shape(facts), self.labels == "rr"
        parts = algorithm.table_parts(*self.split[:2], self.hops, self.allocation == "adaptive")
        total = sum(parts.values()) + (0.0 if responses else labels)
        start = 2 if self.messages == "rr-labels" else 1
        tables = algorithm.gaussian_tables(parts, total, shape.width, start, facts, promise, mu)
        if responses:
            return self._with_labels(tables, facts, promise, labels * promise.epsilon)
        stage: dict[str, Any] = {"steps": self.steps, "clip": self.clip, "growth": GROWTH}
        n, budget = facts.count("train"), mu * math.sqrt(labels / total)
        return *tables, full_batch_release("classifier", promise, n, shape.size, mu=budget, **stage)

    def _pure_releases(self, facts: PublicFacts, promise: Promise) -> tuple[Release, ...]:
        """Laplace tables and randomised labels whose epsilons add up to the promise's, without any delta."""
        parts = algorithm.table_parts(*self.split[:2], self.hops, self.allocation == "adaptive")
        total = sum(parts.values()) + self.split[2]
        tables = algorithm.laplace_tables(parts, total, self.shape(facts).width, facts, promise)
        return self._with_labels(tables, facts, promise, self.split[2] / total * promise.epsilon * algorithm.RESERVE)

    def _with_labels(
        self, tables: tuple[Release, ...], facts: PublicFacts, promise: Promise, epsilon: float
    ) -> tuple[Release, ...]:
        """Randomised labels come first where they are the messages."""
        labels = label_release("labels", facts, promise, epsilon, algorithm.LABEL_LEMMA)
        return (labels, *tables) if self.messages == "rr-labels" else (*tables, labels)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> Predictor:
        shape = self.shape(curator.facts)
        labels = noisy_labels(curator, "labels") if self.messages == "rr-labels" else None
        tables = algorithm.release_tables(
            curator,
            algorithm.first_messages(self.messages, shape, labels),
            order=1 if self.noise == "laplace" else 2,
            hops=self.hops,
            spread=self.spread if self.allocation == "adaptive" else None,
            tau=self.tau if self.residual else None,
        )
        if self.labels == "gradients":
            predictor = BranchPredictor.build(shape)
            predictor.tables = {f"table{number}": table for number, table in enumerate(tables)}
            network = predictor.networks[""].initialise(coins)
            optimizer = own_optimizer(curator.facts, self.learning_rate)
            descend_privately(curator, "classifier", network, predictor.inputs, optimizer, progress)
            return predictor
        from graphveil.methods.nip_gnn.network import train_calibrated

        settings: dict[str, Any] = {"hidden": self.hidden or HIDDEN, "hops": 0, "batch_size": curator.facts.nodes}
        rows, classes = np.concatenate(tables, axis=1), curator.facts.classes
        targets, alone = noisy_labels(curator, "labels") if labels is None else labels, np.zeros((2, 0), dtype=np.int64)
        settings |= {"epochs": self.epochs, "learning_rate": self.open_learning_rate}
        rows = rows / max(float(np.abs(rows).std()), 1e-12)
        return train_calibrated(rows, alone, targets, classes, coins, progress, **settings)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        return (ScoresPredictor if config.get("kind") == KIND else BranchPredictor).restore(config, arrays)
