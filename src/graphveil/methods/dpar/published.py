"""DPAR as published: its composition, its amplification, its sampling rate, and what they leave out.

Claim: q'(eps_pr + eps_sgd). eps_pr is divided over M rows by ``eps_row = eps_pr / (2 sqrt(M ln(e + eps_pr/delta_pr)))``; gm adds
the classic Gaussian noise ``sqrt(2 ln(1.25/delta_row)) C1/eps_row``; em solves ``eps_row = 2 min(K e, K e (e^{2e}-1)/(e^{2e}+1) +
e sqrt(2K ln(1/delta_row)))`` for the Gumbel scale C2/e. eps_sgd is that of one row at rate B/N, noise tau C. ``corrected``: the
same noise with the true amplification, rate B/M and sqrt 2 C1, still as if a person were in one row only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated

import numpy as np
from scipy.optimize import brentq

from graphveil import learn
from graphveil.methods.base import ZERO_OUT, guarantees
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.trainer import PublishedMethod
from graphveil.methods.dpar import Dpar, RankedMethod
from graphveil.methods.dpar.algorithm import choose_sources, learn_from_rows, release_rows
from graphveil.methods.dpar.bounds import Ranking
from graphveil.methods.dpar.predictor import RankedPredictor, Shape, TwoLayers
from graphveil.methods.options import Count, Positive, Range
from graphveil.privacy.accounting.loss import SampledGaussian, epsilon_of
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian, GumbelTop, Laplace
from graphveil.privacy.plan import Plan, Release, calibrate_scale
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
EPOCHS = 200


class PublishedDpar(PublishedMethod, RankedMethod):
    """Private PageRank rows of sampled sources, then private training of two layers on these rows alone.

    Args:
        column_norm: tau, the l1 norm of the columns of Pi.
        batch_size, clip, learning_rate: B, C and the step size of 200 epochs of Adam.
    """

    card = Dpar.card
    gaps = gaps("dpar")
    supports = guarantees(Adjacency.NODE, relations=ZERO_OUT)

    graph_rate: Annotated[float, Range(0, 1, "(]")] = 0.09
    batch_size: Count = 60
    clip: Positive = 1.0
    learning_rate: Positive = 5e-3

    def shape(self, facts: PublicFacts) -> Shape:
        return Shape(facts.features, self.hidden, facts.classes)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The paper's noise for its claim; no proof is left, so the corrected figure stands beside it."""
        gaps = tuple(gap for gap in self.gaps if gap.code != "P6" or self.select == "gm")
        n, m = max(1, facts.count("train")), self.source_count(facts)
        steps = EPOCHS * math.ceil(m / self.batch_size)
        if not promise.private:
            named = ("pagerank", "weights")[: 0 if self.rows != "private" else 2 if self.select == "em1" else 1]
            exact = (Release(name, Exact(), payers(facts, promise, 1.0), AS_STATED) for name in named)
            last = Release("gradient", Exact(steps), payers(facts, promise, self.clip), AS_STATED)
            return Plan(promise, facts, (*exact, last), gaps=gaps, provable=False)
        inner, delta = promise.epsilon / self.graph_rate, min(promise.target_delta / self.graph_rate / 2, 0.4)
        budget = inner * self.pagerank_share if self.rows == "private" else 0.0
        rows = stated_rows(self, facts, promise, budget, delta) if budget else ()
        counted = min(1.0, self.batch_size / n)
        at = lambda z: epsilon_of([SampledGaussian(z, counted, steps, False)], delta)
        sigma = calibrate_scale(at, inner - budget) * self.column_norm * self.clip
        rate = min(1.0, self.batch_size / m)
        descent = DpGradient(sigma, self.clip, steps, self.shape(facts).size, rate=rate)
        stated = Release("gradient", descent, payers(facts, promise, self.column_norm * self.clip), AS_STATED)
        plan = Plan(promise, facts, (*rows, stated), promise.epsilon, gaps, provable=False, sampled=self.graph_rate)
        own_row = replace(stated, sensitivity={"train": self.clip})
        return replace(plan, corrected=replace(plan, steps=(*rows, own_row)).epsilon())

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> RankedPredictor:
        sampled = curator.sample_slots()
        order = coins.permutation(np.flatnonzero(curator.masks["train"]))
        sources = choose_sources(order, self.source_count(curator.facts), first=sampled)
        rows = release_rows(curator, self, sources, coins).clipped_columns(self.column_norm, order=1)
        layers = TwoLayers.drawn(self.shape(curator.facts), coins)
        learn_from_rows(curator, layers, rows, sources, learn.Adam(self.learning_rate), progress)
        return RankedPredictor(layers, self.walk)


def stated_rows(
    ranking: Ranking, facts: PublicFacts, promise: Promise, budget: float, delta: float
) -> tuple[Release, ...]:
    """The PageRank releases for ``budget``; the true sensitivities are declared."""
    m, k, candidates = ranking.source_count(facts), ranking.picks_of(facts), ranking.candidates(facts)
    per_row = budget / (2 * math.sqrt(m * math.log(math.e + budget / delta)))
    row_delta = delta / (2 * m)
    if ranking.select == "gm":
        sigma = math.sqrt(2 * math.log(1.25 / row_delta)) * ranking.row_clip / per_row
        bound = payers(facts, promise, math.sqrt(2 * m) * ranking.row_clip)
        return (Release("pagerank", Gaussian(sigma, m * candidates), bound, AS_STATED),)
    share = per_row / (2 if ranking.select == "em1" else 1)

    def cost(e: float) -> float:
        return 2 * min(k * e, k * e * math.tanh(e) + e * math.sqrt(2 * k * math.log(1 / row_delta)))

    e = float(brentq(lambda x: cost(x) - share, 1e-12, 1e6))
    choice = GumbelTop(ranking.entry_clip / e, k, m, candidates)
    picks = Release("pagerank", choice, payers(facts, promise, ranking.entry_clip), AS_STATED)
    if ranking.select == "em0":
        return (picks,)
    bound = payers(facts, promise, m * k * ranking.entry_clip)
    return picks, Release("weights", Laplace(k * ranking.entry_clip / share, m * k), bound, AS_STATED)
