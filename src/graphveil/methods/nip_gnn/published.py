"""NIP-GNN as published: individual Laplace scales, randomised edges, thinning by true degrees, randomised labels.

Claim: eps = eps_A + eps_B + eps_C, pure. The plan takes D_max as a public number (the paper reads it off the data). The first
aggregation is released in units of each row's own scale, ``S_u eps_u / (2 D_max) + Lap(1)``, so that the claim reads: one record
moves it by at most eps_A in l1. Influence ranks and true degrees are read without any account (``PaperCurator.peek``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.graph import Graph, Lists
from graphveil.methods.base import ZERO_OUT, guarantees
from graphveil.methods.card import gaps
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.labels import label_release, noisy_labels
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.methods.common.trainer import PublishedMethod
from graphveil.methods.edge_rand import edge_flips, pair_numbers, pairs_of
from graphveil.methods.nip_gnn import HIDDEN, PAPER_SPLIT, NipGnn
from graphveil.methods.nip_gnn.influence import budget_shares, influence_ranks, l1_rows, thinning_rates
from graphveil.methods.options import Count, Positive, Share
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Laplace, Mechanism
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

AS_STATED = "as the paper states it"
CEILING, SCALES, DEGREES, CUT = gaps("nip-gnn")
ADVICE = "raise max_edges, or use mode='sound', which releases no edges"
SHIFTED = replace(SCALES, check="sensitivity", release="aggregation")


class PublishedNipGnn(PublishedMethod):
    """Influence-dependent Laplace noise, randomised and thinned edges, randomised labels, calibrated aggregation.

    Args:
        degree_sampling: thin the noisy edges by true degrees; False is the ablation.
        aggregation_share, edge_share, label_share: the split of epsilon into A, B and C (the paper does not say).
        beta_rule, s_rule: readings of eq. 11 and of s.
        influence_rounds, max_degree: T and D_max (lists longer than that are cut, section 5.2.5).
        max_edges: the number of noisy edges above which it refuses.
    """

    card = NipGnn.card
    gaps = gaps("nip-gnn")
    predictor = ScoresPredictor
    supports = guarantees(Adjacency.NODE, relations=ZERO_OUT)

    allocation: Literal["adaptive", "uniform"] = "adaptive"
    degree_sampling: bool = True
    residual: bool = True
    aggregation_share: Share = PAPER_SPLIT[0]
    edge_share: Share = PAPER_SPLIT[1]
    label_share: Share = PAPER_SPLIT[2]
    hops: Count = 2
    hidden: Count = HIDDEN
    beta_rule: Literal["printed", "proof"] = "printed"
    s_rule: Literal["printed", "intended"] = "printed"
    influence_rounds: Count = 2
    max_degree: Count = 200
    max_edges: Count = 50_000_000
    epochs: Count = 100
    learning_rate: Positive = 1e-3

    def check(self) -> None:
        super().check()
        if self.aggregation_share + self.edge_share + self.label_share > 1 + 1e-9:
            raise InputError("nip-gnn: aggregation_share, edge_share and label_share must add up to at most 1")

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        gaps = [CUT]
        if self.allocation == "adaptive":
            gaps += (CEILING, SCALES) if self.beta_rule == "printed" else (SCALES, SHIFTED)
        gaps += (DEGREES,) if self.degree_sampling else ()
        noise: tuple[Mechanism, Mechanism] = Exact(), Exact()
        moved, flipped = 1.0, 1.0
        if promise.private:
            flips = edge_flips(self._per_pair(promise), facts.nodes, False, self.max_edges, "published nip-gnn", ADVICE)
            noise = Laplace(1.0, facts.nodes * max(facts.features, 1)), flips
            moved, flipped = self.aggregation_share * promise.epsilon, 2.0 * self.max_degree
        releases = (
            Release("aggregation", noise[0], payers(facts, promise, moved), AS_STATED),
            Release("edges", noise[1], payers(facts, promise, flipped), AS_STATED),
            label_release("labels", facts, promise, self.label_share * promise.epsilon, AS_STATED),
        )
        claim = promise.epsilon if promise.private else None
        return Plan(promise, facts, releases, claim=claim, gaps=tuple(gaps), provable=False)

    def _per_pair(self, promise: Promise) -> float:
        """The epsilon of one pair of nodes."""
        return self.edge_share * promise.epsilon / (2 * self.max_degree)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> ScoresPredictor:
        """TNIE and NAP, randomised edges and labels, then ACA on what came out."""
        from graphveil.methods.nip_gnn.network import train_calibrated

        assert isinstance(curator, PaperCurator)
        key, direction = int(coins.integers(2**32)), int(coins.integers(2**32))

        def subgraph(private: Graph) -> Lists:
            return private.lists.capped(self.max_degree, np.random.default_rng(key))

        rows = self._noisy_sums(curator, subgraph, direction)
        joined = curator.release("edges", lambda private: pair_numbers(subgraph(private), directed=False))
        arcs = pairs_of(np.asarray(joined, dtype=np.int64), curator.facts.nodes, directed=False)
        if self.degree_sampling:
            arcs = self._thinned(curator, subgraph, arcs, coins)
        labels, names = noisy_labels(curator, "labels"), ("hidden", "hops", "epochs", "learning_rate", "residual")
        options = {name: getattr(self, name) for name in names}
        return train_calibrated(rows, arcs, labels, curator.facts.classes, coins, progress, **options)

    def _noisy_sums(self, curator: PaperCurator, subgraph: Callable[[Graph], Lists], direction: int) -> np.ndarray:
        """Sums of l1 unit rows with everybody's own Laplace scale."""
        promise, cap = curator.plan.promise, self.max_degree
        epsilon = promise.epsilon * self.aggregation_share if promise.private else 1.0

        def shares(private: Graph) -> np.ndarray:
            ranks = influence_ranks(private, self.influence_rounds, np.random.default_rng(direction))
            return budget_shares(subgraph(private), ranks, cap, self.beta_rule)

        adaptive = self.allocation == "adaptive"
        beta = curator.peek("scales", shares) if adaptive else np.ones(curator.facts.nodes)
        unit = (epsilon * np.maximum(beta, 1e-6) / (2 * cap))[:, None]

        def sums(private: Graph) -> np.ndarray:
            rows = l1_rows(private) if private.features else np.ones((private.nodes, 1))
            return np.asarray(subgraph(private).aggregate(rows) * unit)

        return np.asarray(curator.release("aggregation", sums) / unit)

    def _thinned(
        self, curator: PaperCurator, subgraph: Callable[[Graph], Lists], arcs: np.ndarray, coins: np.random.Generator
    ) -> np.ndarray:
        """Noisy arcs kept at rates by the receivers' true degrees."""
        promise, nodes = curator.plan.promise, curator.facts.nodes
        degrees = curator.peek("degrees", lambda private: subgraph(private).in_degrees)
        if not promise.private:
            return arcs
        redraw = 2 / (math.exp(self._per_pair(promise)) + 1)
        rates = thinning_rates(degrees, nodes, redraw, self.s_rule)
        return arcs[:, coins.random(arcs.shape[1]) < rates[arcs[1]]]
