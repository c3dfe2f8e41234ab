"""DP-MLP: features only, trained with differentially private gradients.

Default network ``own``: the own predictor of Ballot (``common/own_predictor.py``), 50 full-batch steps, exact Gaussian
composition. Network ``paper``: the three layers of 64 with SELU that the papers use, DP-Adam on Poisson batches.

Formal guarantee: edges are never read, so one record moves the mean and one row of each gradient sum whatever the adjacency;
the same promise therefore holds for every node and k-neighbour adjacency, and edge level costs nothing.
Tests: ``tests/methods/test_dp_mlp.py``, ``tests/audit/test_conformance.py``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np

from graphveil import learn
from graphveil.methods.base import EDGES, PrivateMethod, guarantees
from graphveil.methods.card import card, gaps
from graphveil.methods.common.own_predictor import OwnPredictor, learn_own, own_releases
from graphveil.methods.common.private_training import poisson_batches, poisson_release
from graphveil.methods.common.trainer import FullBatch, PaperBatches, private_trainer, records_are_public
from graphveil.methods.mlp import Mlp, NetworkPredictor, PaperNetwork
from graphveil.methods.model import Predictor
from graphveil.methods.options import Count, Positive
from graphveil.methods.previous import Previous
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, calibrate_scale
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation
from graphveil.progress import Progress

PEOPLE = (Adjacency.RECORD, Adjacency.BOUNDED_DEGREE, Adjacency.NODE, Adjacency.K_NEIGHBOR)


class DpMlp(FullBatch, PaperNetwork, PrivateMethod):
    """Features-only classifier under node-level differential privacy.

    Args:
        network: ``own`` (linear, centred; default) or ``paper`` (three layers of 64, DP-Adam).
        centring: share of the budget for the private mean of the own network; 0 turns centring off.
        batch_size, paper_learning_rate, paper_clip: DP-Adam of the paper network.
        hidden, layers, epochs: the paper network, and the ordinary network at edge level.
    """

    card = card("dp-mlp")
    least_k = 0
    reads_blocks = True
    supports = EDGES | guarantees(*PEOPLE)

    network: Literal["own", "paper"] = "own"
    steps: Count = 50
    epochs: Count = 100
    batch_size: Count = 64
    paper_learning_rate: Positive = 1e-3
    paper_clip: Positive = 1.0

    def in_blocks(self, promise: Promise) -> bool:
        return self.network == "own" or records_are_public(promise)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if records_are_public(promise):
            return Plan(promise, facts, ())
        if self.network == "own":
            steps = own_releases(facts, promise, centring=self.centring, steps=self.steps, clip=self.clip)
            return Plan(promise, facts, steps)
        size, batches = self.network_size(facts), poisson_batches(facts, self.epochs, self.batch_size)
        release = partial(poisson_release, "gradient", promise, facts.count("train"), size, batches, self.paper_clip)
        at = lambda noise: Plan(promise, facts, (release(noise),)).epsilon()
        scale = calibrate_scale(at, promise.epsilon) if promise.private else 1.0
        return Plan(promise, facts, (release(scale),))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> Predictor:
        if records_are_public(curator.plan.promise):
            ordinary = Mlp(hidden=self.hidden, layers=self.layers, epochs=self.epochs)
            return ordinary.learn(curator, coins, progress)
        if self.network == "own":
            return learn_own(curator, self.learning_rate, progress)
        train = private_trainer(curator, lambda: learn.Adam(self.paper_learning_rate), progress)
        return self.train_network("gradient", curator.facts, train, coins)

    def learn_on(
        self, previous: Previous, curator: Curator, coins: np.random.Generator, progress: Progress
    ) -> Predictor:
        return learn_own(curator, self.learning_rate, progress, previous=previous)

    def takes(self, predictor: Predictor, promise: Promise) -> bool:
        return self.network == "own" and isinstance(predictor, OwnPredictor) and not records_are_public(promise)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        return (OwnPredictor if config["kind"] == "own" else NetworkPredictor).restore(config, arrays)


class PublishedDpMlp(PaperNetwork, PaperBatches):
    """The papers' network on raw features, accounting (``privacy/accounting/paper.py``) and unaccounted choice of epoch."""

    card = DpMlp.card
    gaps = gaps("dp-mlp")
    predictor = NetworkPredictor
    least_k = 0
    supports = DpMlp.supports

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if records_are_public(promise):
            return Plan(promise, facts, ())
        sides = 2 if promise.relation is Relation.REPLACE else 1
        batches = steps, rate = self.batches(facts)
        noise = sides * claimed_noise(promise, steps=steps, rate=rate)
        size, records = self.network_size(facts, raw=True), facts.count("train")
        release = poisson_release("gradient", promise, records, size, batches, self.clip, noise)
        return Plan(promise, facts, (release,), claim=promise.epsilon, gaps=self.gaps, provable=False)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> NetworkPredictor:
        if curator.plan.promise.level is Level.NONE:
            ordinary = Mlp(hidden=self.hidden, layers=self.layers, epochs=self.epochs)
            return ordinary.learn(curator, coins, progress)
        train = self.trainer(curator, coins, progress)
        return self.train_network("gradient", curator.facts, train, coins, raw=True)
