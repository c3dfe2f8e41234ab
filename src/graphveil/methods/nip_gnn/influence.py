"""Influence in NIP-GNN: ranks, the shares of the budget they give, and the sound version as receiver scales.

*Published* (TNIE): ``s(u) = sigma(log D_u) h_u``, h from a random public map of the features averaged T times over neighbours
(the paper names no training target); R(u) is the rank of s(u). Then

    beta_u = min over neighbours k of { R(u) / sum_{j in N(k)} R(j) (D_max - D_k) + 1,  D_max / D_k }

(``proof``: D_max/D_u as the second term, which is what the proof needs), and u's row gets noise Lap(2 D_max / (eps_A beta_u)).

*Sound*: receiver scales s_i from *released* rows, and the sender's weight ``w_k = (sum_{i in out(k)} s_i^-2)^-1/2`` (Lemma M with
scales; for Laplace noise the l1 version). Row i is released as ``S_i / s_i + N``; whitened, one record's messages have norm at
most 1 whatever its degree.
Tests: ``tests/methods/test_nip_gnn.py``.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from graphveil.graph import GRID, Graph, Lists
from graphveil.privacy.noise import scaling_error


def l1_rows(graph: Graph) -> np.ndarray:
    """Dense features with rows of l1 norm 1 (or 0)."""
    import torch

    rows = graph.rows.matmul(torch.eye(graph.features, dtype=torch.float64)).numpy()
    return np.asarray(rows / np.maximum(np.abs(rows).sum(axis=1, keepdims=True), 1e-300))


def influence_ranks(graph: Graph, rounds: int, coins: np.random.Generator) -> np.ndarray:
    """R(u) in 1 .. n by the published score."""
    import torch

    senders, receivers = graph.lists.edge_index()
    degrees = np.maximum(graph.lists.in_degrees, 1)
    scale = 1 / np.sqrt(degrees)
    mean = sp.csr_matrix((scale[receivers] * scale[senders], (receivers, senders)), shape=(graph.nodes, graph.nodes))
    direction = torch.from_numpy(coins.normal(size=(graph.features, 1)))
    score = np.tanh(graph.rows.matmul(direction).numpy()[:, 0])
    for _ in range(rounds):
        score = (score + mean @ score) / 2
    score = score / (1 + 1 / degrees)  # sigmoid(log D) = D / (1 + D)
    ranks = np.empty(graph.nodes)
    ranks[np.argsort(score, kind="stable")] = np.arange(1, graph.nodes + 1)
    return ranks


def budget_shares(lists: Lists, ranks: np.ndarray, max_degree: int, rule: str) -> np.ndarray:
    """beta_u; 1 for nodes without neighbours, where the paper leaves it open."""
    senders, receivers = lists.edge_index()
    degrees = np.maximum(lists.in_degrees, 1)
    around = np.maximum(lists.aggregate(ranks[:, None])[:, 0], 1e-300)  # sum of R over N(k)
    share = ranks[receivers] / around[senders] * (max_degree - degrees[senders]) + 1
    ceiling = max_degree / degrees[senders if rule == "printed" else receivers]
    beta = np.full(lists.nodes, np.inf)
    np.minimum.at(beta, receivers, np.minimum(share, ceiling))
    return np.where(np.isfinite(beta), np.maximum(beta, 0.0), 1.0)


def thinning_rates(degrees: np.ndarray, nodes: int, redraw: float, rule: str) -> np.ndarray:
    """p_u = 2 D_u / (D_u + N - N s + D_u s); ``intended`` reads s as the probability to keep, as the appendix does."""
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
