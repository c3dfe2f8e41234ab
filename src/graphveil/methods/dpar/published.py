"""DPAR as published: its composition, its amplification, its sampling rate, and what they leave out.

Claim: q'(eps_pr + eps_sgd). eps_pr is divided over M rows by ``eps_row = eps_pr / (2 sqrt(M ln(e + eps_pr/delta_pr)))``; gm adds
the classic Gaussian noise ``sqrt(2 ln(1.25/delta_row)) C1/eps_row``; em solves ``eps_row = 2 min(K e, K e (e^{2e}-1)/(e^{2e}+1) +
e sqrt(2K ln(1/delta_row)))`` for the Gumbel scale C2/e. eps_sgd is that of one row, noise tau C. N of the training slots are
drawn first, and everything happens among them. Text and released code differ, so both can be had:

============  ===========================================  ======================================================================
``reading``   text                                         code
============  ===========================================  ======================================================================
N             q' of the training slots                     q' of *all* slots, drawn from the training slots
rows of Pi    M, from PageRank                             N: M from PageRank, the others identity rows
columns       clipped to l1 norm tau                       scaled to l1 norm tau, up as well as down
batches       B of M rows, counted as B/N (P5)             B of N rows
steps         SGD                                          Adam
dropout       none                                         0.1 of inputs and hidden units, never switched off
============  ===========================================  ======================================================================

``corrected``: the same noise with the true amplification and rates and sqrt 2 C1, still as if a person were in one row only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

import numpy as np
from scipy.optimize import brentq

from graphveil import learn
from graphveil.methods.base import ZERO_OUT, guarantees
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.trainer import PublishedMethod
from graphveil.methods.dpar import Dpar, RankedMethod
from graphveil.methods.dpar.algorithm import learn_from_rows, release_rows
from graphveil.methods.dpar.bounds import Ranking
from graphveil.methods.dpar.predictor import RankedPredictor, Shape, TwoLayers
from graphveil.methods.options import Count, Fraction, Positive, Range, Share
from graphveil.privacy.accounting.loss import SampledGaussian, epsilon_of
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian, GumbelTop, Laplace
from graphveil.privacy.plan import Plan, Release, calibrate_scale
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
CODE, TEXT = "code", "text"
CLIPPING, RATE, ROOT_TWO = "P2", "P5", "P6"


class PublishedDpar(PublishedMethod, RankedMethod):
    """Private PageRank rows of sampled sources, then private training of two layers on the sampled graph.

    Args:
        reading: the text of the paper, or the authors' released code, where these differ.
        graph_rate: q', the part of the slots that is drawn.
        gamma: where ISTA stops.
        pagerank_share: eps_pr / (eps_pr + eps_sgd).
        value_share: eps_2 / (eps_1 + eps_2), what em1 spends on values.
        column_norm: tau, the l1 norm of the columns of Pi.
        features: unit rows, or as they are.
        batch_size, clip, learning_rate, epochs: B, C, the step size, and passes over the rows.
        dropout, dropout_at_prediction: of ``reading="code"``.
    """

    card = Dpar.card
    gaps = gaps("dpar")
    supports = guarantees(Adjacency.NODE, relations=ZERO_OUT)

    reading: Literal["text", "code"] = "code"
    graph_rate: Annotated[float, Range(0, 1, "(]")] = 0.09
    gamma: Positive = 1e-4
    value_share: Share = 0.5
    features: Literal["unit", "raw"] = "unit"
    batch_size: Count = 60
    clip: Positive = 1.0
    learning_rate: Positive = 5e-3
    epochs: Count = 200
    dropout: Fraction = 0.1
    dropout_at_prediction: bool = True

    def sampled(self, facts: PublicFacts) -> int:
        """N, how many training slots are drawn."""
        train = facts.count("train")
        return max(1, min(train, math.ceil(self.graph_rate * (train if self.reading == TEXT else facts.nodes))))

    def source_count(self, facts: PublicFacts) -> int:
        return min(self.sources, self.sampled(facts))

    def candidates(self, facts: PublicFacts) -> int:
        return self.sampled(facts)

    def weights(self, values: np.ndarray) -> np.ndarray:
        return values

    @property
    def stopping(self) -> dict[str, Any]:
        return {"gamma": self.gamma}

    def shape(self, facts: PublicFacts) -> Shape:
        dropout = self.dropout if self.reading == CODE else 0.0
        sizes = facts.features, self.hidden, facts.classes
        return Shape(
            *sizes,
            raw=self.features == "raw",
            dropout=dropout,
            dropout_at_prediction=bool(dropout) and self.dropout_at_prediction,
        )

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The paper's noise for its claim; no proof is left, so the corrected figure stands beside it."""
        absent = self.absent_gaps()
        gaps = tuple(gap for gap in self.gaps if gap.code not in absent)
        n, m = self.sampled(facts), self.source_count(facts) if self.reading == TEXT else self.sampled(facts)
        steps = self.epochs * math.ceil(m / self.batch_size)
        if not promise.private:
            named = ("pagerank", "weights")[: 0 if self.rows != "private" else 2 if self.select == "em1" else 1]
            exact = (Release(name, Exact(), payers(facts, promise, 1.0), AS_STATED) for name in named)
            last = Release("gradient", Exact(steps), payers(facts, promise, self.clip), AS_STATED)
            return Plan(promise, facts, (*exact, last), gaps=gaps, provable=False)
        inner, delta = promise.epsilon / self.graph_rate, min(promise.target_delta / self.graph_rate / 2, 0.4)
        budget = inner * self.pagerank_share if self.rows == "private" else 0.0
        rows = stated_rows(self, facts, promise, budget, delta, self.value_share) if budget else ()
        counted, rate = (min(1.0, self.batch_size / of) for of in (n, m))
        at = lambda z: epsilon_of([SampledGaussian(z, counted, steps, False)], delta)
        sigma = calibrate_scale(at, inner - budget) * self.column_norm * self.clip
        descent = DpGradient(sigma, self.clip, steps, self.shape(facts).size, rate=rate)
        stated = Release("gradient", descent, payers(facts, promise, self.column_norm * self.clip), AS_STATED)
        part = n / max(1, facts.count("train"))
        plan = Plan(promise, facts, (*rows, stated), promise.epsilon, gaps, provable=False, sampled=part)
        own_row = replace(stated, sensitivity={"train": self.clip})
        return replace(plan, corrected=replace(plan, steps=(*rows, own_row)).epsilon())

    def absent_gaps(self) -> set[str]:
        """Gaps on the card that these options do not have.

        With identity rows nobody is in another's row, and the own one loses its label with the person: its clipped gradient, of
        norm at most C, leaves the sum, which noise for tau C covers unless tau is below 1. Random rows mention others.
        """
        own_rows_only = self.rows == "identity" and self.column_norm >= 1
        return {
            *([ROOT_TWO] if self.select != "gm" or self.rows != "private" else []),
            *([RATE] if self.reading == CODE else []),
            *([CLIPPING] if own_rows_only else []),
        }

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> RankedPredictor:
        text, facts = self.reading == TEXT, curator.facts
        drawn = np.flatnonzero(cast(PaperCurator, curator).sample_training(self.sampled(facts)))
        order = coins.permutation(drawn)
        sources = order[: self.source_count(facts)]
        rows, owners = release_rows(curator, self, sources, drawn, coins), sources
        if not text:
            rows, owners = rows.with_own_rows(order[sources.size :]), order
        rows = rows.clipped_columns(self.column_norm, order=1, up=not text)
        layers = TwoLayers.drawn(self.shape(facts), coins)
        optimizer = learn.Descent(self.learning_rate) if text else learn.Adam(self.learning_rate)
        batches: dict[str, Any] = {"batch_size": self.batch_size, "coins": coins}
        learn_from_rows(curator, layers, rows, owners, optimizer, progress, **batches)
        return RankedPredictor(layers, self.walk)


def stated_rows(
    ranking: Ranking, facts: PublicFacts, promise: Promise, budget: float, delta: float, value_share: float
) -> tuple[Release, ...]:
    """The PageRank releases for ``budget``; the true sensitivities are declared."""
    m, k, candidates = ranking.source_count(facts), ranking.picks_of(facts), ranking.candidates(facts)
    per_row = budget / (2 * math.sqrt(m * math.log(math.e + budget / delta)))
    row_delta = delta / (2 * m)
    if ranking.select == "gm":
        sigma = math.sqrt(2 * math.log(1.25 / row_delta)) * ranking.row_clip / per_row
        bound = payers(facts, promise, math.sqrt(2 * m) * ranking.row_clip)
        return (Release("pagerank", Gaussian(sigma, m * candidates), bound, AS_STATED),)
    share = per_row * (1 - value_share if ranking.select == "em1" else 1)

    def cost(e: float) -> float:
        return 2 * min(k * e, k * e * math.tanh(e) + e * math.sqrt(2 * k * math.log(1 / row_delta)))

    e = float(brentq(lambda x: cost(x) - share, 1e-12, 1e6))
    choice = GumbelTop(ranking.entry_clip / e, k, m, candidates)
    picks = Release("pagerank", choice, payers(facts, promise, ranking.entry_clip), AS_STATED)
    if ranking.select == "em0":
        return (picks,)
    bound = payers(facts, promise, m * k * ranking.entry_clip)
    scale = k * ranking.entry_clip / (per_row * value_share)
    return picks, Release("weights", Laplace(scale, m * k), bound, AS_STATED)
