"""Noisy neighbourhood sums: what one change can move, and the messages that keep it so.

Rows ``h_k`` of norm at most 1 travel along contact lists, ``S_i = sum_k A[i, k] w_k h_k``. Worst Euclidean change of S:

==================  ==========================  =========================================  =========================
adjacency           weights w_k                 zero-out                                   replace
==================  ==========================  =========================================  =========================
edge-directed       1                           1 (one row moves by one message)
edge-undirected     1                           sqrt 2 (two rows move)
record              1/sqrt(d_k)   (Lemma M)     1 (column r is removed, norm <= 1)         2 at hop 1, sqrt 2 later
k-neighbor          1/sqrt(max(d_k, k))         s_k (below)
bounded-degree      1                           sqrt D, own row excluded                   2 sqrt D, own row excluded
==================  ==========================  =========================================  =========================

*record, replace*: at hop 1 the old and the new column may be opposite; later hops send released rows, so the two columns
carry the same vector with non-negative weights of norm <= 1 and their difference has norm at most sqrt 2.
*k-neighbor*: s_k^2 = (1 + k (1 - sqrt(k/(k+1))))^2 + k^2/(k+1). Rows other than r: r's own column (norm <= 1) and k
neighbours whose weights grow from (k+1)^-1/2 to k^-1/2 on at most k rows; row r loses k messages of at most (k+1)^-1/2.
Messages are truncated to the grid 2^-24: where a list loses an entry and its weight grows, each of its messages may move by one
step more in every coordinate, which :func:`truncation` adds. Elsewhere messages come or go whole, and truncation shortens them.
*bounded-degree*: r is in at most D lists and lists at most D; row r is shown to r alone.
Degrees are those of the node's own list, so no weight depends on anybody else's record. Brute-forced in
``tests/methods/test_aggregation.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from graphveil.errors import PrivacyError
from graphveil.graph import Graph, Lists
from graphveil.graph.blocks import Block
from graphveil.graph.lists import GRID, on_grid
from graphveil.learn import engine
from graphveil.privacy.facts import EDGE, PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation


def hop_sensitivity(promise: Promise, hop: int, nodes: int, width: int) -> float:
    """The worst change of one aggregation of rows of ``width`` numbers, by the table above."""
    replaced = promise.relation is Relation.REPLACE
    match promise.adjacency:
        case Adjacency.EDGE_DIRECTED:
            return 1.0
        case Adjacency.EDGE_UNDIRECTED:
            return math.sqrt(2)
        case Adjacency.RECORD:
            return (2.0 if hop == 1 else math.sqrt(2)) if replaced else 1.0
        case Adjacency.K_NEIGHBOR if promise.k is not None and not replaced:
            return k_neighbor_sensitivity(promise.k, nodes, width)
        case Adjacency.BOUNDED_DEGREE if promise.max_degree is not None:
            return math.sqrt(promise.max_degree) * (2 if replaced else 1)
        case Adjacency.NONE:
            return math.inf
    raise PrivacyError(f"no sensitivity is proved for aggregation under {promise.guarantee}")


def k_neighbor_sensitivity(k: int, nodes: int, width: int) -> float:
    """s_k, attained: 1.4736, 1.7894, 2.4955, 5.1230 for k = 1, 2, 5, 25; and what truncation adds."""
    grown = k * (1 - math.sqrt(k / (k + 1))) + truncation(k, k, nodes, width)
    return math.sqrt((1 + grown) ** 2 + k * k / (k + 1))


def truncation(k: int, floor: int, nodes: int, width: int) -> float:
    """What truncated messages can add to the change of k lists that lose an entry each, with weights max(d, floor)^-1/2.

    A list of d > floor entries keeps d - 1 of them: its messages grow by ``1 - sqrt((d - 1)/d)`` in all and, at most, by
    ``2^-24 sqrt(width (d - 1))`` through truncation. The first falls like 1/(2d), the second grows like sqrt d: together they are
    largest at d = floor + 1, where the bounds of this file are attained, or at d = nodes.
    """
    step = GRID * math.sqrt(width)
    less = math.sqrt((nodes - 1) / nodes) - math.sqrt(
        floor / (floor + 1)
    )  # by which the weights' own part has fallen at d = nodes
    return k * max(step * math.sqrt(floor), step * math.sqrt(nodes) - less)


def payers(facts: PublicFacts, promise: Promise, bound: float) -> dict[str, float]:
    """The same bound for all who can move a table: edges, or every kind of record there is."""
    kinds = [EDGE] if promise.level is Level.EDGE else [kind for kind, count in facts.kinds.items() if count]
    return dict.fromkeys(kinds, bound)


def hop_release(name: str, hop: int, width: int, mu: float, facts: PublicFacts, promise: Promise) -> Release:
    """One noisy aggregation of ``width`` numbers per node that costs at most mu."""
    sensitivity = hop_sensitivity(promise, hop, facts.nodes, width)
    which = "1" if hop == 1 else "2 or later"
    lemma = f"aggregation of unit rows, {promise.adjacency}, {promise.relation}, hop {which}"
    excluded = promise.adjacency is Adjacency.BOUNDED_DEGREE
    if not promise.private:
        return Release(name, Exact(), payers(facts, promise, 1.0), lemma, excluded)
    mechanism = Gaussian.for_mu(sensitivity, mu, facts.nodes * width)
    return Release(name, mechanism, payers(facts, promise, sensitivity), lemma, excluded)


def least_divisor(promise: Promise) -> int | None:
    """For this adjacency, the least number whose root a list's messages are divided by; None: all weights are 1."""
    match promise.adjacency:
        case Adjacency.RECORD:
            return 1
        case Adjacency.K_NEIGHBOR:
            return promise.k or 1
        case _:
            return None


def aggregate(lists: Lists, rows: np.ndarray, promise: Promise) -> np.ndarray:
    """The clean sum S for this adjacency; messages lie on a grid, so the sum is exact whatever its order."""
    floor = least_divisor(promise)
    return plain_sum(lists, rows) if floor is None else lists.aggregate(lists.split_messages(at_most_unit(rows), floor))


def aggregate_blocks(private: Graph, sent: Callable[[Block], np.ndarray], promise: Promise) -> np.ndarray:
    """The same, of what the records of every block send."""
    everybody = np.ones(private.nodes, dtype=bool)
    return engine.spread(private, lambda block: at_most_unit(sent(block)), everybody, least_divisor(promise))


def plain_sum(lists: Lists, rows: np.ndarray) -> np.ndarray:
    """The sum with all weights 1."""
    return lists.aggregate(on_grid(at_most_unit(rows)))


def at_most_unit(rows: np.ndarray) -> np.ndarray:
    """Rows shortened to norm 1 where they are longer, so that the assumed norm is the actual one.

    What is left of rounding (1e-16) is covered: sums lie on the grid 2^-24, so rounding to the noise grid moves nothing and
    its allowance in the sensitivity is free.
    """
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 1, norms * (1 + 2.0**-48), 1.0)
