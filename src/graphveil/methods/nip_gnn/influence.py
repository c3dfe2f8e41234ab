"""Influence in NIP-GNN: ranks, the shares of the budget they give, and the sound version as receiver scales.

*Published*: R(u) is the rank of TNIE's score (``tnie.py``), and

    beta_u = min over neighbours k of { R(u) / sum_{j in N(k)} R(j) (D_max - D_k) + 1,  D_max / D_k }

(``proof``: D_max/D_u as the second term, which is what the proof needs), and u's row gets noise Lap(2 D_max / (eps_A beta_u)).
On a graph in which nobody has more than D_max contacts beta is never below 1.

*Sound*: receiver scales s_i from *released* rows, and the sender's weight ``w_k = (sum_{i in out(k)} s_i^-2)^-1/2`` (Lemma M with
scales; for Laplace noise the l1 version). Row i is released as ``S_i / s_i + N``; whitened, one record's messages have norm at
most 1 whatever its degree.
Tests: ``tests/methods/test_nip_gnn.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.graph import GRID, Graph, Lists
from graphveil.privacy.noise import scaling_error


def norm_rows(graph: Graph, order: int) -> sp.csr_matrix:
    """Features with rows of l1 or l2 norm 1 (or 0); without features a one for everybody."""
    if not graph.features:
        return sp.csr_matrix(np.ones((graph.nodes, 1)))
    kept: Any = graph.rows.values  # type: ignore[attr-defined]  # a tensor, or already sparse
    values = sp.csr_matrix(kept if sp.issparse(kept) else kept.numpy(), dtype=np.float64)
    sizes = np.asarray(abs(values).power(order).sum(axis=1))[:, 0] ** (1 / order)
    return (sp.diags(1 / np.where(sizes > 0, sizes, 1.0)) @ values).tocsr()


def noisy_units(beta: np.ndarray, epsilon: float, max_degree: int) -> np.ndarray:
    """What a row is multiplied by so that its noise has scale 1: ``eps_A beta_u / (2 D_max)``, a column."""
    return np.asarray(epsilon * beta / (2 * max_degree))[:, None]


def budget_shares(lists: Lists, ranks: np.ndarray, max_degree: int, rule: str) -> np.ndarray:
    """beta_u; 1 for nodes without neighbours, where the paper leaves it open."""
    senders, receivers = lists.edge_index()
    degrees = np.maximum(lists.in_degrees, 1)
    around = np.maximum(lists.aggregate(ranks[:, None])[:, 0], 1e-300)  # sum of R over N(k)
    share = ranks[receivers] / around[senders] * (max_degree - degrees[senders]) + 1
    ceiling = max_degree / degrees[senders if rule == "printed" else receivers]
    beta = np.full(lists.nodes, np.inf)
    np.minimum.at(beta, receivers, np.minimum(share, ceiling))
    return np.where(np.isfinite(beta), beta, 1.0)


def thinning_rates(degrees: np.ndarray, nodes: int, redraw: float, rule: str) -> np.ndarray:
    """p_u = 2 D_u / (D_u + N - N s + D_u s); ``intended`` reads s as the probability to keep, as the appendix does.

    Only that keeps everybody's expected degree; as printed the mean degree of Cora goes from 3.9 to 787 (``exponent=fraction``,
    epsilon 4, D_max = 168).
    """
    s = redraw if rule == "printed" else 1 - redraw
    rate = 2 * degrees / np.maximum(degrees + nodes - nodes * s + degrees * s, 1e-300)
    return np.clip(rate, 0.0, 1.0)


def receiver_scales(released: np.ndarray, spread: float) -> np.ndarray:
    """Scales from 1/spread to spread by the rank of a released row's norm: loud rows bear more noise. Post-processing."""
    order = np.argsort(np.linalg.norm(released, axis=1), kind="stable")
    position = np.empty(len(order))
    position[order] = np.linspace(-1.0, 1.0, len(order))
    return spread**position


def scaled_sum(lists: Lists, rows: np.ndarray, scales: np.ndarray, order: int = 2) -> np.ndarray:
    """``S_i / s_i`` with the senders' weights of Lemma M, ``(sum_i s_i^-p)^(-1/p)``; rows are cut to lp norm at most 1."""
    rows = rows / np.maximum(np.linalg.norm(rows, ord=order, axis=1, keepdims=True), 1.0)
    senders, receivers = lists.edge_index()
    kept = 1 - scaling_error(lists.nodes, least=1e-12)
    mass = np.bincount(senders, weights=scales[receivers] ** -float(order), minlength=lists.nodes)
    weights = np.where(mass > 0, np.maximum(mass, 1e-300) ** (-1 / order), 0.0) * kept
    messages = np.trunc(weights[:, None] * rows / GRID) * GRID
    return np.asarray(lists.aggregate(messages) / scales[:, None])
