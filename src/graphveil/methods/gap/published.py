"""GAP as published: one noise multiplier z for encoder, hops and classifier, and what its bounds leave out.

Features as they are, Poisson-sampled DP-Adam. Zero-out (GAP's own paper): clipped rows move a sum by C, hops by sqrt D, after
silently cutting everybody's list to D entries. Replace, and every k of k-neighbor level (the baseline of DPDGC's Table 2): twice
that. z is what the papers' own accounting gives for the claim (``privacy/accounting/paper.py``). At edge level the true
sensitivity is known and declared, so the certificate prints claim and truth side by side; at node level the lists cut by the code
leave no bound (D3), at k-neighbor level they leave one (:func:`covers_cut_lists`).
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
        covered = promise.level is Level.K_NEIGHBOR and covers_cut_lists(promise, self.max_degree)
        found = (SELECTION,) if covered else (CAP, SELECTION)
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


def covers_cut_lists(promise: Promise, cap: int) -> bool:
    """Whether the 2 sqrt D of k-neighbor level covers what one person moves a sum over lists cut to D entries.

    The person's messages reach at most D rows and move each by 1 (leaving) or 2 (turning round). k contacts lose the person from
    their lists, and a list longer than D takes in another entry: one message more for one row. The own row is no part of the
    release. With c messages in one row it moves by at most c, so the square of the whole is largest where all k arrive in one row
    that the person reached too: ``(k + 1)^2 + D - 1`` leaving, at least ``(k + 2)^2 + 4 (D - 1)`` turning round; both are
    attained, and with k = 0 nothing is taken in. So D = 100 covers zero-out up to k = 16, replace k = 0 alone. All of one hop,
    given the rows of the hop before; that the person's own, hidden row goes on into the next hop is not counted, so that from
    k = 1 on it is no proof for several hops (and no plan of published mode is called provable).
    Tests: ``tests/methods/test_gap_cut_lists.py``.
    """
    own, k = 2 if promise.relation is Relation.REPLACE else 1, promise.k or 0
    return (k + own) ** 2 + own**2 * (cap - 1) <= 4 * cap


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
