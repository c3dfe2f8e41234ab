"""GAP as published: one noise multiplier z for encoder, hops and classifier, and what its bounds leave out.

Features as they are, Poisson-sampled DP-Adam. Zero-out (GAP's own paper): clipped rows move a sum by C, hops by sqrt D, after
silently cutting everybody's list to D entries. Replace (the baseline of DPDGC's Table 2): twice that. z is what the papers' own
accounting gives for the claim (``privacy/accounting/paper.py``). At edge level the true sensitivity is known and declared, so the
certificate prints claim and truth side by side; elsewhere the lists cut by the code leave no bound.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, cast

import numpy as np

from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import plain_sum
from graphveil.methods.common.private_training import poisson_batches, poisson_release
from graphveil.methods.common.trainer import EDGES, PaperTrainer, published_trainer
from graphveil.methods.gap import Gap as SoundGap
from graphveil.methods.gap.algorithm import perturb_aggregations
from graphveil.methods.gap.bounds import open_releases
from graphveil.methods.gap.predictor import GapPredictor, Shape
from graphveil.methods.options import Count, Fraction, NonNegative, Positive
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.plan import Plan, Release, calibrate_scale
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
DIRECTED, CAP, SELECTION = gaps("gap")


class PublishedGap(PrivateMethod):
    """GAP with the paper's network, accounting and unaccounted choice of epoch.

    Args:
        hops: number of noisy aggregations K.
        hidden: width of embeddings and of every hop.
        max_degree: D, to which everybody's list is cut (not at edge level).
        epochs, batch_size, learning_rate, clip: DP-Adam on Poisson batches; at edge level Adam on batches.
        weight_decay, dropout: ordinary training at edge level.
    """

    card = SoundGap.card
    gaps = gaps("gap")
    curator: ClassVar[type[Curator]] = PaperCurator
    supports = EDGES | {
        Guarantee(Level.K_NEIGHBOR, Adjacency.K_NEIGHBOR, Relation.ZERO_OUT),
        *(Guarantee(Level.NODE, Adjacency.NODE, relation) for relation in Relation),
    }

    mode: Literal["published"] = "published"
    hops: Count = 2
    hidden: Count = 64
    max_degree: Count = 100
    epochs: Count = 100
    batch_size: Count = 64
    learning_rate: Positive = 1e-3
    clip: Positive = 1.0
    weight_decay: NonNegative = 0.0
    dropout: Fraction = 0.5

    def shape(self, facts: PublicFacts, promise: Promise) -> Shape:
        raw = promise.level is not Level.NONE
        return Shape(facts.features, facts.classes, self.hidden, self.hops, encoder_layers=2, raw=raw)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        shape = self.shape(facts, promise)
        match promise.level:
            case Level.NONE:
                return Plan(promise, facts, open_releases(facts, promise, shape))
            case Level.EDGE:
                return edge_plan(facts, promise, shape)
        sides = 2 if promise.relation is Relation.REPLACE else 1
        steps, rate = poisson_batches(facts, self.epochs, self.batch_size)
        scale = claimed_noise(promise, stages=2, gaussians=self.hops, steps=steps, rate=rate)
        stage: dict[str, Any] = {"steps": steps, "rate": rate, "clip": self.clip, "noise_multiplier": sides * scale}
        claimed = sides * math.sqrt(self.max_degree)
        everybody = dict.fromkeys((kind for kind, n in facts.kinds.items() if n), claimed)
        releases = (
            poisson_release("encoder", promise, facts, shape.encoder_size, **stage),
            *hops_as_stated(facts, promise, shape, scale * claimed, everybody),
            poisson_release("classifier", promise, facts, shape.classifier_size, **stage),
        )
        return Plan(promise, facts, releases, claim=promise.epsilon, gaps=(CAP, SELECTION), provable=False)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> GapPredictor:
        promise = curator.plan.promise
        trainer = published_trainer(
            curator,
            coins,
            progress,
            PaperTrainer(cast(PaperCurator, curator), self.learning_rate, progress),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            dropout=self.dropout,
            batch_size=self.batch_size,
        )
        cut = lambda lists, rows, key: plain_sum(lists.capped(self.max_degree, np.random.default_rng(key)), rows)
        whole = lambda lists, rows, key: plain_sum(lists, rows)
        summed = whole if promise.level is Level.EDGE else cut
        return perturb_aggregations(curator, self.shape(curator.facts, promise), trainer, summed, coins, progress)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> GapPredictor:
        return GapPredictor.restore(config, arrays)


def edge_plan(facts: PublicFacts, promise: Promise, shape: Shape) -> Plan:
    """K Gaussians of claimed sensitivity 1, composed exactly, as the paper does at edge level."""
    scale = 1.0
    if promise.private:
        at = lambda z: Plan(promise, facts, hops_as_stated(facts, promise, shape, z, {"edge": 1.0})).epsilon()
        scale = calibrate_scale(at, promise.epsilon)
    undirected = promise.adjacency is Adjacency.EDGE_UNDIRECTED
    releases = hops_as_stated(facts, promise, shape, scale, {"edge": math.sqrt(2) if undirected else 1.0})
    return Plan(promise, facts, releases, claim=promise.epsilon, gaps=(DIRECTED,) if undirected else ())


def hops_as_stated(
    facts: PublicFacts, promise: Promise, shape: Shape, sigma: float, bound: dict[str, float]
) -> tuple[Release, ...]:
    noise = Gaussian(sigma, facts.nodes * shape.width) if promise.private else Exact()
    excluded = promise.level is not Level.EDGE
    return tuple(Release(f"hop {hop}", noise, bound, AS_STATED, excluded) for hop in range(1, shape.hops + 1))
