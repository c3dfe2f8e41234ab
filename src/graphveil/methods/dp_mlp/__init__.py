"""DP-MLP: features only, trained with differentially private gradients.

Default network ``own``: the own predictor of Ballot (``own_predictor.py``), 50 full-batch steps, exact Gaussian composition.
Network ``paper``: the three layers of 64 with SELU that the papers use, DP-Adam on Poisson batches. ``published``: that
network on features as they are, noise by the papers' own accounting (``privacy/accounting/paper.py``).

Formal guarantee: edges are never read, so one record moves the mean and one row of each gradient sum whatever the adjacency;
the same promise therefore holds for every node and k-neighbour adjacency, and edge level costs nothing.
Tests: ``tests/methods/test_dp_mlp.py``, ``tests/audit/test_conformance.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, Progress
from graphveil.methods.card import Card
from graphveil.methods.common.open_training import train_openly
from graphveil.methods.common.own_predictor import OwnPredictor, learn_own, own_releases
from graphveil.methods.common.private_training import (
    SELECTION,
    BestEpoch,
    descend_privately,
    paper_batches,
    parameter_count,
    poisson_release,
)
from graphveil.methods.mlp import Mlp, NetworkPredictor, network_widths
from graphveil.methods.options import Count, NonNegative, Positive
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release, calibrate_scale
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation

if TYPE_CHECKING:
    from graphveil.methods.base import Predictor


class DpMlp(PrivateMethod):
    """Features-only classifier under node-level differential privacy.

    Args:
        network: ``own`` (linear, centred; default) or ``paper`` (three layers of 64, DP-Adam).
        steps, learning_rate, clip: gradient steps, step size and clipping norm of the own network.
        centring: share of the budget for the private mean of the own network; 0 turns centring off.
        hidden, layers, epochs, batch_size, paper_learning_rate, paper_clip: the paper network.
        mode: ``sound``, or ``published`` (the paper network, accounting and unaccounted choice of epoch).
    """

    card = Card(
        name="dp-mlp",
        summary="a classifier on a node's own features; reads no edges",
        paper="baseline of GAP (Sajadmanesh et al., USENIX Security 2023) and DPDGC (Chien et al., NeurIPS 2023); "
        "default network: the own predictor of Ballot",
        trust="one trusted curator",
        protects="features and labels (edges are never read)",
        public="number of nodes, feature width, classes, which nodes are for training",
        formula="W <- W - lr/n (sum_i clip((p_i - y_i) x_i^T) + N(0, sigma^2))",
        when="when edges say little or epsilon is small; the line every private graph method has to beat",
    )

    gaps = (SELECTION,)

    network: Literal["own", "paper"] = "own"
    steps: Count = 50
    learning_rate: Positive = 0.1
    clip: NonNegative = 0.5
    centring: NonNegative = 0.03
    hidden: Count = 64
    layers: Count = 3
    epochs: Count = 100
    batch_size: Count = 64
    paper_learning_rate: Positive = 1e-3
    paper_clip: NonNegative = 1.0
    mode: Literal["sound", "published"] = "sound"

    @property
    def supports(self) -> frozenset[Guarantee]:
        people = [(Level.NODE, a) for a in (Adjacency.RECORD, Adjacency.BOUNDED_DEGREE, Adjacency.NODE)]
        people.append((Level.K_NEIGHBOR, Adjacency.K_NEIGHBOR))
        covered = {Guarantee(level, adjacency, relation) for level, adjacency in people for relation in Relation}
        return frozenset(covered | Mlp().supports)

    def check(self) -> None:
        super().check()
        if self.network not in ("own", "paper"):
            raise InputError(f"dp-mlp has no network {self.network!r}; it has: own, paper")
        if not 0 <= self.centring < 1:
            raise InputError(f"centring is a share of the budget in [0, 1), got {self.centring}")

    @property
    def _on_paper(self) -> bool:
        return self.network == "paper" or self.mode == "published"

    @property
    def _raw(self) -> bool:
        return self.mode == "published"

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if promise.level in (Level.EDGE, Level.NONE):
            return Plan(promise, facts, ())
        if not self._on_paper:
            steps = own_releases(facts, promise, centring=self.centring, steps=self.steps, clip=self.clip)
            return Plan(promise, facts, steps)
        if self.mode == "sound":
            scale = 1.0
            if promise.private:
                at = lambda z: Plan(promise, facts, (self._paper_release(facts, promise, z),)).epsilon()
                scale = calibrate_scale(at, promise.epsilon)
            return Plan(promise, facts, (self._paper_release(facts, promise, scale),))
        replaced = promise.relation is Relation.REPLACE
        scale = claimed_noise(promise, **paper_batches(facts, self.epochs, self.batch_size)) * (2 if replaced else 1)
        release = self._paper_release(facts, promise, scale)
        return Plan(promise, facts, (release,), claim=promise.epsilon, gaps=(SELECTION,), provable=False)

    def _paper_release(self, facts: PublicFacts, promise: Promise, noise_multiplier: float) -> Release:
        return poisson_release(
            "gradient",
            promise,
            facts,
            parameter_count(network_widths(facts.features, facts.classes, self.hidden, self.layers, self._raw)),
            epochs=self.epochs,
            batch_size=self.batch_size,
            clip=self.paper_clip,
            noise_multiplier=noise_multiplier,
        )

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> Predictor:
        if curator.plan.promise.level in (Level.EDGE, Level.NONE):
            return self._learn_openly(curator, coins, progress)
        if not self._on_paper:
            return learn_own(curator, self.learning_rate, progress)
        return self._learn_paper(curator, coins, progress)

    def _learn_openly(
        self, curator: Curator, coins: np.random.Generator, progress: Progress | None
    ) -> NetworkPredictor:
        """At edge level features and labels are public: ordinary training, as the paper's code does it if published."""
        if self.mode == "sound" or curator.plan.promise.level is Level.NONE:
            return Mlp(hidden=self.hidden, layers=self.layers, epochs=self.epochs).learn(curator, coins, progress)
        facts = curator.facts
        predictor = NetworkPredictor.build(facts.features, facts.classes, self.hidden, self.layers, self._raw)
        network = predictor.network.initialise(coins)
        stage = {"epochs": self.epochs, "learning_rate": self.paper_learning_rate, "dropout": 0.5}
        paper = {"batch_size": self.batch_size, "best_epoch": True}
        train_openly(curator, "mlp", network, predictor.inputs, coins, progress, **stage, **paper)
        return predictor

    def _learn_paper(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> NetworkPredictor:
        from graphveil.learn import Adam

        facts = curator.facts
        predictor = NetworkPredictor.build(facts.features, facts.classes, self.hidden, self.layers, self._raw)
        network = predictor.network.initialise(coins)
        best = BestEpoch.peeking(curator, predictor.inputs) if isinstance(curator, PaperCurator) else None
        descend_privately(
            curator, "gradient", network, predictor.inputs, Adam(self.paper_learning_rate), progress, after_epoch=best
        )
        if best is not None:
            best.restore(network)
        return predictor

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        if config["kind"] == "own":
            return OwnPredictor.restore(arrays)
        return NetworkPredictor.restore(config, arrays)
