"""DPDGC as published: one noise multiplier z for all parts, and what is wrong with the bounds it goes by.

Features as they are; lists cut to D for node level; codes of norm c = 1e-8. Claimed: codes cost one replaced row at noise 2z,
whatever the group (their noise is 2z sqrt(group), as in the authors' code); table c, c sqrt k or c sqrt(2D); classifier one row
at noise z ("Opacus default"); z by the paper's accounting, Renyi bounds for batches of a fixed size
(``privacy/accounting/paper.py``). Where the truth is known (edge and k-neighbor level) it is declared, so the certificate prints
it beside the claim; at node level the lists cut by the code leave no bound.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from graphveil import learn
from graphveil.methods.base import EDGES, ZERO_OUT, guarantees
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.branches import BranchPredictor, BranchShape
from graphveil.methods.common.private_training import poisson_release
from graphveil.methods.common.trainer import PaperBatches
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.dpdgc.algorithm import decouple, learned_codes
from graphveil.methods.dpdgc.bounds import group_of
from graphveil.methods.options import Count, Fraction, Natural, Positive
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian
from graphveil.privacy.noise import scaling_error, summation_error
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
DIRECTED, CAP, ROWS, ROOT, TWO_CLIPS = gaps("dpdgc")


class PublishedDpdgc(PaperBatches):
    """DPDGC with the paper's networks, bounds and accounting.

    Args:
        max_degree: D, to which everybody's list is cut at node level.
        open_epochs, dropout: Adam on batches for the classifier at edge level.
    """

    card = Dpdgc.card
    gaps = gaps("dpdgc")
    predictor = BranchPredictor
    supports = EDGES | guarantees(Adjacency.K_NEIGHBOR, relations=ZERO_OUT)
    supports |= guarantees(Adjacency.NODE, relations=(Relation.REPLACE,))

    width: Count = 64
    hidden: Natural = 64
    max_degree: Count = 100
    row_norm: Positive = 1e-8
    open_epochs: Count = 100
    dropout: Fraction = 0.5

    def shape(self, facts: PublicFacts, promise: Promise) -> BranchShape:
        return BranchShape(facts.features, facts.classes, self.width, self.hidden, raw=promise.level is not Level.NONE)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The paper's noise for its claim, with the truth declared where it is known."""
        if promise.level is Level.NONE:
            return Dpdgc(width=self.width, row_norm=self.row_norm).design(facts, promise)
        steps, rate = self.batches(facts)
        stages = 1 if promise.level is Level.EDGE else 2
        replacing = replace(promise, relation=Relation.REPLACE)
        scale = claimed_noise(replacing, stages=stages, gaussians=1, steps=steps, rate=rate)
        releases = self._releases(facts, promise, scale)
        true = Plan(promise, facts, releases, claim=promise.epsilon)
        known = true.epsilon() if promise.private else None
        if promise.level is Level.NODE:
            stated = tuple(as_stated(release, scale) for release in releases)
            gaps = (CAP, ROWS, ROOT, TWO_CLIPS)
            return replace(true, steps=stated, gaps=gaps, provable=False, corrected=known)
        if known is not None and known > promise.epsilon:
            return replace(true, gaps=(DIRECTED,) if promise.level is Level.EDGE else (ROOT,))
        return true

    def _releases(self, facts: PublicFacts, promise: Promise, scale: float) -> tuple[Release, ...]:
        """Codes, table and classifier with noise multiplier ``scale``, declared at what they really move."""
        public, clip, shape = promise.level is Level.EDGE, self.clip, self.shape(facts, promise)
        batches = steps, rate = self.batches(facts)
        codes: DpGradient | Exact = Exact(steps)
        table: Gaussian | Exact = Exact()
        moved, records = 1.0, facts.count("train")
        if promise.private:
            cap = self.max_degree
            group, reached = (1, 1) if public else ((promise.k or cap) + 1, promise.k or 2 * cap)
            sigma, size = 2 * math.sqrt(group) * clip * scale, (facts.nodes + 1) * shape.width
            slack, touched = 2 * summation_error(records, clip), true_group(promise, cap)
            codes = DpGradient(sigma, clip, steps, size, rate=rate, slack=slack, group=touched)
            claimed = self.row_norm * math.sqrt(reached)
            table = Gaussian(scale * claimed, facts.nodes * shape.width)
            rows = math.sqrt(2) if promise.adjacency is Adjacency.EDGE_UNDIRECTED else 1.0
            moved = claimed * rows * (1 + scaling_error(facts.nodes))
        releases = (
            Release("codes", codes, payers(facts, promise, clip), AS_STATED),
            Release("table", table, payers(facts, promise, moved), AS_STATED, not public),
            poisson_release("classifier", promise, records, shape.size, batches, clip, scale),
        )
        return releases[:2] if public else releases

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> BranchPredictor:
        promise = curator.plan.promise
        opened = {"epochs": self.open_epochs, "dropout": self.dropout}
        train = self.trainer(curator, coins, progress, peeks=False, **opened)
        shape = self.shape(curator.facts, promise)
        codes = partial(learned_codes, curator, self.width, learn.Adam(self.learning_rate), coins, progress)
        cap = self.max_degree if promise.level is Level.NODE else None
        return decouple(curator, shape, train, codes, coins, cap=cap, norm=self.row_norm)


def as_stated(release: Release, scale: float) -> Release:
    """A release with the sensitivity that the paper's noise is made for, so that the suite can measure against it."""
    if not isinstance(release.mechanism, DpGradient):
        return release
    plain = replace(release.mechanism, group=None, replaces=False)
    return replace(release, mechanism=plain, sensitivity=dict.fromkeys(release.sensitivity, plain.sigma / scale))


def true_group(promise: Promise, cap: int) -> tuple[int, int]:
    """Rows that really change; at node level those of a record whose own list has at most D entries."""
    counted = replace(promise, adjacency=Adjacency.RECORD) if promise.level is Level.NODE else promise
    return group_of(counted, cap)
