"""NIP-GNN as published: individual Laplace scales, randomised edges, thinning by true degrees, randomised labels.

Claim: eps = eps_A + eps_B + eps_C, pure. The plan takes D_max as a public number (the paper reads it off the data). The first
aggregation is released in units of each row's own scale, ``S_u eps_u / (2 D_max) + Lap(1)``, so that the claim reads: one record
moves it by at most eps_A in l1. Influence ranks and true degrees are read without any account (``PaperCurator.peek``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import Progress
from graphveil.methods.edge_rand import pair_count, pair_numbers, pairs_of
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import EdgeFlips, Exact, Laplace, RandomizedResponse
from graphveil.privacy.plan import Gap, Plan, Release
from graphveil.privacy.promise import Promise

if TYPE_CHECKING:
    from graphveil.graph import Graph, Lists
    from graphveil.methods.nip_gnn import NipGnn

AS_STATED = "as the paper states it"
CEILING = Gap(
    "N1",
    "beta_u is capped by the neighbours' degrees, so a hub among leaves gets D_max times the budget: the loss is (D + 1)/2 "
    "eps_A (3.0 for a star of 5 leaves, 84.5 for Cora's largest degree)",
    check="sensitivity",
    release="aggregation",
)
SCALES = Gap(
    "N2",
    "ranks, and with them everybody's noise scale, are computed from private features and edges: rows that do not touch the "
    "changed node get another scale, and the loss is infinite",
    check="unaccounted",
    release="scales",
)
SHIFTED = Gap("N2", SCALES.text, check="sensitivity", release="aggregation")
DEGREES = Gap(
    "N5",
    "noisy edges are thinned with the true degree; a node without edges and one with edges have disjoint outputs",
    check="unaccounted",
    release="degrees",
)
CUT = Gap(
    "D3",
    "lists longer than D_max are cut by the code (section 5.2.5): when a person leaves, others move up into the lists, so more "
    "than the counted rows move",
    check="sensitivity",
    release="aggregation",
)
GAPS = (CEILING, SCALES, DEGREES, CUT)


def published_plan(method: NipGnn, facts: PublicFacts, promise: Promise) -> Plan:
    gaps: tuple[Gap, ...] = (CUT,)
    if method.allocation == "adaptive":
        gaps += (CEILING, SCALES) if method.beta_rule == "printed" else (SCALES, SHIFTED)
    gaps += (DEGREES,) if method.degree_sampling else ()
    everybody = [kind for kind, n in facts.kinds.items() if n]
    if not promise.private:
        releases = (
            Release("aggregation", Exact(), dict.fromkeys(everybody, 1.0), AS_STATED),
            Release("edges", Exact(), dict.fromkeys(everybody, 1.0), AS_STATED),
            Release("labels", Exact(), {"train": 1.0}, AS_STATED),
        )
        return Plan(promise, facts, releases, gaps=gaps, provable=False)
    share = method.split
    per_pair = share[1] * promise.epsilon / (2 * method.cap)
    flips = EdgeFlips(per_pair, pair_count(facts.nodes, directed=False))
    expected = flips.flip_probability * flips.pairs
    if expected > method.max_edges:
        raise InputError(
            f"published nip-gnn would draw about {expected:.3g} noisy edges among {facts.nodes} nodes, more than max_edges = "
            f"{method.max_edges:.3g}; raise max_edges, or use mode='sound', which releases no edges"
        )
    noise = Laplace(1.0, facts.nodes * max(facts.features, 1))
    aggregation = dict.fromkeys(everybody, share[0] * promise.epsilon)
    releases = (
        Release("aggregation", noise, aggregation, AS_STATED),
        Release("edges", flips, dict.fromkeys(everybody, 2.0 * method.cap), AS_STATED),
        Release(
            "labels",
            RandomizedResponse(share[2] * promise.epsilon, facts.classes + 1),
            {"train": 1.0},
            AS_STATED,
        ),
    )
    return Plan(promise, facts, releases, claim=promise.epsilon, gaps=gaps, provable=False)


def learn_published(method: NipGnn, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> Any:
    """TNIE and NAP, randomised edges and labels, then ACA on what came out."""
    from graphveil.methods.nip_gnn import influence as influence
    from graphveil.methods.nip_gnn.network import TablePredictor, train_calibrated

    facts, promise, cap = curator.facts, curator.plan.promise, method.cap
    key, direction = int(coins.integers(2**32)), int(coins.integers(2**32))
    epsilon = promise.epsilon * method.split[0] if promise.private else 1.0

    def subgraph(private: Graph) -> Lists:
        return private.lists.capped(cap, np.random.default_rng(key))

    def shares(private: Graph) -> np.ndarray:
        ranks = influence.influence_ranks(private, method.influence_rounds, np.random.default_rng(direction))
        return influence.budget_shares(subgraph(private), ranks, cap, method.beta_rule)

    beta = np.ones(facts.nodes)
    if method.allocation == "adaptive" and isinstance(curator, PaperCurator):
        beta = curator.peek("scales", shares)
    unit = (epsilon * np.maximum(beta, 1e-6) / (2 * cap))[:, None]

    def sums(private: Graph) -> np.ndarray:
        rows = influence.l1_rows(private) if private.features else np.ones((private.nodes, 1))
        return subgraph(private).aggregate(rows) * unit

    rows = curator.release("aggregation", sums) / unit
    joined = curator.release(
        "edges", lambda private: pair_numbers(replace(private, lists=subgraph(private)), directed=False)
    )
    arcs = pairs_of(np.asarray(joined, dtype=np.int64), facts.nodes, directed=False)
    if method.degree_sampling and isinstance(curator, PaperCurator):
        redraw = 2 / (math.exp(promise.epsilon * method.split[1] / (2 * cap)) + 1) if promise.private else 0.0
        degrees = curator.peek("degrees", lambda private: subgraph(private).in_degrees)
        rates = influence.thinning_rates(degrees, facts.nodes, redraw, method.s_rule)
        arcs = arcs[:, coins.random(arcs.shape[1]) < rates[arcs[1]]] if promise.private else arcs
    scores = train_calibrated(
        rows,
        arcs,
        method.noisy_labels(curator),
        facts.classes,
        hidden=method.hidden or 64,
        hops=method.hops,
        epochs=method.epochs,
        learning_rate=method.open_learning_rate,
        residual=method.residual,
        coins=coins,
        progress=None if progress is None else lambda done, total: progress("network", done, total),
    )
    return TablePredictor(scores)
