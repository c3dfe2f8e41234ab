"""DP-MLP as the papers have it: features as they are, noise by their own accounting (``privacy/accounting/paper.py``)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, cast

import numpy as np

from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import gaps
from graphveil.methods.common.private_training import poisson_batches, poisson_release
from graphveil.methods.common.trainer import PaperTrainer, published_trainer, records_are_public
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.mlp import Mlp, NetworkPredictor, network_parameters, train_network
from graphveil.methods.options import Count, Positive
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Level, Promise, Relation
from graphveil.progress import Progress


class PublishedDpMlp(PrivateMethod):
    """The papers' network, accounting and unaccounted choice of epoch.

    Args:
        hidden, layers: width and number of layers.
        epochs, batch_size, learning_rate, clip: DP-Adam on Poisson batches; at edge level Adam on batches.
    """

    card = DpMlp.card
    gaps = gaps("dp-mlp")
    curator: ClassVar[type[Curator]] = PaperCurator
    supports = DpMlp.supports

    mode: Literal["published"] = "published"
    hidden: Count = 64
    layers: Count = 3
    epochs: Count = 100
    batch_size: Count = 64
    learning_rate: Positive = 1e-3
    clip: Positive = 1.0

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if records_are_public(promise):
            return Plan(promise, facts, ())
        sides = 2 if promise.relation is Relation.REPLACE else 1
        steps, rate = poisson_batches(facts, self.epochs, self.batch_size)
        release = poisson_release(
            "gradient",
            promise,
            facts,
            network_parameters(facts, self.hidden, self.layers, raw=True),
            steps=steps,
            rate=rate,
            clip=self.clip,
            noise_multiplier=sides * claimed_noise(promise, steps=steps, rate=rate),
        )
        return Plan(promise, facts, (release,), claim=promise.epsilon, gaps=self.gaps, provable=False)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> NetworkPredictor:
        if curator.plan.promise.level is Level.NONE:
            ordinary = Mlp(hidden=self.hidden, layers=self.layers, epochs=self.epochs)
            return ordinary.learn(curator, coins, progress)
        trainer = published_trainer(
            curator,
            coins,
            progress,
            PaperTrainer(cast(PaperCurator, curator), self.learning_rate, progress),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            dropout=0.5,
            batch_size=self.batch_size,
        )
        return train_network("gradient", curator.facts, self.hidden, self.layers, trainer, coins, raw=True)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> NetworkPredictor:
        return NetworkPredictor.restore(config, arrays)
