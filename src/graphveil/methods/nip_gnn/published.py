"""NIP-GNN as published: individual Laplace scales, randomised edges, thinning by true degrees, randomised labels.

Claim: eps = eps_A + eps_B + eps_C, pure. D_max is the largest degree of the data, declared public, unless ``max_degree`` cuts the
graph (section 5.2.5). The first aggregation is released in units of each row's own scale, ``S_u eps_u / (2 D_max) + Lap(1)``, so
that the claim reads: one record moves it by at most eps_A in l1. Influence ranks and true degrees are read without any account
(``PaperCurator.peek``).

No code is released, and the text leaves open what its numbers hang on: options have the readings, ``docs/readings/nip-gnn.md``
what each gives. What decides is the exponent in ``s >= 2/(e^(eps_B/2D_max) + 1)``: ``fraction``, eps_B/(2 D_max), is what the
proof of Theorem 4 needs; ``left-to-right``, (eps_B/2) D_max, is the formula typed as it is printed, and leaves the edges alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.graph import Graph, Lists
from graphveil.methods.base import ZERO_OUT, guarantees
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.methods.common.trainer import PublishedMethod
from graphveil.methods.nip_gnn import HIDDEN, NipGnn
from graphveil.methods.nip_gnn.influence import budget_shares, noisy_units, norm_rows, thinning_rates
from graphveil.methods.nip_gnn.noisy_graph import noisy_arcs, pair_flips
from graphveil.methods.options import Count, Positive, Share
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Laplace, Mechanism, RandomizedResponse
from graphveil.privacy.plan import Gap, Plan, Release
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
CEILING, SCALES, EUCLIDEAN, DEGREES, CUT, SELECTION, EXPONENT, ONE_DRAW, THREE_TIMES, CLEAN_LABELS = gaps("nip-gnn")
SHIFTED = replace(SCALES, check="sensitivity", release="aggregation")
UNCHANGED = replace(EXPONENT, check="noise")
EVERYWHERE = replace(THREE_TIMES, release="edges"), replace(THREE_TIMES, release="aggregation")
SubgraphOf = Callable[[Graph], Lists]


class PublishedNipGnn(PublishedMethod):
    """Influence-dependent Laplace noise, randomised and thinned edges, randomised labels, calibrated aggregation.

    Args:
        degree_sampling: thin the noisy edges by true degrees; False is the ablation.
        residual: ACA; False replaces it by SAGE, the ablation.
        aggregation_share, edge_share, label_share: the split of epsilon into A, B and C (the paper does not say).
        beta_rule, s_rule: readings of eq. 11 and of s in eq. 12; ``intended`` keeps everybody's expected degree.
        exponent: the reading of eps_B/2D_max.
        norm, noise, sums: row-normalised in which norm; one draw per coordinate or one for all of a row; sums or means.
        budget: epsilon split among A, B and C, or the whole of it for each.
        train_labels: randomised, or as they are.
        keep: the last epoch, or the one with the best accuracy on validation labels.
        influence, influence_rounds: how TNIE gets its weights, and T.
        max_degree: D_max; longer lists and further mentions are cut. Default: the data's largest degree, nothing is cut.
        max_edges: the number of noisy edges above which only those are drawn that are kept, or it refuses.
    """

    card = NipGnn.card
    gaps = gaps("nip-gnn")
    predictor = ScoresPredictor
    supports = guarantees(Adjacency.NODE, relations=ZERO_OUT)

    allocation: Literal["adaptive", "uniform"] = "adaptive"
    degree_sampling: bool = True
    residual: bool = True
    aggregation_share: Share = 0.25
    edge_share: Share = 0.25
    label_share: Share = 0.5
    hops: Count = 2
    hidden: Count = HIDDEN
    beta_rule: Literal["printed", "proof"] = "printed"
    s_rule: Literal["printed", "intended"] = "intended"
    exponent: Literal["fraction", "left-to-right"] = "left-to-right"
    norm: Literal["l1", "l2"] = "l1"
    noise: Literal["coordinate", "row"] = "coordinate"
    sums: Literal["sum", "mean"] = "sum"
    budget: Literal["split", "each"] = "split"
    train_labels: Literal["noisy", "clean"] = "noisy"
    keep: Literal["last", "best"] = "last"
    influence: Literal["fixed", "labels"] = "fixed"
    influence_rounds: Count = 2
    max_degree: Count | None = None
    max_edges: Count = 50_000_000
    epochs: Count = 100
    batch_size: Count = 64
    learning_rate: Positive = 1e-3

    def check(self) -> None:
        super().check()
        if self.aggregation_share + self.edge_share + self.label_share > 1 + 1e-9:
            raise InputError("nip-gnn: aggregation_share, edge_share and label_share must add up to at most 1")

    def facts(self, data: Any) -> PublicFacts:
        return self._declared(self.validated(data, "zero"))

    def facts_for(self, graph: Graph, promise: Promise) -> PublicFacts:
        return self._declared(graph)

    def _declared(self, graph: Graph) -> PublicFacts:
        """The facts, with the largest degree unless an option names another bound."""
        widest = max(int(degrees.max(initial=1)) for degrees in (graph.lists.in_degrees, graph.lists.out_degrees))
        facts = PublicFacts.of(graph)
        return facts if self.max_degree is not None else replace(facts, max_degree=widest)

    def bound(self, facts: PublicFacts) -> int:
        """D_max: what an option says, else the data's, else what nobody can exceed."""
        return self.max_degree or facts.max_degree or max(facts.nodes - 1, 1)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        return (*public, f"the largest number of contacts anybody has (D_max = {self.bound(plan.facts)})"), assumptions

    def claimed(self, promise: Promise) -> tuple[float, float, float]:
        """eps_A, eps_B and eps_C that the claim adds up."""
        shares = self.aggregation_share, self.edge_share, self.label_share
        return tuple(share * promise.epsilon for share in shares)  # type: ignore[return-value]

    def used(self, promise: Promise) -> tuple[float, float, float]:
        """Those that the noise is made for."""
        return (promise.epsilon,) * 3 if self.budget == "each" else self.claimed(promise)

    def per_pair(self, facts: PublicFacts, promise: Promise) -> float:
        """The epsilon of one pair of nodes."""
        edges, bound = self.used(promise)[1], self.bound(facts)
        return edges / (2 * bound) if self.exponent == "fraction" else edges / 2 * bound

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        """The noise as stated, each release with the change that the claim allows for."""
        noise: dict[str, Mechanism] = dict.fromkeys(("labels", "aggregation", "edges"), Exact())
        moved = dict.fromkeys(noise, 1.0)
        if promise.private:
            claimed, used, pair = self.claimed(promise), self.used(promise), self.per_pair(facts, promise)
            width = max(facts.features, 1) if self.noise == "coordinate" else 1
            noise["aggregation"] = Laplace(1.0, facts.nodes * width)
            noise["edges"] = pair_flips(pair, facts.nodes, self.degree_sampling, self.max_edges)
            noise["labels"] = RandomizedResponse(used[2], facts.classes)
            moved = {"aggregation": claimed[0], "edges": claimed[1] / pair, "labels": claimed[2] / used[2]}
        paying = {name: payers(facts, promise, change) for name, change in moved.items()}
        paying["labels"] = {"train": moved["labels"]}
        releases = tuple(Release(name, noise[name], paying[name], AS_STATED) for name in noise)
        if self.train_labels == "clean":
            releases = releases[1:]
        claim = promise.epsilon if promise.private else None
        return Plan(promise, facts, releases, claim=claim, gaps=self._gaps(), provable=False)

    def _gaps(self) -> tuple[Gap, ...]:
        """What is wrong with the claim under these readings."""
        found: list[Gap] = [CUT] if self.max_degree is not None else []
        if self.allocation == "adaptive":
            found += (CEILING, SCALES) if self.beta_rule == "printed" else (SCALES, SHIFTED)
        for codes, applies in (
            ((DEGREES,), self.degree_sampling),
            ((EUCLIDEAN,), self.norm == "l2"),
            ((SELECTION,), self.keep == "best"),
            ((EXPONENT, UNCHANGED), self.exponent == "left-to-right"),
            ((ONE_DRAW,), self.noise == "row"),
            ((THREE_TIMES, *EVERYWHERE), self.budget == "each"),
            ((CLEAN_LABELS,), self.train_labels == "clean"),
        ):
            found += codes if applies else ()
        return tuple(found)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> ScoresPredictor:
        """TNIE and NAP, randomised edges and labels, then ACA on what came out."""
        from graphveil.methods.nip_gnn.network import train_calibrated

        assert isinstance(curator, PaperCurator)
        key, direction = int(coins.integers(2**32)), int(coins.integers(2**32))

        def subgraph(private: Graph) -> Lists:
            if self.max_degree is None:
                return private.lists
            return private.lists.bounded(self.max_degree, np.random.default_rng(key))

        labels = self._labels(curator)
        rows = self._noisy_rows(curator, subgraph, direction, labels)
        rates = self._rates(curator, subgraph) if self.degree_sampling else None
        arcs = noisy_arcs(curator, subgraph, rates, coins, self.max_edges)
        names = ("hidden", "hops", "epochs", "learning_rate", "batch_size", "residual")
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        look = None if self.keep == "last" else lambda scores: self._validated(curator, scores)
        return train_calibrated(rows, arcs, labels, curator.facts.classes, coins, progress, look=look, **options)

    def _labels(self, curator: PaperCurator) -> np.ndarray:
        """Training labels by randomised response, -1 for all others; a training record without label says the first class."""
        train = np.flatnonzero(curator.masks["train"])
        query = lambda private: np.maximum(private.labels[train], 0)
        labels = np.full(curator.facts.nodes, -1)
        clean = self.train_labels == "clean"
        labels[train] = curator.peek("labels", query) if clean else curator.release("labels", query)
        return labels

    def _noisy_rows(
        self, curator: PaperCurator, subgraph: SubgraphOf, direction: int, labels: np.ndarray
    ) -> np.ndarray:
        """Sums of unit rows with everybody's own Laplace scale."""
        facts, promise = curator.facts, curator.plan.promise
        bound, epsilon = self.bound(facts), self.used(promise)[0] if promise.private else 1.0

        def shares(private: Graph) -> np.ndarray:
            from graphveil.methods.nip_gnn.tnie import influence_ranks

            lists, targets = subgraph(private), labels if self.influence == "labels" else None
            ranks = influence_ranks(private, lists, self.influence_rounds, np.random.default_rng(direction), targets)
            return budget_shares(lists, ranks, bound, self.beta_rule)

        beta = curator.peek("scales", shares) if self.allocation == "adaptive" else np.ones(facts.nodes)
        unit = noisy_units(beta, epsilon, bound)

        def sums(private: Graph) -> np.ndarray:
            lists = subgraph(private)
            senders, receivers = lists.edge_index()
            among = 1 / np.maximum(lists.in_degrees, 1)[receivers] if self.sums == "mean" else np.ones(lists.arcs)
            matrix = sp.csr_matrix((among, (receivers, senders)), shape=(facts.nodes, facts.nodes))
            return np.asarray((matrix @ norm_rows(private, 1 if self.norm == "l1" else 2)).toarray())

        if self.noise == "coordinate":
            return np.asarray(curator.release("aggregation", lambda private: sums(private) * unit) / unit)
        exact = curator.peek("rows", sums)
        heard = curator.release("aggregation", lambda private: sums(private).sum(axis=1) * unit[:, 0])
        return np.asarray(exact + (heard / unit[:, 0] - exact.sum(axis=1))[:, None])

    def _rates(self, curator: PaperCurator, subgraph: SubgraphOf) -> np.ndarray | None:
        """How often arcs into everybody are kept, by true degrees."""
        promise, facts = curator.plan.promise, curator.facts
        degrees = curator.peek("degrees", lambda private: subgraph(private).in_degrees)
        if not promise.private:
            return None
        redraw = 2 / (math.exp(min(self.per_pair(facts, promise), 700.0)) + 1)
        return thinning_rates(degrees, facts.nodes, redraw, self.s_rule)

    def _validated(self, curator: PaperCurator, scores: Callable[[np.ndarray], np.ndarray]) -> float:
        """The accuracy on validation labels, read without account."""
        nodes = np.flatnonzero(curator.masks["calibration"])
        guesses = scores(nodes).argmax(axis=1) if nodes.size else nodes
        return float(curator.peek("selection", lambda private: np.mean(guesses == private.labels[nodes])))
