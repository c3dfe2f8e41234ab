"""DPAR: decoupled training on private personalised PageRank rows (anonymous ACM submission; code by its authors).

1. *Rows*: for M public sources, the PageRank vector; its top K entries are chosen privately: ``gm`` (Gaussian noise on rows of
   l2 norm C1), ``em0`` (Gumbel noise on entries up to C2, weights 1/K) or ``em1`` (the same, and noisy weights).
2. *Training* on softmax(Pi f(X)) with private gradients; *inference* from own features, or by power iteration on a public graph.

Sound, node level on **arbitrary** graphs: rows are clipped as a whole (``bounds.py``).
``route="gradient"``: f is linear in centred unit rows, so that Pi f(X) = f(Pi X). Every training slot is an example, as in the
authors' code: the M sources with their private rows, all others with their own features. A person visits at most s examples
besides the own: Lemma G with (s + 1, s).
``route="aggregate"``: Z = Pi X + N with columns of Pi of l2 norm at most tau, then gradients with one row per source.
``graph_rate`` q' < 1 blanks slots by secret coins and amplifies the whole run, log(1 + q'(e^eps - 1)).
As published, in two readings: two layers (``published.py``).
Tests: ``tests/methods/test_dpar.py``, ``tests/graph/test_pagerank.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from graphveil import learn
from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, guarantees
from graphveil.methods.card import card
from graphveil.methods.common.own_predictor import mean_release, release_centre
from graphveil.methods.common.private_training import calibrated, full_batch_release
from graphveil.methods.dpar.algorithm import learn_from_everybody, learn_from_table, release_rows
from graphveil.methods.dpar.bounds import Ranking, row_releases, table_release, visited_gradients
from graphveil.methods.dpar.predictor import RankedPredictor, Shape, TwoLayers, Walk
from graphveil.methods.options import Count, Fraction, Natural, Positive, Range, Share
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

PROJECTION_COINS = 0xD9A2
SOURCES_PUBLIC = "which slots are sources of PageRank rows"
TABLE_ROW_LEMMA = "given the table, a source owns one clipped row"
TAKING_PART_IS_SECRET = "which slots took part stays secret"


class RankedMethod(Ranking, PrivateMethod):
    """What both modes have in common."""

    predictor = RankedPredictor

    column_norm: Positive = 1.0
    pagerank_share: Share = 0.1
    graph_rate: Annotated[float, Range(0, 1, "(]")] = 1.0
    hidden: Count = 32
    propagation: Natural = 2

    @property
    def walk(self) -> Walk:
        return Walk(self.teleport, self.propagation, self.inductive)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        secret = (TAKING_PART_IS_SECRET,) if self.graph_rate < 1 else ()
        return (*public, SOURCES_PUBLIC), (*secret, *assumptions)


class Dpar(RankedMethod):
    """Private PageRank rows, then private training on them.

    Args:
        route: ``gradient`` or ``aggregate``.
        self_weight: weight of the source in its own row, added after the release.
        column_norm, column_rows: tau, and s: how many examples besides the own a person may be part of.
        pagerank_share, table_share: parts of the budget.
        graph_rate: q', the rate at which slots take part at all.
        projection: width of a public random projection of the features on the aggregate route; 0 for none.
        centring: share of the budget for the private mean of the features on the gradient route; 0 for none.
        steps, batch_size: gradient steps T, and B on the gradient route (default: all examples).
        clip, learning_rate: C and step size; default 0.5 and 0.1 on the gradient route, 1 and 0.02 on the aggregate route.
        propagation: power iterations on a public graph; 0 switches test-time propagation off.
    """

    card = card("dpar")
    supports = guarantees(Adjacency.NODE, Adjacency.RECORD, Adjacency.BOUNDED_DEGREE)

    route: Literal["gradient", "aggregate"] = "gradient"
    self_weight: Fraction = 0.5
    column_rows: Count = 1
    table_share: Share = 0.4
    projection: Natural = 64
    centring: Fraction = 0.03
    steps: Count = 50
    batch_size: Count | None = None
    clip: Positive | None = None
    learning_rate: Positive | None = None

    def check(self) -> None:
        super().check()
        if self.pagerank_share + max(self.table_share, self.centring) >= 1:
            raise InputError("dpar: pagerank_share and table_share (or centring) must leave a part to the gradients")

    def shape(self, facts: PublicFacts) -> Shape:
        """The two layers of the aggregate route."""
        narrow = self.projection if self.projection < facts.features else 0
        return Shape(facts.features, self.hidden, facts.classes, narrow, PROJECTION_COINS)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        by_route = self._linear_releases if self.route == "gradient" else self._table_releases
        return calibrated(promise, facts, partial(by_route, facts, promise), self.graph_rate)

    def _linear_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        """Mean, rows, and gradients on all training slots, for a total Gaussian budget of mu."""
        centring = self.centring if facts.features else 0.0
        rest = 1 - (centring + self._row_share)
        kinds = ("train", "calibration") if self.inductive else None
        mean = (mean_release(facts, promise, mu * math.sqrt(centring), kinds),) if centring else ()
        gradient = visited_gradients(
            self.source_count(facts) * self.picks,
            0 if self.rows == "identity" else self.column_rows,
            facts,
            promise,
            mu * math.sqrt(rest),
            steps=self.steps,
            batch_size=self.batch_size,
            clip=self.clip or 0.5,
        )
        return *mean, *self._row_releases(facts, promise, mu), gradient

    def _table_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        """Rows, the table they give, and gradients on its rows, for a total Gaussian budget of mu."""
        m, shape = self.source_count(facts), self.shape(facts)
        table = table_release(m * shape.inputs, self.column_norm, facts, promise, mu * math.sqrt(self.table_share))
        rest = mu * math.sqrt(1 - (self._row_share + self.table_share))
        stage: dict[str, Any] = {"steps": self.steps, "clip": self.clip or 1.0, "lemma": TABLE_ROW_LEMMA}
        gradient = full_batch_release("gradient", promise, m, shape.size, mu=rest, **stage)
        return *self._row_releases(facts, promise, mu), table, gradient

    def _row_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        share = self._row_share
        return row_releases(self, facts, promise, mu * math.sqrt(share)) if share else ()

    @property
    def _row_share(self) -> float:
        return self.pagerank_share if self.rows == "private" else 0.0

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> RankedPredictor:
        curator.sample_slots()
        order = coins.permutation(np.flatnonzero(curator.masks["train"]))
        sources = order[: self.source_count(curator.facts)]
        slots = np.flatnonzero(self.slots(curator.masks))
        centre = release_centre(curator, of=self.slots(curator.masks)) if self.route == "gradient" else None
        own_weight = 0.0 if self.rows == "identity" else self.self_weight
        rows = release_rows(curator, self, sources, slots, coins).with_self(sources, own_weight)
        if centre is not None:
            capped = rows.capped_columns(self.column_rows, sources)
            own = learn_from_everybody(curator, centre, capped, sources, self.learning_rate or 0.1, progress)
            return RankedPredictor(own, self.walk)
        layers = TwoLayers.drawn(self.shape(curator.facts), coins)
        optimizer = learn.GlobalMoment(self.learning_rate or 0.02)
        clipped = rows.clipped_columns(self.column_norm, order=2)
        learn_from_table(curator, layers, clipped, sources, optimizer, progress)
        return RankedPredictor(layers, self.walk)
