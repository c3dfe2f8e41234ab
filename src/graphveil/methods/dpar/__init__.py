"""DPAR: decoupled training on private personalised PageRank rows (anonymous ACM submission; code by its authors).

1. *Rows*: for M public sources, the PageRank vector; its top K entries are chosen privately: ``gm`` (Gaussian noise on rows of
   l2 norm C1), ``em0`` (Gumbel noise on entries up to C2, weights 1/K) or ``em1`` (the same, and noisy weights).
2. *Training* on softmax(Pi f(X)) with private gradients; *inference* from own features, or by power iteration on a public graph.

``sound``, node level on **arbitrary** graphs: rows are clipped as a whole (``dpar_plan.py``, ``dpar_release.py``).
``route="gradient"``: f is linear in centred unit rows, so that Pi f(X) = f(Pi X). Every training slot is an example, as in the
authors' code: the M sources with their private rows, all others with their own features. A person visits at most s examples
besides the own: Lemma G with (s + 1, s).
``route="aggregate"``: Z = Pi X + N with columns of Pi of l2 norm at most tau, then gradients with one row per source.
``graph_rate`` q' < 1 blanks slots by secret coins and amplifies the whole run, log(1 + q'(e^eps - 1)).
``published``: M examples, two layers (``dpar_published.py``).
Tests: ``tests/methods/test_dpar.py``, ``tests/graph/test_pagerank.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, Progress
from graphveil.methods.card import Card
from graphveil.methods.common.group_training import calibrated, descend_on_groups
from graphveil.methods.common.own_predictor import OwnPredictor, centred, own_optimizer, release_centre
from graphveil.methods.dpar.bounds import sound_releases
from graphveil.methods.dpar.predictor import RankedPredictor, Shape, TwoLayers, Walk, projected_rows
from graphveil.methods.dpar.published import GAPS, published_plan
from graphveil.methods.dpar.release import release_rows, training_graph
from graphveil.methods.options import Count, Natural, NonNegative, Positive
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import MixtureRows
    from graphveil.methods.dpar.rows import MixedRows

SELECTIONS = ("gm", "em0", "em1")
ROUTES = ("aggregate", "gradient")
ROWS = ("private", "identity", "random")
PROJECTION_COINS = 0xD9A2


class Dpar(PrivateMethod):
    """Private PageRank rows, then private training on them.

    Args:
        select: ``gm``, ``em0`` or ``em1``.
        rows: ``private`` (the method), or an ablation: ``identity`` (only the source itself), ``random`` (public coins).
        route: ``gradient`` or ``aggregate`` (published: gradient).
        sources, picks: M and K.
        row_clip, entry_clip: C1 and C2.
        self_weight: weight of the source in its own row, added after the release (published: 0).
        column_norm, column_rows: tau, and s: how many examples besides the own a person may be part of.
        pagerank, teleport, rho: ``ista`` or ``push``, alpha, regularisation (push: threshold).
        pagerank_share, table_share: parts of the budget (published: pagerank_share of epsilon).
        graph_rate: q', the rate at which slots take part at all.
        projection: width of a public random projection of the features on the aggregate route; 0 for none.
        centring: share of the budget for the private mean of the features on the gradient route; 0 for none.
        steps, batch_size, clip: gradient steps T, B (default: all examples; published 60, and 200 epochs) and C (default 0.5 on
            the sound gradient route, else 1).
        learning_rate, hidden: step size, and width of the two layers of the aggregate route and of published mode.
        propagation: power iterations on a public graph; 0 switches test-time propagation off.
        inductive: train on the graph among training and calibration nodes only.
        mode: ``sound`` or ``published``.
    """

    card = Card(
        name="dpar",
        summary="privately chosen PageRank neighbours of a few sources, private training, free inference on a public graph",
        paper="DPAR: Decoupled Graph Neural Networks with Node-Level Differential Privacy (paper 003)",
        trust="one trusted curator",
        protects="features, labels and all edges of a person, on arbitrary graphs (node level)",
        public="number of nodes, feature width, classes, which nodes are for training, the source slots; at inference with "
        "access='public-graph' the graph and features given",
        formula="softmax(Pi f(X)), Pi = top-K of noisy PageRank rows; inference L <- (1-a) D^-1 A L + a L_0",
        when="when the strongest node adjacency is needed; the private choice of neighbours is close to uniform at every usual "
        "epsilon, so expect a features-only model: rows='identity' was more accurate at every epsilon measured",
    )
    gaps = GAPS

    select: Literal["gm", "em0", "em1"] = "gm"
    rows: Literal["private", "identity", "random"] = "private"
    route: Literal["gradient", "aggregate"] = "gradient"
    sources: Count = 70
    picks: Count = 2
    row_clip: NonNegative = 0.01
    entry_clip: NonNegative = 0.001
    self_weight: NonNegative = 0.5
    column_norm: NonNegative = 1.0
    column_rows: Count = 1
    pagerank: Literal["ista", "push"] = "ista"
    teleport: NonNegative = 0.25
    rho: NonNegative = 1e-4
    pagerank_share: NonNegative = 0.1
    table_share: NonNegative = 0.4
    graph_rate: Positive | None = None
    projection: Natural = 64
    centring: NonNegative = 0.03
    steps: Count = 50
    batch_size: Count | None = None
    clip: NonNegative | None = None
    learning_rate: Positive | None = None
    hidden: Count = 32
    propagation: Natural = 2
    inductive: bool = True
    mode: Literal["sound", "published"] = "sound"

    @property
    def supports(self) -> frozenset[Guarantee]:
        if self.mode == "published":
            return frozenset({Guarantee(Level.NODE, Adjacency.NODE, Relation.ZERO_OUT)})
        people = (Adjacency.NODE, Adjacency.RECORD, Adjacency.BOUNDED_DEGREE)
        return frozenset(Guarantee(Level.NODE, adjacency, relation) for adjacency in people for relation in Relation)

    def check(self) -> None:
        super().check()
        for what, known in (("select", SELECTIONS), ("rows", ROWS), ("route", ROUTES), ("pagerank", ("ista", "push"))):
            if getattr(self, what) not in known:
                raise InputError(f"dpar has no {what} {getattr(self, what)!r}; it has: {', '.join(known)}")
        counts = (self.picks, self.steps, self.batch_size or 1, self.hidden, self.column_rows, self.sources)
        if min(counts) < 1 or min(self.propagation, self.projection) < 0:
            raise InputError("dpar needs picks, steps, batch_size, hidden, column_rows and sources of at least 1")
        scales = (self.row_clip, self.entry_clip, self.column_norm, self.clipping, self.rho)
        if min(scales) <= 0 or not 0 <= self.self_weight < 1 or not 0 < self.rate <= 1 or not 0 < self.teleport < 1:
            raise InputError("dpar needs positive clips, rho and column_norm, self_weight in [0, 1), rates in (0, 1]")
        if min(self.pagerank_share, self.table_share) <= 0 or self.pagerank_share + self.table_share >= 1:
            raise InputError("pagerank_share and table_share must be positive and leave a part to the gradients")
        if not 0 <= self.centring < 1 - self.pagerank_share:
            raise InputError("centring must not be negative and leave a part of the budget to the gradients")

    @property
    def rate(self) -> float:
        return self.graph_rate or (0.09 if self.mode == "published" else 1.0)

    @property
    def aggregated(self) -> bool:
        return self.route == "aggregate" and self.mode == "sound"

    @property
    def linear(self) -> bool:
        return self.route == "gradient" and self.mode == "sound"

    @property
    def clipping(self) -> float:
        return (0.5 if self.linear else 1.0) if self.clip is None else self.clip

    def source_count(self, facts: PublicFacts) -> int:
        return max(1, min(self.sources, facts.count("train")))

    def candidates(self, facts: PublicFacts) -> int:
        """How many slots can be picked: all, or those the inductive training graph consists of."""
        return facts.count("train") + facts.count("calibration") if self.inductive else facts.nodes

    def picks_of(self, facts: PublicFacts) -> int:
        return min(self.picks, self.candidates(facts))

    def shape(self, facts: PublicFacts) -> Shape:
        narrow = self.projection if self.aggregated and self.projection < facts.features else 0
        return Shape(facts.features, self.hidden, facts.classes, narrow, PROJECTION_COINS)

    # -- plan ----------------------------------------------------------------------------------------------------

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if self.mode == "published" and promise.level is not Level.NONE:
            return published_plan(self, facts, promise)
        return calibrated(
            promise,
            lambda mu: sound_releases(self, facts, promise, mu),
            lambda releases: Plan(promise, facts, releases, sampled=self.rate),
        )

    # -- algorithm -----------------------------------------------------------------------------------------------

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> RankedPredictor:
        walk = Walk(self.teleport, self.propagation, self.inductive)
        sources = self._choose_sources(curator, coins, curator.sample_slots())
        if self.linear:
            return RankedPredictor(self._learn_from_everybody(curator, sources, coins, progress), walk)
        rows = release_rows(self, curator, sources, coins)
        layers = TwoLayers.drawn(self.shape(curator.facts), coins)
        if self.aggregated:
            self._learn_from_table(curator, layers, sources, rows, progress)
        else:
            self._learn_from_rows(curator, layers, sources, rows, progress)
        return RankedPredictor(layers, walk)

    def _choose_sources(self, curator: Curator, coins: np.random.Generator, sampled: np.ndarray) -> np.ndarray:
        """M training slots by public coins; the paper takes them among the slots that were sampled."""
        order = coins.permutation(np.flatnonzero(curator.masks["train"]))
        if isinstance(curator, PaperCurator):
            order = np.concatenate([order[sampled[order]], order[~sampled[order]]])
        return order[: self.source_count(curator.facts)]

    def _learn_from_everybody(
        self, curator: Curator, sources: np.ndarray, coins: np.random.Generator, progress: Progress | None
    ) -> OwnPredictor:
        """softmax(W Pi X): a source reads its private row, every other training slot its own features."""
        from graphveil.learn import MLP, MixtureRows

        facts, slots = curator.facts, np.flatnonzero(curator.masks["train"])
        centre = release_centre(curator, of=training_graph(self, curator.masks))
        rest = np.setdiff1d(slots, sources)
        mixed = release_rows(self, curator, sources, coins).with_own_rows(rest).matrix(facts.nodes)

        def inputs(private: Graph, rows: np.ndarray) -> MixtureRows:
            return MixtureRows(centred(private, centre), mixed)

        network = MLP((facts.features + 1, facts.classes), bias=False)
        examples = np.concatenate([sources, rest])
        optimizer = own_optimizer(facts, self.learning_rate or 0.1)
        descend_on_groups(curator, "gradient", network, inputs, optimizer, examples, progress)
        return OwnPredictor(centre, network.layers[0].weight.numpy().copy())

    def _learn_from_table(
        self,
        curator: Curator,
        layers: TwoLayers,
        sources: np.ndarray,
        rows: MixedRows,
        progress: Progress | None,
    ) -> None:
        """Z = Pi X + N, then gradients on (Z_i, y_i): a row of one entry of weight 1."""

        def mix(private: Graph) -> np.ndarray:
            used, where = np.unique(rows.columns, return_inverse=True)
            x = projected_rows(private, layers.shape, used)[where.reshape(rows.columns.shape)]
            return np.einsum("ij,ijf->if", rows.weights, x)

        table = curator.release("table", mix)
        whole = lambda private: table[:, None, :]
        self._descend(curator, layers, sources, whole, np.ones((len(sources), 1)), progress)

    def _learn_from_rows(
        self,
        curator: Curator,
        layers: TwoLayers,
        sources: np.ndarray,
        rows: MixedRows,
        progress: Progress | None,
    ) -> None:
        """As published: gradients on the M rows alone."""
        used, where = np.unique(rows.columns, return_inverse=True)
        where = where.reshape(rows.columns.shape)
        read = lambda private: projected_rows(private, layers.shape, used)[where]
        self._descend(curator, layers, sources, read, rows.weights, progress)

    def _descend(
        self,
        curator: Curator,
        layers: TwoLayers,
        sources: np.ndarray,
        features: Any,
        weights: np.ndarray,
        progress: Progress | None,
    ) -> None:
        import torch

        from graphveil.learn import Adam, GlobalMoment
        from graphveil.methods.dpar.rows import mixed_gradient_sum

        shape = layers.shape
        sizes = (shape.inputs, shape.hidden, shape.classes)
        steps = curator.gradients(
            "gradient", lambda private, rows: (features(private), private.labels[rows]), rows=sources
        )

        def query(prepared: Any, batch: np.ndarray | None) -> np.ndarray:
            x, labels = prepared
            taken = slice(None) if batch is None else batch
            return mixed_gradient_sum(parameters.numpy(), sizes, x[taken], weights[taken], labels[taken], steps.clip)

        parameters = torch.from_numpy(layers.parameters)
        rate = self.learning_rate or (5e-3 if self.mode == "published" else 0.02)
        optimizer = Adam(rate) if self.mode == "published" else GlobalMoment(rate)
        expected = max(1.0, steps.rate * len(sources))
        for step in range(steps.total):
            optimizer.step(parameters, torch.from_numpy(steps.step(query)) / expected)
            if progress is not None:
                progress("gradient", step + 1, steps.total)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> RankedPredictor:
        return RankedPredictor.restore(config, arrays)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        if self.rate < 1:
            assumptions = ("which slots took part stays secret", *assumptions)
        return (*public, "which slots are sources of PageRank rows"), assumptions
