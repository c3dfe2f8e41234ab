"""Topology-based node influence estimation (TNIE) of published NIP-GNN, equations 6 to 8.

    h_u^0 = MLP(x_u),   h_u^t = sum_{v in N(u)} h_v^(t-1) / sqrt(D_u D_v),   s(u) = sigma(lambda log D_u + phi) h_u^T

The paper calls lambda and phi learnable and names no target. ``fixed``: an MLP with public random weights and one output,
lambda = 1, phi = 0, so the score is a random public function of private features and edges. ``labels``: MLP, lambda and phi learn
to tell the *noisy* training labels (as many outputs as classes, cross-entropy), and the score is the length of s(u).
Tests: ``tests/methods/test_nip_published.py``.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.graph import Graph, Lists
from graphveil.graph.layout import csr_tensor
from graphveil.learn.graph_training import features

WIDTH = 64
EPOCHS, RATE = 50, 1e-2  # of the learned version


def neighbour_sensing(lists: Lists) -> sp.csr_matrix:
    """The matrix of eq. 7: ``A_uv / sqrt(D_u D_v)``, without self term."""
    senders, receivers = lists.edge_index()
    scale = 1 / np.sqrt(np.maximum(lists.in_degrees, 1))
    entries = (scale[receivers] * scale[senders], (receivers, senders))
    return sp.csr_matrix(entries, shape=(lists.nodes, lists.nodes), dtype=np.float32)


class Influence(nn.Module):
    """Scores s(u) with ``outputs`` numbers per node."""

    def __init__(self, columns: int, outputs: int, rounds: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(columns, WIDTH), nn.Linear(WIDTH, outputs)
        self.weight, self.shift = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))
        self.rounds = rounds

    def forward(self, x: Tensor, near: Tensor, log_degrees: Tensor) -> Tensor:
        h = self.last(functional.selu(x @ self.first.weight.T + self.first.bias))
        for _ in range(self.rounds):
            h = near @ h
        gated: Tensor = torch.sigmoid(self.weight * log_degrees + self.shift)[:, None] * h
        return gated


def influence_ranks(
    graph: Graph, lists: Lists, rounds: int, coins: np.random.Generator, targets: np.ndarray | None = None
) -> np.ndarray:
    """R(u) in 1 .. n over the sub-graph ``lists``; ``targets``: noisy labels (-1 where there is none) to learn from."""
    x, near = features(graph.rows), csr_tensor(neighbour_sensing(lists))
    log_degrees = torch.from_numpy(np.log(np.maximum(lists.in_degrees, 1))).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(coins.integers(2**63)))
        network = Influence(x.shape[1], 1 if targets is None else graph.classes, rounds)
    if targets is not None:
        labels = torch.from_numpy(targets)
        optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
        for _ in range(EPOCHS if bool((labels >= 0).any()) else 0):
            optimizer.zero_grad()
            scores = network(x, near, log_degrees)[labels >= 0]
            torch.autograd.backward(functional.cross_entropy(scores, labels[labels >= 0]))
            optimizer.step()
    with torch.no_grad():
        found = network(x, near, log_degrees)
    score = (found[:, 0] if targets is None else torch.linalg.vector_norm(found, dim=1)).double().numpy()
    ranks = np.empty(graph.nodes)
    ranks[np.argsort(score, kind="stable")] = np.arange(1, graph.nodes + 1)
    return ranks
