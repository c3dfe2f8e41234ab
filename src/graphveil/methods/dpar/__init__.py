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
As published: M examples, two layers (``published.py``).
Tests: ``tests/methods/test_dpar.py``, ``tests/graph/test_pagerank.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.group_training import calibrated
from graphveil.methods.common.own_predictor import mean_release, release_centre
from graphveil.methods.dpar.algorithm import choose_sources, learn_from_everybody, learn_from_table, release_rows
from graphveil.methods.dpar.bounds import Ranking, row_gradients, row_releases, table_release, visited_gradients
from graphveil.methods.dpar.predictor import RankedPredictor, Shape, TwoLayers, Walk
from graphveil.methods.options import Count, Fraction, Natural, Positive, Range, Share
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.methods.common.own_predictor import OwnPredictor

PEOPLE = (Adjacency.NODE, Adjacency.RECORD, Adjacency.BOUNDED_DEGREE)
PROJECTION_COINS = 0xD9A2
SOURCES_PUBLIC = "which slots are sources of PageRank rows"
TAKING_PART_IS_SECRET = "which slots took part stays secret"


class Dpar(PrivateMethod):
    """Private PageRank rows, then private training on them.

    Args:
        select: ``gm``, ``em0`` or ``em1``.
        rows: ``private`` (the method), or an ablation: ``identity`` (only the source itself), ``random`` (public coins).
        route: ``gradient`` or ``aggregate``.
        sources, picks: M and K.
        row_clip, entry_clip: C1 and C2.
        self_weight: weight of the source in its own row, added after the release.
        column_norm, column_rows: tau, and s: how many examples besides the own a person may be part of.
        pagerank, teleport, rho: ``ista`` or ``push``, alpha, regularisation (push: threshold).
        pagerank_share, table_share: parts of the budget.
        graph_rate: q', the rate at which slots take part at all.
        projection: width of a public random projection of the features on the aggregate route; 0 for none.
        centring: share of the budget for the private mean of the features on the gradient route; 0 for none.
        steps, batch_size: gradient steps T, and B on the gradient route (default: all examples).
        clip, learning_rate: C and step size; default 0.5 and 0.1 on the gradient route, 1 and 0.02 on the aggregate route.
        hidden: width of the two layers of the aggregate route.
        propagation: power iterations on a public graph; 0 switches test-time propagation off.
        inductive: train on the graph among training and calibration nodes only.
    """

    card = card("dpar")
    supports = frozenset(Guarantee(Level.NODE, adjacency, relation) for adjacency in PEOPLE for relation in Relation)

    select: Literal["gm", "em0", "em1"] = "gm"
    rows: Literal["private", "identity", "random"] = "private"
    route: Literal["gradient", "aggregate"] = "gradient"
    sources: Count = 70
    picks: Count = 2
    row_clip: Positive = 0.01
    entry_clip: Positive = 0.001
    self_weight: Fraction = 0.5
    column_norm: Positive = 1.0
    column_rows: Count = 1
    pagerank: Literal["ista", "push"] = "ista"
    teleport: Share = 0.25
    rho: Positive = 1e-4
    pagerank_share: Share = 0.1
    table_share: Share = 0.4
    graph_rate: Annotated[float, Range(0, 1, "(]")] = 1.0
    projection: Natural = 64
    centring: Fraction = 0.03
    steps: Count = 50
    batch_size: Count | None = None
    clip: Positive | None = None
    learning_rate: Positive | None = None
    hidden: Count = 32
    propagation: Natural = 2
    inductive: bool = True

    def check(self) -> None:
        super().check()
        if self.pagerank_share + max(self.table_share, self.centring) >= 1:
            raise InputError("dpar: pagerank_share and table_share (or centring) must leave a part to the gradients")

    @property
    def ranking(self) -> Ranking:
        return Ranking.of(self)

    def shape(self, facts: PublicFacts) -> Shape:
        """The two layers of the aggregate route."""
        narrow = self.projection if self.projection < facts.features else 0
        return Shape(facts.features, self.hidden, facts.classes, narrow, PROJECTION_COINS)

    # -- plan ----------------------------------------------------------------------------------------------------

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        by_route = self._linear_releases if self.route == "gradient" else self._table_releases
        return calibrated(
            promise,
            lambda mu: by_route(facts, promise, mu),
            lambda releases: Plan(promise, facts, releases, sampled=self.graph_rate),
        )

    def _linear_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        """Mean, rows, and gradients on all training slots, for a total Gaussian budget of mu."""
        centring = self.centring if facts.features else 0.0
        rest = 1 - (centring + self._row_share)
        kinds = ("train", "calibration") if self.inductive else None
        mean = (mean_release(facts, promise, mu * math.sqrt(centring), kinds),) if centring else ()
        gradient = visited_gradients(
            self.ranking.source_count(facts) * self.picks,
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
        m, shape = self.ranking.source_count(facts), self.shape(facts)
        table = table_release(m * shape.inputs, self.column_norm, facts, promise, mu * math.sqrt(self.table_share))
        rest = mu * math.sqrt(1 - (self._row_share + self.table_share))
        gradient = row_gradients(m, shape.size, self.steps, self.clip or 1.0, promise, rest)
        return *self._row_releases(facts, promise, mu), table, gradient

    def _row_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        if not self._row_share:
            return ()
        return row_releases(self.ranking, facts, promise, mu * math.sqrt(self._row_share))

    @property
    def _row_share(self) -> float:
        return self.pagerank_share if self.rows == "private" else 0.0

    # -- algorithm -----------------------------------------------------------------------------------------------

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> RankedPredictor:
        curator.sample_slots()
        order = coins.permutation(np.flatnonzero(curator.masks["train"]))
        sources = choose_sources(order, self.ranking.source_count(curator.facts))
        learned = self._learn_linear if self.route == "gradient" else self._learn_from_table
        walk = Walk(self.teleport, self.propagation, self.inductive)
        return RankedPredictor(learned(curator, sources, coins, progress), walk)

    def _learn_linear(
        self, curator: Curator, sources: np.ndarray, coins: np.random.Generator, progress: Progress | None
    ) -> OwnPredictor:
        centre = release_centre(curator, of=self.ranking.slots(curator.masks))
        rows = release_rows(curator, self.ranking, sources, coins).with_self(sources, self._own_weight)
        capped = rows.capped_columns(self.column_rows, sources)
        return learn_from_everybody(curator, centre, capped, sources, self.learning_rate or 0.1, progress)

    def _learn_from_table(
        self, curator: Curator, sources: np.ndarray, coins: np.random.Generator, progress: Progress | None
    ) -> TwoLayers:
        from graphveil.learn import GlobalMoment

        rows = release_rows(curator, self.ranking, sources, coins).with_self(sources, self._own_weight)
        layers = TwoLayers.drawn(self.shape(curator.facts), coins)
        optimizer = GlobalMoment(self.learning_rate or 0.02)
        learn_from_table(curator, layers, rows.clipped_columns(self.column_norm, order=2), sources, optimizer, progress)
        return layers

    @property
    def _own_weight(self) -> float:
        return 0.0 if self.rows == "identity" else self.self_weight

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> RankedPredictor:
        return RankedPredictor.restore(config, arrays)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        secret = (TAKING_PART_IS_SECRET,) if self.graph_rate < 1 else ()
        return (*public, SOURCES_PUBLIC), (*secret, *assumptions)
