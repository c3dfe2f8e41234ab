"""DPDGC as published: one noise multiplier z for all parts, and what is wrong with the bounds it goes by.

Features as they are; for node level a node is in at most D rows of A; the epoch of the classifier is chosen on validation labels.
Claimed: codes cost one replaced row at noise 2z, whatever the group (their noise is 2z sqrt(group), as in the authors' code);
table c, c sqrt k or c sqrt(2D); classifier one row; z by the paper's accounting, Renyi bounds for batches of a fixed size
(``privacy/accounting/paper.py``). Text and released code differ, so both can be had:

============  ====================================================  =============================================================
``reading``   text                                                  code
============  ====================================================  =============================================================
codes         kept at norm c                                        free: the normalisation is written into a copy (D10)
table         unit rows of A W + noise + b                          A W + b, noise for codes of norm c
classifier    one layer per input, two on both; noise z C (D6)      LINKX with residual; noise 2 z C; batch normalisation where
                                                                    records are public (``batch_norm``; without: of the table)
============  ====================================================  =============================================================

Where the truth is known (text, edge and k-neighbor level) it is declared, so the certificate prints it beside the claim; at node
level the lists cut by the code leave no bound, and free codes leave none at any level. Without privacy: ``without_noise.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from graphveil import learn
from graphveil.errors import InputError
from graphveil.graph import Graph
from graphveil.methods.base import EDGES, guarantees
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.private_training import poisson_release
from graphveil.methods.common.trainer import PaperBatches, records_are_public
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.dpdgc.algorithm import ListsOf, decouple, learned_codes, noisy_table
from graphveil.methods.dpdgc.bounds import AdjacencyRows, group_of
from graphveil.methods.dpdgc.classifier import CODE, TEXT, PaperPredictor, PaperShape
from graphveil.methods.options import Count, Fraction, Positive
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian
from graphveil.privacy.noise import scaling_error, summation_error
from graphveil.privacy.plan import Gap, Plan, Release
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
RAW_GRAPH = "the raw graph: nothing is protected"
DIRECTED, CAP, ROWS, ROOT, TWO_CLIPS, SELECTION, FREE_CODES = gaps("dpdgc")


class PublishedDpdgc(PaperBatches):
    """DPDGC with the paper's networks, bounds and accounting.

    Args:
        reading: the text of the paper, or the authors' released code, where these differ.
        rows: what row i of A holds; the authors' code trains on ``own-list``.
        max_degree: D, the most rows of A that a node is in at node level.
        row_norm: c, the norm of a code.
        offset: ``scaled`` keeps b at the scale of W, so that c changes nothing but the unit; ``literal`` adds b as it is, next to
            codes of norm c, as Algorithm 2 has it.
        open_epochs, dropout: Adam on batches for the classifier at edge level and without privacy.
        batch_norm: of ``reading="code"``, at edge level and without privacy.
    """

    card = Dpdgc.card
    gaps = gaps("dpdgc")
    predictor = PaperPredictor
    least_k = 0
    supports = EDGES | guarantees(Adjacency.K_NEIGHBOR)
    supports |= guarantees(Adjacency.NODE, relations=(Relation.REPLACE,))

    reading: Literal["text", "code"] = "code"
    rows: Literal["listed-by", "own-list"] = "own-list"
    width: Count = 64
    hidden: Count = 64
    max_degree: Count = 100
    row_norm: Positive = 1e-8
    offset: Literal["scaled", "literal"] = "scaled"
    open_epochs: Count = 100
    dropout: Fraction = 0.5
    batch_norm: bool = True

    def check(self) -> None:
        if self.reading == CODE and self.width != self.hidden:
            raise InputError("reading='code' adds the table to the hidden layer: width and hidden must be equal")
        if self.reading == CODE and self.offset == "literal":
            raise InputError("offset='literal' belongs to reading='text': the codes of reading='code' have no norm")

    def shape(self, facts: PublicFacts, opened: bool = False) -> PaperShape:
        """``opened``: records are public."""
        normal = self.batch_norm and self.reading == CODE and opened
        sizes = facts.features, facts.classes, self.width, self.hidden
        return PaperShape(*sizes, raw=True, reading=self.reading, batch_norm=normal)

    def batch_gradients(self, normal: bool) -> dict[str, Any]:
        """How ordinary training takes gradients, with or without batch normalisation."""
        from graphveil.learn.batch_norm import batch_gradient

        return {"gradient_sum": batch_gradient} if normal else {}

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The paper's noise for its claim, with the truth declared where it is known."""
        if promise.level is Level.NONE:
            return Plan(promise, facts, (Release("graph", Exact(), payers(facts, promise, 1.0), RAW_GRAPH),))
        steps, rate = self.batches(facts)
        stages = 1 if promise.level is Level.EDGE else 2
        replacing = replace(promise, relation=Relation.REPLACE)
        scale = claimed_noise(replacing, stages=stages, gaussians=1, steps=steps, rate=rate)
        releases = self._releases(facts, promise, scale)
        true = Plan(promise, facts, releases, claim=promise.epsilon)
        known = true.epsilon() if promise.private else None
        found = self._gaps(promise, known is not None and known > promise.epsilon)
        if promise.level is Level.NODE or {FREE_CODES, TWO_CLIPS} & set(found):
            stated = tuple(as_stated(release, scale) for release in releases)
            return replace(true, steps=stated, gaps=found, provable=False, corrected=known)
        return replace(true, gaps=found, provable=SELECTION not in found, corrected=known) if found else true

    def _gaps(self, promise: Promise, exceeded: bool) -> tuple[Gap, ...]:
        """What is wrong with the claim under this promise; ``exceeded``: the declared truth costs more than the claim."""
        text, found = self.reading == TEXT, []
        match promise.level:
            case Level.EDGE:
                found += [DIRECTED] if exceeded else []
            case Level.K_NEIGHBOR:
                found += [ROOT] if exceeded else []
                found += [TWO_CLIPS] if text and promise.relation is Relation.REPLACE else []
            case _:
                found += [CAP, ROWS, ROOT, *([TWO_CLIPS] if text else [])]
        found += [] if promise.level is Level.EDGE else [SELECTION]
        return (*found, *([] if text else [FREE_CODES]))

    def _releases(self, facts: PublicFacts, promise: Promise, scale: float) -> tuple[Release, ...]:
        """Codes, table and classifier with noise multiplier ``scale``, declared at what they really move."""
        public, clip, shape = promise.level is Level.EDGE, self.clip, self.shape(facts)
        batches = steps, rate = self.batches(facts)
        codes: DpGradient | Exact = Exact(steps)
        table: Gaussian | Exact = Exact()
        moved, records = 1.0, facts.count("train")
        if promise.private:
            cap = self.max_degree
            near = cap if promise.k is None else promise.k
            group, reached = (1, 1) if public else (near + 1, 2 * cap if promise.k is None else near)
            sigma, size = 2 * math.sqrt(group) * clip * scale, (facts.nodes + 1) * shape.width
            slack, touched = 2 * summation_error(records, clip), true_group(promise, cap)
            codes = DpGradient(sigma, clip, steps, size, rate=rate, slack=slack, group=touched)
            claimed = self.row_norm * math.sqrt(reached)
            both = promise.adjacency is Adjacency.EDGE_UNDIRECTED or (
                promise.level is Level.K_NEIGHBOR and promise.relation is Relation.REPLACE
            )
            moved = claimed * (math.sqrt(2) if both else 1.0) * (1 + scaling_error(facts.nodes))
            table = Gaussian(scale * claimed, facts.nodes * shape.width) if claimed else Exact()
        multiplier = scale if self.reading == TEXT else 2 * scale
        releases = (
            Release("codes", codes, payers(facts, promise, clip), AS_STATED),
            Release("table", table, payers(facts, promise, moved), AS_STATED, not public),
            poisson_release("classifier", promise, records, shape.size, batches, clip, multiplier),
        )
        return releases[:2] if public else releases

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> PaperPredictor:
        promise, rows = curator.plan.promise, AdjacencyRows(self.rows)
        predictor = PaperPredictor.build(self.shape(curator.facts, records_are_public(promise)))
        normal = predictor.shape.batch_norm
        opened = {"epochs": self.open_epochs, "dropout": self.dropout, **self.batch_gradients(normal)}
        train = self.trainer(curator, coins, progress, **opened)
        if promise.level is Level.NONE:
            from graphveil.methods.dpdgc.without_noise import decouple_openly

            return decouple_openly(curator, predictor, rows, coins, progress, self)
        norm = None if self.reading == CODE else self.row_norm if self.offset == "literal" else 1.0
        optimizer = learn.Adam(self.learning_rate)
        codes = partial(learned_codes, curator, self.width, optimizer, coins, progress, rows, norm=norm)
        table = partial(free_table, standard=promise.level is Level.EDGE and not normal)
        if self.reading == TEXT:
            table = partial(noisy_table, norm=self.row_norm)
        if self.offset == "literal":
            table = partial(literal_table, norm=self.row_norm)
        cap = self.max_degree if promise.level is Level.NODE else None
        return decouple(curator, predictor, train, codes, coins, rows=rows, cap=cap, table=table)


def free_table(
    curator: Curator,
    codes: np.ndarray | None,
    offset: np.ndarray | float,
    lists: ListsOf,
    rows: AdjacencyRows,
    standard: bool,
) -> np.ndarray:
    """A W + b as the authors' code releases it: with the noise of codes of norm c, which these are far above.

    ``standard``: columns standardised, for a classifier without batch normalisation.
    """

    def query(private: Graph) -> np.ndarray:
        return lists(private).aggregate(codes)  # type: ignore[arg-type]

    table = np.asarray(curator.release("table", query) + offset)
    return standardised(table) if standard else table


def literal_table(
    curator: Curator,
    codes: np.ndarray | None,
    offset: np.ndarray | float,
    lists: ListsOf,
    rows: AdjacencyRows,
    norm: float,
) -> np.ndarray:
    """unit(A W + N + b) with codes of norm c and b as it is."""
    assert codes is not None
    return noisy_table(curator, codes / norm, offset / norm, lists, rows, norm)


def standardised(table: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1."""
    return np.asarray((table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-12))


def as_stated(release: Release, scale: float) -> Release:
    """A release with the sensitivity that the paper's noise is made for, so that the suite can measure against it."""
    if not isinstance(release.mechanism, DpGradient):
        return release
    plain = replace(release.mechanism, group=None, replaces=False)
    return replace(release, mechanism=plain, sensitivity=dict.fromkeys(release.sensitivity, plain.sigma / scale))


def true_group(promise: Promise, cap: int) -> tuple[int, int]:
    """Rows that really change; at node level those of a record that is in at most D rows before and after."""
    counted = replace(promise, adjacency=Adjacency.RECORD) if promise.level is Level.NODE else promise
    return group_of(counted, cap)
