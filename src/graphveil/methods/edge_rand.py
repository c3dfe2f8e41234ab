"""EdgeRand: randomised response on the edges (Wu, Long, Zhang and Li, IEEE S&P 2022), then an ordinary graph network.

Every pair of slots has one coin and changes between friends and strangers with probability p = 1/(e^eps + 1). The network is
trained and used on the noisy graph; features and labels are public at edge level.

Formal guarantee: one edge decides one pair (or, directed, one ordered pair), so its loss is exactly eps, at delta 0; all else
is post-processing. The number of noisy edges is about p n^2/2 whatever the graph: it is computed first, from public numbers,
and refused above ``max_edges``. Tests: ``tests/methods/test_edge_rand.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.graph import Lists
from graphveil.methods.base import EDGES
from graphveil.methods.card import card, gaps
from graphveil.methods.gnn import GnnPredictor, GraphNetwork
from graphveil.methods.options import Count, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import EDGE, PublicFacts
from graphveil.privacy.mechanisms import EdgeFlips, Exact, Laplace
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

FLIPS_SHARE = 0.9


class EdgeRand(GraphNetwork):
    """A graph network on a graph whose pairs were flipped at random.

    Args:
        max_edges: refuse if more noisy edges than this are expected.
    """

    card = card("edge-rand")
    supports = EDGES

    backbone: Literal["sage", "gcn", "sgc"] = "sage"
    max_edges: Count = 50_000_000
    epochs: Count = 100

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if not promise.private:
            release = Release("edges", Exact(), {EDGE: 1.0}, "no coins at epsilon = inf")
            return Plan(promise, facts, (release,))
        who, advice = f"edge-rand at epsilon {promise.epsilon:g}", "raise epsilon or max_edges, or use gap"
        mechanism = edge_flips(promise.epsilon, facts.nodes, _directed(promise), self.max_edges, who, advice)
        lemma = "one edge decides one pair, and each pair has its own coin"
        return Plan(promise, facts, (Release("edges", mechanism, {EDGE: 1.0}, lemma),))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> GnnPredictor:
        directed, facts = _directed(curator.plan.promise), curator.facts
        joined = curator.release("edges", lambda private: pair_numbers(private.lists, directed))
        arcs = pairs_of(np.asarray(joined, dtype=np.int64), facts.nodes, directed)
        return GnnPredictor(*self.trained(self.backbone, arcs, curator, coins, progress), arcs)


class PublishedEdgeRand(GraphNetwork):
    """RandEdge+SAGE as GAP and DPDGC have it: a coin for every entry of A, then as many entries as there were, about.

    Nine tenths of epsilon flip entries (p = 1/(1 + e^(-0.9 eps)) to stay), one tenth hides their number; noisy entries are then
    kept with q = d/(2pd - p - d + 1) for the noisy density d, so that the density is about what it was. Claimed: epsilon for one
    entry. An undirected edge is two entries with a coin each, and counts twice: twice that. (The authors count in blocks of 500
    rows, with the noise of one count; here all entries are counted at once.)
    """

    card = EdgeRand.card
    gaps = gaps("edge-rand")
    supports = EDGES
    mode: Literal["published"] = "published"

    backbone: Literal["sage", "gcn", "sgc"] = "sage"
    max_edges: Count = 200_000_000
    epochs: Count = 100
    learning_rate: Positive = 1e-3

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        entries = 1.0 if _directed(promise) else 2.0
        names = (("count", "one edge is in the count once per entry"), ("edges", "one coin per entry of A"))
        if not promise.private:
            return Plan(promise, facts, tuple(Release(name, Exact(), {EDGE: 1.0}, lemma) for name, lemma in names))
        who, advice = f"edge-rand at epsilon {promise.epsilon:g}", "raise epsilon or max_edges, or use gap"
        flips = edge_flips(FLIPS_SHARE * promise.epsilon, facts.nodes, True, self.max_edges, who, advice)
        count = Laplace(1 / ((1 - FLIPS_SHARE) * promise.epsilon), 1)
        releases = tuple(
            Release(name, mechanism, {EDGE: entries}, lemma)
            for (name, lemma), mechanism in zip(names, (count, flips), strict=True)
        )
        return Plan(promise, facts, releases, claim=promise.epsilon, gaps=self.gaps if entries > 1 else ())

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> GnnPredictor:
        nodes, promise = curator.facts.nodes, curator.plan.promise
        count = float(curator.release("count", lambda private: np.array([float(private.lists.arcs)]))[0])
        joined = curator.release("edges", lambda private: pair_numbers(private.lists, True))
        arcs = pairs_of(np.asarray(joined, dtype=np.int64), nodes, True)
        if promise.private:
            stay, density = 1 / (1 + math.exp(-FLIPS_SHARE * promise.epsilon)), max(count, 1.0) / nodes**2
            kept = min(1.0, density / (2 * stay * density - stay - density + 1))
            arcs = arcs[:, coins.random(arcs.shape[1]) < kept]
        return GnnPredictor(*self.trained(self.backbone, arcs, curator, coins, progress), arcs)


def _directed(promise: Promise) -> bool:
    return promise.adjacency is Adjacency.EDGE_DIRECTED


def pair_count(nodes: int, directed: bool) -> int:
    """How many pairs can be joined."""
    return max(1, nodes * (nodes - 1) // (1 if directed else 2))


def edge_flips(epsilon: float, nodes: int, directed: bool, most: int, who: str, advice: str) -> EdgeFlips:
    """A coin per pair; refused where more noisy edges than ``most`` are expected."""
    flips = EdgeFlips(epsilon, pair_count(nodes, directed))
    expected = flips.flips.flip * flips.pairs
    if expected > most:
        found = f"{who} would draw about {expected:.3g} noisy edges among {nodes} nodes"
        raise InputError(f"{found}, more than max_edges = {most:.3g}; {advice}")
    return flips


def pair_numbers(lists: Lists, directed: bool) -> np.ndarray:
    """The joined pairs as increasing numbers: i (n - 1) + j' for ordered ones, j (j - 1)/2 + i for i < j else.

    Without direction a pair is joined if either list mentions the other; one friendship then decides one number.
    """
    senders, receivers = lists.edge_index()
    if directed:
        return np.sort(senders * (lists.nodes - 1) + receivers - (receivers > senders))
    return np.unique(pair_codes(senders, receivers))


def pair_codes(senders: np.ndarray, receivers: np.ndarray) -> np.ndarray:
    """The number of every pair, whichever way round: j (j - 1)/2 + i for i < j."""
    low, high = np.minimum(senders, receivers), np.maximum(senders, receivers)
    return np.asarray(high * (high - 1) // 2 + low)


def pairs_of(numbers: np.ndarray, nodes: int, directed: bool) -> np.ndarray:
    """The arcs (2, m) of joined pairs, in both directions unless ``directed``."""
    if directed:
        senders, rest = np.divmod(numbers, max(nodes - 1, 1))
        return np.stack([senders, rest + (rest >= senders)])
    high = ((1 + np.sqrt(1 + 8 * numbers.astype(np.float64))) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > numbers  # the root may be off by one for large numbers
    high += (high + 1) * high // 2 <= numbers
    low = numbers - high * (high - 1) // 2
    return np.stack([np.concatenate([low, high]), np.concatenate([high, low])])
