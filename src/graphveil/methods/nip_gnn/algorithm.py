"""The algorithm of sound NIP-GNN up to the classifier: what is released, what everybody sends, and the tables that come out.

Gaussian noise: messages of l2 norm 1, shares of mu^2, sensitivities of ``common/aggregation.py``. Laplace noise: messages of l1
norm 1 with the senders' weights ``w_k = (sum_{i in out(k)} 1/s_i)^-1``, so one record's whitened messages have l1 norm at most 1
whatever its degree; blank or not they differ by 1, replaced by 2 (old and new list may be disjoint). Shares are then parts of
epsilon itself and the total is pure. Messages: projected features, one-hot training labels (noise covers them like features), or
labels that randomised response has already released. Tests: ``tests/methods/test_nip_gnn.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from graphveil.graph import Graph
from graphveil.graph.unit import unit_array
from graphveil.methods.common.aggregation import aggregate, hop_release, payers
from graphveil.methods.common.branches import BranchShape, projected_rows
from graphveil.methods.common.labels import label_rows, one_hot
from graphveil.methods.nip_gnn.influence import receiver_scales, scaled_sum
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Laplace, Mechanism
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Promise, Relation

Messages = Callable[[Graph], np.ndarray]

LABEL_LEMMA = "one training record has one label"
L1_LEMMA = "messages of l1 norm 1 split over the own list by the receivers' scales"
INFLUENCE_PART = 0.25  # of the first aggregation's share, for the ranks
RESERVE = 1 - 1e-12  # shares of a pure epsilon must not add up to more than it
PROJECTION_COINS = 0x0917  # public


def table_parts(first: float, later: float, hops: int, adaptive: bool) -> dict[str, float]:
    """How the shares of the first aggregation and of the further hops are divided; with one hop, the first has both."""
    first += later if hops == 1 else 0.0
    parts = {"influence": first * INFLUENCE_PART} if adaptive else {}
    parts["aggregation"] = first * (1 - INFLUENCE_PART if adaptive else 1.0)
    return parts | {f"hop {hop}": later / (hops - 1) for hop in range(2, hops + 1)}


def gaussian_tables(
    parts: Mapping[str, float], total: float, width: int, start: int, facts: PublicFacts, promise: Promise, mu: float
) -> tuple[Release, ...]:
    """Tables of ``width`` numbers per node, each for its part of ``total`` in mu^2; the first ones are of hop ``start``."""
    return tuple(
        hop_release(name, 2 if name.startswith("hop") else start, width, mu * math.sqrt(part / total), facts, promise)
        for name, part in parts.items()
    )


def laplace_tables(
    parts: Mapping[str, float], total: float, width: int, facts: PublicFacts, promise: Promise
) -> tuple[Release, ...]:
    """Tables of ``width`` numbers per node, each for its part of ``total`` in epsilon."""
    bound = 2.0 if promise.relation is Relation.REPLACE else 1.0

    def noise(part: float) -> Mechanism:
        share = part / total * promise.epsilon * RESERVE
        return Laplace.for_epsilon(bound, share, facts.nodes * width) if promise.private else Exact()

    return tuple(Release(name, noise(part), payers(facts, promise, bound), L1_LEMMA) for name, part in parts.items())


def first_messages(kind: str, shape: BranchShape, labels: np.ndarray | None) -> Messages:
    """What everybody sends at the first aggregation: features, own labels, or ``labels`` already released."""
    if labels is not None:
        sent = one_hot(labels, shape.classes)
        return lambda private: sent
    if kind == "labels":
        return label_rows
    return lambda private: projected_rows(private, shape.width, PROJECTION_COINS) * private.present[:, None]


def release_tables(
    curator: Curator, messages: Messages, *, order: int, hops: int, spread: float | None, tau: float | None
) -> list[np.ndarray]:
    """H and the calibrated rows of every further hop, all unit rows of released sums.

    ``order``: 1 for Laplace noise, 2 for Gaussian; ``spread`` None: no receiver scales; ``tau`` None: no residual.
    """
    promise, nodes = curator.plan.promise, curator.facts.nodes
    scales = np.ones(nodes)

    def plain(private: Graph, rows: np.ndarray) -> np.ndarray:
        if order == 1:
            return scaled_sum(private.lists, rows, np.ones(nodes), order)
        return aggregate(private.lists, rows, promise)

    if spread is not None:
        heard = curator.release("influence", lambda private: plain(private, messages(private)))
        scales = receiver_scales(heard, spread)
    query = lambda private: scaled_sum(private.lists, messages(private), scales, order)
    start = unit_array(curator.release("aggregation", query) * scales[:, None])
    tables = [start]
    for hop in range(2, hops + 1):
        near = unit_array(curator.release(f"hop {hop}", partial(plain, rows=tables[-1])))
        distance = np.linalg.norm(near - start, axis=1, keepdims=True)
        gain = 1.0 if tau is None else np.maximum(1 - tau / np.maximum(distance, 1e-12), 0.0)
        tables.append(unit_array((1 - gain) * start + gain * near))
    return tables
