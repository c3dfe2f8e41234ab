"""DP-MLP: features only, trained with differentially private gradients.

Default network ``own``: the own predictor of Ballot (``common/own_predictor.py``), 50 full-batch steps, exact Gaussian
composition. Network ``paper``: the three layers of 64 with SELU that the papers use, DP-Adam on Poisson batches. As the papers
have it: ``published.py``.

Formal guarantee: edges are never read, so one record moves the mean and one row of each gradient sum whatever the adjacency;
the same promise therefore holds for every node and k-neighbour adjacency, and edge level costs nothing.
Tests: ``tests/methods/test_dp_mlp.py``, ``tests/audit/test_conformance.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.own_predictor import OwnPredictor, learn_own, own_releases
from graphveil.methods.common.private_training import poisson_batches, poisson_release
from graphveil.methods.common.trainer import EDGES, PrivateTrainer, records_are_public
from graphveil.methods.mlp import Mlp, NetworkPredictor, network_parameters, train_network
from graphveil.methods.options import Count, Fraction, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release, calibrate_scale
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.methods.base import Predictor

PEOPLE = frozenset(
    Guarantee(level, adjacency, relation)
    for level, adjacency in (
        (Level.NODE, Adjacency.RECORD),
        (Level.NODE, Adjacency.BOUNDED_DEGREE),
        (Level.NODE, Adjacency.NODE),
        (Level.K_NEIGHBOR, Adjacency.K_NEIGHBOR),
    )
    for relation in Relation
)


class DpMlp(PrivateMethod):
    """Features-only classifier under node-level differential privacy.

    Args:
        network: ``own`` (linear, centred; default) or ``paper`` (three layers of 64, DP-Adam).
        steps, learning_rate, clip: gradient steps, step size and clipping norm of the own network.
        centring: share of the budget for the private mean of the own network; 0 turns centring off.
        batch_size, paper_learning_rate, paper_clip: DP-Adam of the paper network.
        hidden, layers, epochs: the paper network, and the ordinary network at edge level.
    """

    card = card("dp-mlp")
    supports = EDGES | PEOPLE

    network: Literal["own", "paper"] = "own"
    steps: Count = 50
    learning_rate: Positive = 0.1
    clip: Positive = 0.5
    centring: Fraction = 0.03
    hidden: Count = 64
    layers: Count = 3
    epochs: Count = 100
    batch_size: Count = 64
    paper_learning_rate: Positive = 1e-3
    paper_clip: Positive = 1.0

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if records_are_public(promise):
            return Plan(promise, facts, ())
        if self.network == "own":
            steps = own_releases(facts, promise, centring=self.centring, steps=self.steps, clip=self.clip)
            return Plan(promise, facts, steps)
        scale = 1.0
        if promise.private:
            at = lambda z: Plan(promise, facts, (self._gradient(facts, promise, z),)).epsilon()
            scale = calibrate_scale(at, promise.epsilon)
        return Plan(promise, facts, (self._gradient(facts, promise, scale),))

    def _gradient(self, facts: PublicFacts, promise: Promise, noise: float) -> Release:
        steps, rate = poisson_batches(facts, self.epochs, self.batch_size)
        size = network_parameters(facts, self.hidden, self.layers)
        stage: dict[str, Any] = {"steps": steps, "rate": rate, "clip": self.paper_clip}
        return poisson_release("gradient", promise, facts, size, noise_multiplier=noise, **stage)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> Predictor:
        from graphveil.learn import Adam

        if records_are_public(curator.plan.promise):
            ordinary = Mlp(hidden=self.hidden, layers=self.layers, epochs=self.epochs)
            return ordinary.learn(curator, coins, progress)
        if self.network == "own":
            return learn_own(curator, self.learning_rate, progress)
        trainer = PrivateTrainer(curator, lambda: Adam(self.paper_learning_rate), progress)
        return train_network("gradient", curator.facts, self.hidden, self.layers, trainer, coins)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        if config["kind"] == "own":
            return OwnPredictor.restore(arrays)
        return NetworkPredictor.restore(config, arrays)
