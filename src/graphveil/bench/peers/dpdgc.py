"""DPDGC (Chien, Chen, Pan, Ozgur and Milenkovic, NeurIPS 2023), node level, on PyG and Opacus.

1. *Codes*: selu(A_i W + b) R for the adjacency row A_i of every training node, R random and fixed; W and b by DP-Adam.
2. *Table*: Z = unit(A W + b), by PyG's sum.
3. *Classifier*: one layer on own features, one on Z, two on both; DP-Adam.

One multiplier z for both stages. *Promise*: the paper counts D + 1 touched rows as sqrt(D + 1), which does not hold, and a sound
count would leave nothing but noise. So this peer gets the reading that costs it least under ``record`` adjacency, zero-out: A_i
is i's own list (on undirected data the same numbers), so a record is one row of either stage, and Z_i is what i computes from
released codes and their own list, which needs neither noise nor a bound on lists and codes. The last epoch counts.
"""

from __future__ import annotations

from typing import Any

import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn.functional import normalize, selu
from torch_geometric.nn import SimpleConv
from torch_geometric.utils import to_scipy_sparse_matrix

from graphveil.bench.peers.training import HIDDEN, Settings, train


class Codes(nn.Module):
    """One trained layer on adjacency rows below a fixed orthonormal head."""

    head: Tensor

    def __init__(self, nodes: int, classes: int) -> None:
        super().__init__()
        self.codes = nn.Linear(nodes, HIDDEN)
        self.register_buffer("head", nn.init.orthogonal_(torch.empty(HIDDEN, classes)) * 6**0.5)

    def forward(self, rows: Tensor) -> Tensor:
        return selu(self.codes(rows)) @ self.head


class Classifier(nn.Module):
    """Features and table side by side."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.own, self.near = nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.head = nn.Sequential(nn.Linear(2 * HIDDEN, HIDDEN), nn.SELU(), nn.Linear(HIDDEN, classes))

    def forward(self, rows: Tensor, table: Tensor) -> Tensor:
        found: Tensor = self.head(selu(torch.cat([self.own(rows), self.near(table)], dim=1)))
        return found


def run(data: Any, epsilon: float, delta: float, settings: Settings) -> Tensor:
    """Predicted classes of all nodes."""
    nodes, classes = data.train_mask.nonzero().flatten(), int(data.num_classes)
    noise = settings.noise(epsilon, delta, len(nodes), sums=0)
    lists = to_scipy_sparse_matrix(data.edge_index, num_nodes=data.num_nodes).tocsr()
    encoder = Codes(data.num_nodes, classes)
    train(encoder, lambda drawn: (dense_rows(lists, drawn),), data.y, nodes, noise, settings)
    with torch.no_grad():
        summed = SimpleConv(aggr="sum")(encoder.codes.weight.T.contiguous(), data.edge_index.flip(0))
        table = normalize(summed + encoder.codes.bias)
    classifier = Classifier(data.x.shape[1], classes)
    train(classifier, lambda drawn: (data.x[drawn], table[drawn]), data.y, nodes, noise, settings)
    with torch.no_grad():
        found: Tensor = classifier(data.x, table).argmax(dim=1)
    return found


def dense_rows(lists: csr_matrix, nodes: Tensor) -> Tensor:
    """The adjacency rows of these nodes, filled up with zeros: Opacus' layers take dense inputs."""
    return torch.from_numpy(lists[nodes.numpy()].toarray())
