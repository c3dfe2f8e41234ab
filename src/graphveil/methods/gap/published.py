"""GAP as published: one noise multiplier z for encoder, hops and classifier, and what its bounds leave out.

Features as they are, Poisson-sampled DP-Adam. Zero-out (GAP's own paper): clipped rows move a sum by C, hops by sqrt D, after
silently cutting everybody's list to D entries. Replace, and every k of k-neighbor level (the baseline of DPDGC's Table 2): twice
that. z is what the papers' own
accounting gives for the claim (``privacy/accounting/paper.py``). At edge level the true sensitivity is known and declared, so the
certificate prints claim and truth side by side; elsewhere the lists cut by the code leave no bound (zero-out at k-neighbor level:
k lists take in another entry each, which twice the bound covers up to k = sqrt D and no further).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from graphveil.graph import Graph
from graphveil.graph.blocks import Block, whole
from graphveil.methods.base import EDGES, guarantees
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import payers, plain_sum
from graphveil.methods.common.block_training import open_block_trainer
from graphveil.methods.common.private_training import poisson_release
from graphveil.methods.common.trainer import PaperBatches
from graphveil.methods.gap import Gap as SoundGap
from graphveil.methods.gap import open_releases
from graphveil.methods.gap.algorithm import perturb_aggregations
from graphveil.methods.gap.predictor import GapPredictor, Shape
from graphveil.methods.mlp import raw_inputs
from graphveil.methods.options import Count, Fraction, NonNegative
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.plan import Plan, Release, calibrate_scale
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
DIRECTED, CAP, SELECTION = gaps("gap")


class PublishedGap(PaperBatches):
    """GAP with the paper's network, accounting and unaccounted choice of epoch.

    Args:
        max_degree: D, to which everybody's list is cut (not at edge level).
    """

    card = SoundGap.card
    gaps = gaps("gap")
    predictor = GapPredictor
    least_k = 0
    supports = EDGES | guarantees(Adjacency.K_NEIGHBOR, Adjacency.NODE)

    hops: Count = 2
    hidden: Count = 64
    max_degree: Count = 100
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
        claim = promise
        if promise.level is Level.K_NEIGHBOR:  # DPDGC, Table 2: for every k what replacing a whole node costs
            claim = replace(promise, relation=Relation.REPLACE)
        sides = 2 if claim.relation is Relation.REPLACE else 1
        batches = steps, rate = self.batches(facts)
        scale = claimed_noise(claim, stages=2, gaussians=self.hops, steps=steps, rate=rate)
        stage = partial(poisson_release, batches=batches, clip=self.clip, multiplier=sides * scale)
        claimed, records = sides * math.sqrt(self.max_degree), facts.count("train")
        releases = (
            stage("encoder", promise, records, shape.encoder_size),
            *hops_as_stated(facts, promise, shape, scale * claimed, payers(facts, promise, claimed)),
            stage("classifier", promise, records, shape.classifier_size),
        )
        found = (SELECTION,) if claim != promise else (CAP, SELECTION)
        return Plan(promise, facts, releases, claim=promise.epsilon, gaps=found, provable=False)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> GapPredictor:
        promise = curator.plan.promise
        others: dict[str, Any] = {"weight_decay": self.weight_decay, "dropout": self.dropout}
        predictor = GapPredictor.build(self.shape(curator.facts, promise))
        if promise.level is Level.NONE:
            stages = predictor.stages(open_block_trainer(curator, coins, progress, self.epochs, **others))
        else:
            train = self.trainer(curator, coins, progress, **others)
            inputs = {"encoder": raw_inputs, "classifier": lambda private: predictor.raw_joined(whole(private))}
            stages = lambda name: train(name, predictor.networks[f"{name}."], inputs[name])
        cap = None if promise.level is Level.EDGE else self.max_degree

        def summed(private: Graph, sent: Callable[[Block], np.ndarray], key: int) -> np.ndarray:
            lists = private.lists if cap is None else private.lists.capped(cap, np.random.default_rng(key))
            return plain_sum(lists, sent(whole(private)))

        return perturb_aggregations(curator, predictor, stages, summed, coins, progress)


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
