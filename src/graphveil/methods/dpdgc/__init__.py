"""DPDGC: decoupled graph convolution (Chien, Chen, Pan, Ozgur and Milenkovic, NeurIPS 2023).

1. *Codes*: a vector W_k per node, learned from the adjacency and the training labels with private gradients.
2. *Table*: Z = unit(A_w W + N(0, sigma^2) + b), released once. Decoupled: features never travel, so only column r moves.
3. *Classifier*: one layer on own features, one on Z, joined, and a head.

``sound``: groups and bounds of ``dpdgc_bounds.py``; Poisson batches with Lemma G for the codes, full-batch private gradients for
the classifier; lists cut to ``max_degree`` of the sender's *own* entries, which is stable under ``record``. ``published``:
features as they are, the paper's bounds after cutting lists to D for node level, noise 2 sqrt(group) as in the authors' code,
rows of norm c = 1e-8.
Just before noise is added, the norms of the codes are checked against c: a normalisation that got lost cannot pass.
Tests: ``tests/methods/test_dpdgc.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphveil.errors import InputError, PrivacyError
from graphveil.methods.base import PrivateMethod, Progress
from graphveil.methods.card import Card
from graphveil.methods.common.aggregation import aggregate, plain_sum
from graphveil.methods.common.group_training import calibrated, descend_on_groups, group_release
from graphveil.methods.common.open_training import train_openly
from graphveil.methods.common.own_predictor import GROWTH, mean_release, own_optimizer, release_centre
from graphveil.methods.common.private_training import descend_privately, full_batch_release
from graphveil.methods.dpdgc.bounds import group_of, own_row_excluded, table_bound
from graphveil.methods.dpdgc.predictor import DecoupledPredictor, Shape
from graphveil.methods.dpdgc.published import GAPS, published_plan
from graphveil.methods.options import Count, Fraction, Natural, NonNegative, Positive
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian, RandomizedResponse
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation

if TYPE_CHECKING:
    from graphveil.graph import Graph, Lists

CODES = ("learned", "labels", "rr-labels", "random")
CODES_LEMMA = "Lemma G: one record touches a bounded group of adjacency rows, each clipped"


class Dpdgc(PrivateMethod):
    """A private table of neighbours' codes beside the own features.

    Args:
        codes: ``learned`` (the paper), ``labels`` (neighbours' training labels), ``rr-labels`` or ``random``.
        width: numbers per code; default 16, or as many as classes for label codes.
        hidden: width of the two branches; 0 for none (logits = X U + Z V), the default where gradients are private; 64 elsewhere.
        max_degree: sound: entries kept of everybody's own list for learned codes at node level (default 5); published: D (100).
        row_norm: the norm c of a code; privacy-neutral.
        code_steps, code_rate, code_clip, code_learning_rate: Poisson gradient steps of the codes.
        steps, clip, learning_rate: full-batch gradient steps of the classifier.
        classifier_share, centring: parts of mu^2, where records are private.
        code_share: the codes' part of the rest, which they share with the table (rr-labels: part of epsilon).
        epochs, open_learning_rate, dropout: ordinary training of the classifier at edge level.
        paper_epochs, batch_size, paper_learning_rate, paper_clip: published mode.
        mode: ``sound`` or ``published``.
    """

    card = Card(
        name="dpdgc",
        summary="learns a code per node from the edges alone, sums neighbours' codes with noise, and joins them to own features",
        paper="Differentially Private Decoupled Graph Convolutions for Multigranular Topology Protection, NeurIPS 2023",
        trust="one trusted curator",
        protects="edges (edge level); features, labels and contacts (k-neighbor and node level)",
        public="number of nodes, feature width, classes, which nodes are for training; at edge level features and labels",
        formula="Z = unit(A_w W + N(0, sigma^2) + b); logits = head(selu([X U, Z V])), or X U + Z V",
        when="few protected edges per person (k = 1); at node level codes='labels' is the better choice: nothing to learn, "
        "sensitivity 1. The authors' released code loses the normalisation of W, so its noise is about 1e8 times "
        "smaller than its accounting assumes: its printed figures are not comparable with any private run",
    )
    gaps = GAPS

    codes: Literal["learned", "labels", "rr-labels", "random"] = "learned"
    width: Count | None = None
    hidden: Natural | None = None
    max_degree: Count | None = None
    row_norm: NonNegative | None = None
    code_steps: Count = 50
    code_rate: Positive = 0.2
    code_clip: NonNegative = 0.5
    code_learning_rate: Positive = 0.05
    steps: Count = 100
    clip: NonNegative = 0.5
    learning_rate: Positive = 0.1
    code_share: NonNegative = 0.4
    classifier_share: NonNegative = 0.7
    centring: NonNegative = 0.01
    epochs: Count = 100
    open_learning_rate: Positive = 3e-3
    dropout: Fraction = 0.5
    paper_epochs: Count = 100
    batch_size: Count = 64
    paper_learning_rate: Positive = 1e-3
    paper_clip: NonNegative = 1.0
    mode: Literal["sound", "published"] = "sound"

    @property
    def supports(self) -> frozenset[Guarantee]:
        edges = {
            Guarantee(Level.EDGE, a, Relation.ZERO_OUT) for a in (Adjacency.EDGE_UNDIRECTED, Adjacency.EDGE_DIRECTED)
        }
        near = Guarantee(Level.K_NEIGHBOR, Adjacency.K_NEIGHBOR, Relation.ZERO_OUT)
        if self.mode == "published":
            return frozenset(edges | {near, Guarantee(Level.NODE, Adjacency.NODE, Relation.REPLACE)})
        return frozenset(edges | {near} | {Guarantee(Level.NODE, Adjacency.RECORD, relation) for relation in Relation})

    def check(self) -> None:
        super().check()
        if self.codes not in CODES:
            raise InputError(f"dpdgc has no codes {self.codes!r}; it has: {', '.join(CODES)}")
        if self.mode == "published" and self.codes != "learned":
            raise InputError(f"published dpdgc learns its codes; codes={self.codes!r} needs mode='sound'")
        if min(self.cap, self.code_steps, self.steps, self.width or 1) < 1:
            raise InputError("dpdgc needs max_degree, code_steps, steps and width of at least 1")
        if not (0 < self.code_rate <= 1 and self.norm > 0):
            raise InputError("dpdgc needs code_rate in (0, 1] and a positive row_norm")
        if not (self.classifier_share > 0 and self.centring >= 0 and self.classifier_share + self.centring < 1):
            raise InputError("classifier_share and centring must leave a part of the budget to the codes and the table")
        if not 0 < self.code_share < 1:
            raise InputError(f"code_share must lie between 0 and 1, got {self.code_share}")

    @property
    def cap(self) -> int:
        return self.max_degree or (100 if self.mode == "published" else 5)

    @property
    def norm(self) -> float:
        return self.row_norm or (1e-8 if self.mode == "published" else 1.0)

    @property
    def _learned(self) -> bool:
        return self.codes == "learned"

    def shape(self, facts: PublicFacts, promise: Promise) -> Shape:
        private = self.mode == "sound" and promise.level not in (Level.EDGE, Level.NONE)
        width = self.width or (64 if self.mode == "published" else 16)
        if self.codes in ("labels", "rr-labels"):
            width = facts.classes
        paper = self.mode == "published" and promise.level is not Level.NONE
        hidden = (0 if private else 64) if self.hidden is None else self.hidden
        return Shape(facts.features, facts.classes, width, hidden, paper)

    # -- plan ----------------------------------------------------------------------------------------------------

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if self.mode == "published" and promise.level is not Level.NONE:
            return published_plan(self, facts, promise)
        return calibrated(
            promise,
            lambda mu: self._releases(facts, promise, mu),
            lambda releases: Plan(promise, facts, releases),
        )

    def _releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        open_records = promise.level in (Level.EDGE, Level.NONE)
        parts = {"mean": 0.0 if open_records or not facts.features else self.centring}
        parts["classifier"] = 0.0 if open_records else self.classifier_share
        parts["codes"] = (1 - sum(parts.values())) * (self.code_share if self._learned else 0.0)
        parts["table"] = 1 - sum(parts.values())
        share = {name: mu * math.sqrt(part) for name, part in parts.items()}
        releases = [mean_release(facts, promise, share["mean"])] if parts["mean"] else []
        releases += self._code_releases(facts, promise, share["codes"])
        releases.append(self._table_release(facts, promise, share["table"]))
        if not open_records:
            size = self.shape(facts, promise).classifier_size
            stage = {"steps": self.steps, "clip": self.clip, "mu": share["classifier"], "growth": GROWTH}
            releases.append(full_batch_release("classifier", promise, facts, size, **stage))
        return tuple(releases)

    def _code_releases(self, facts: PublicFacts, promise: Promise, mu: float) -> list[Release]:
        if self.codes == "rr-labels" and promise.level not in (Level.EDGE, Level.NONE):
            lemma = "one training record has one label; leaving it blank is one of the categories"
            response: Any = Exact()
            if promise.private:
                response = RandomizedResponse(self.code_share * promise.epsilon, facts.classes + 1)
            return [Release("codes", response, {"train": 1.0}, lemma)]
        if not self._learned:
            return []
        size = (facts.nodes + 1) * self.shape(facts, promise).width
        group = group_of(promise, self.cap)
        return [
            group_release(
                "codes",
                promise,
                dict.fromkeys(payers(facts, promise), self.code_clip),
                size,
                group=group,
                records=facts.count("train"),
                steps=self.code_steps,
                rate=self.code_rate,
                clip=self.code_clip,
                mu=mu,
                lemma=CODES_LEMMA,
            )
        ]

    def _table_release(self, facts: PublicFacts, promise: Promise, mu: float) -> Release:
        released = self._codes_released(promise)
        lemma = f"sum of codes of norm {self.norm:g}, {promise.adjacency}, {promise.relation}"
        kinds, excluded = payers(facts, promise), own_row_excluded(promise, released)
        if not promise.private:
            return Release("table", Exact(), dict.fromkeys(kinds, 1.0), lemma, excluded)
        bound = self.norm * table_bound(promise, released) * (1 if self.norm == 1 else 1 + 1e-9)
        mechanism = Gaussian.for_mu(bound, mu, facts.nodes * self.shape(facts, promise).width)
        return Release("table", mechanism, dict.fromkeys(kinds, bound), lemma, excluded)

    def _codes_released(self, promise: Promise) -> bool:
        """Whether the codes are fixed before the table is made, so that a change of record does not move them."""
        return self.codes in ("learned", "random") or (self.codes == "rr-labels" and promise.level is not Level.EDGE)

    # -- algorithm -----------------------------------------------------------------------------------------------

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> DecoupledPredictor:
        predictor = DecoupledPredictor.build(self.shape(curator.facts, curator.plan.promise), release_centre(curator))
        predictor.network.initialise(coins)
        key = int(coins.integers(2**32))
        codes, offset = self._codes(curator, coins, key, progress)
        predictor.table = self._table(curator, codes, offset, key)
        self._train(curator, predictor, coins, progress)
        return predictor

    def lists(self, graph: Graph, promise: Promise, key: int) -> Lists:
        """The lists along which learned codes travel: at node level everybody's own list, cut to ``max_degree`` entries."""
        if self._learned and promise.level is Level.NODE:
            return graph.lists.capped(self.cap, np.random.default_rng(key))
        return graph.lists

    def _codes(
        self, curator: Curator, coins: np.random.Generator, key: int, progress: Progress | None
    ) -> tuple[np.ndarray | None, np.ndarray | float]:
        """W and b; None where the codes are the labels themselves."""
        from graphveil.learn import Adam, GlobalMoment
        from graphveil.methods.dpdgc import codes as source

        facts, promise = curator.facts, curator.plan.promise
        width, train = self.shape(facts, promise).width, np.flatnonzero(curator.masks["train"])
        if self.codes == "random":
            return source.random_codes(facts.nodes, width, coins), 0.0
        if self.codes == "labels" or not self._codes_released(promise):
            return None, 0.0
        if self.codes == "rr-labels":
            labels = np.full(facts.nodes, -1)
            labels[train] = self._noisy_labels(curator, train)
            return source.one_hot(labels, facts.classes), 0.0
        network = source.CodeNetwork(facts.nodes, width, facts.classes, coins)

        def rows_of(private: Graph, rows: np.ndarray) -> Any:
            lists = self.lists(private, promise, key)
            return source.adjacency_rows(lists, self._weights(lists, promise), rows)

        paper = isinstance(curator, PaperCurator)
        optimizer = Adam(self.paper_learning_rate) if paper else GlobalMoment(self.code_learning_rate)
        descend_on_groups(curator, "codes", network, rows_of, optimizer, train, progress, network.normalise)
        network.normalise()
        return network.codes, network.offset

    def _noisy_labels(self, curator: Curator, train: np.ndarray) -> np.ndarray:
        none = curator.facts.classes
        query = lambda private: np.where(private.labels[train] < 0, none, private.labels[train])
        return np.asarray(curator.release("codes", query), dtype=np.int64)

    def _weights(self, lists: Lists, promise: Promise) -> np.ndarray:
        if self.mode == "sound" and promise.adjacency is Adjacency.RECORD:
            return lists.mass_weights()
        return np.ones(lists.nodes)

    def _table(self, curator: Curator, codes: np.ndarray | None, offset: np.ndarray | float, key: int) -> np.ndarray:
        from graphveil.graph.unit import unit_array
        from graphveil.methods.dpdgc.codes import label_codes

        promise = curator.plan.promise

        def query(private: Graph) -> np.ndarray:
            sent = label_codes(private) if codes is None else codes
            longest = float(np.linalg.norm(sent, axis=1).max(initial=0.0))
            if longest > 1 + 1e-9:
                raise PrivacyError(
                    f"a code has norm {longest * self.norm:.3g}, the noise was calibrated for {self.norm:.3g}; "
                    "nothing was released"
                )
            lists = self.lists(private, promise, key)
            plain = codes is not None and promise.adjacency is not Adjacency.RECORD
            return self.norm * (plain_sum(lists, sent) if plain else aggregate(lists, sent, promise))

        return unit_array(curator.release("table", query) / self.norm + offset)

    def _train(
        self, curator: Curator, predictor: DecoupledPredictor, coins: np.random.Generator, progress: Progress | None
    ) -> None:
        from graphveil.learn import Adam

        level = curator.plan.promise.level
        if level in (Level.EDGE, Level.NONE):
            paper = self.mode == "published" and level is Level.EDGE
            train_openly(
                curator,
                "classifier",
                predictor.network,
                predictor.inputs,
                coins,
                progress,
                epochs=self.epochs,
                learning_rate=self.paper_learning_rate if paper else self.open_learning_rate,
                dropout=self.dropout,
                batch_size=self.batch_size if paper else None,
                best_epoch=paper,
            )
            return
        paper = isinstance(curator, PaperCurator)
        optimizer = Adam(self.paper_learning_rate) if paper else own_optimizer(curator.facts, self.learning_rate)
        descend_privately(curator, "classifier", predictor.network, predictor.inputs, optimizer, progress)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> DecoupledPredictor:
        return DecoupledPredictor.restore(config, arrays)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        if own_row_excluded(plan.promise, self._codes_released(plan.promise)):
            assumptions = ("row r of the table is shown to node r alone", *assumptions)
        return public, assumptions


def payers(facts: PublicFacts, promise: Promise) -> tuple[str, ...]:
    """Who can move the codes and the table: edges, or everybody."""
    return ("edge",) if promise.level is Level.EDGE else tuple(kind for kind, n in facts.kinds.items() if n)
