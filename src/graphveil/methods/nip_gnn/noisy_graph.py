"""The noisy edges of published NIP-GNN: a coin for every pair, then arcs kept at rates by their receivers' true degrees (eq. 12).

Where half of all pairs would be joined (s near 1) and few are kept, the coins that keep an arc are drawn first, one per ordered
pair and by their number, and a pair is flipped only if one of its arcs would be kept: the same law, at the cost of the arcs that
are kept, about as many as twice the graph's. Tests: ``tests/methods/test_nip_published.py``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphveil.errors import InputError
from graphveil.graph import Graph, Lists
from graphveil.methods.edge_rand import edge_flips, pair_codes, pair_count, pair_numbers, pairs_of
from graphveil.privacy.curator import Curator
from graphveil.privacy.mechanisms import AskedFlips, EdgeFlips

WHO = "published nip-gnn"
ADVICE = "raise max_edges, keep degree_sampling with s_rule='intended', or use mode='sound', which releases no edges"


def pair_flips(epsilon: float, nodes: int, sampled: bool, most: int) -> EdgeFlips:
    """A coin per pair; if that joins more than ``most``, and arcs are sampled afterwards, only for pairs that are kept."""
    flips = EdgeFlips(epsilon, pair_count(nodes, False))
    if sampled and flips.flips.flip * flips.pairs > most:
        return AskedFlips(epsilon, flips.pairs)
    return edge_flips(epsilon, nodes, False, most, WHO, ADVICE)


def kept_arcs(rates: np.ndarray, coins: np.random.Generator, most: int) -> np.ndarray:
    """Every ordered pair (sender, receiver) with the receiver's chance, independently; linear in how many there are."""
    nodes = len(rates)
    if (expected := float(rates.sum()) * (nodes - 1)) > most:
        raise InputError(
            f"{WHO} would keep about {expected:.3g} noisy arcs, more than max_edges = {most:.3g}; {ADVICE}"
        )
    counts = coins.binomial(nodes - 1, rates)
    receivers = np.repeat(np.arange(nodes), counts)
    others = [coins.choice(nodes - 1, count, replace=False, shuffle=False) for count in counts if count]
    senders = np.concatenate([np.zeros(0, dtype=np.int64), *others])
    return np.stack([senders + (senders >= receivers), receivers])


def noisy_arcs(
    curator: Curator,
    subgraph: Callable[[Graph], Lists],
    rates: np.ndarray | None,
    coins: np.random.Generator,
    most: int,
) -> np.ndarray:
    """The arcs of the release ``edges``; ``rates`` (by receiver) of None keep them all."""
    nodes, plan = curator.facts.nodes, curator.plan
    mechanism = next(step.mechanism for step in plan.steps if step.name == "edges" and not hasattr(step, "max_share"))
    if rates is None or not isinstance(mechanism, AskedFlips):
        joined = curator.release("edges", lambda private: pair_numbers(subgraph(private), directed=False))
        arcs = pairs_of(np.asarray(joined, dtype=np.int64), nodes, directed=False)
        return arcs if rates is None else arcs[:, coins.random(arcs.shape[1]) < rates[arcs[1]]]
    arcs = kept_arcs(rates, coins, most)
    codes = pair_codes(*arcs)
    asked = np.unique(codes)
    query = lambda private: np.stack([asked, np.isin(asked, pair_numbers(subgraph(private), directed=False))])
    return np.asarray(arcs[:, np.isin(codes, curator.release("edges", query))])
