"""DP-MLP as the papers have it: features as they are, noise by their own accounting (``privacy/accounting/paper.py``)."""

from __future__ import annotations

import numpy as np

from graphveil.methods.card import gaps
from graphveil.methods.common.private_training import poisson_release
from graphveil.methods.common.trainer import PaperBatches, records_are_public
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.mlp import Mlp, NetworkPredictor, PaperNetwork
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Level, Promise, Relation
from graphveil.progress import Progress


class PublishedDpMlp(PaperNetwork, PaperBatches):
    """The papers' network, accounting and unaccounted choice of epoch."""

    card = DpMlp.card
    gaps = gaps("dp-mlp")
    predictor = NetworkPredictor
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
