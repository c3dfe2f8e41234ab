"""Training a graph network on one given graph, without privacy: what is private was done to the graph before."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_torch_csr_tensor

from graphveil.graph.layout import csr_tensor
from graphveil.graph.rows import Rows, SparseRows
from graphveil.graph.unit import unit_rows
from graphveil.learn.arcs import Arcs
from graphveil.learn.backbones import ATTENTION, one_graph


def adjacency(edge_index: np.ndarray, nodes: int) -> Tensor:
    """The arcs as a sparse matrix [receiver, sender], on which most operators are quickest."""
    arcs = torch.from_numpy(np.ascontiguousarray(edge_index))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its sparse rows a beta feature
        matrix: Tensor = to_torch_csr_tensor(arcs.flip(0), size=(nodes, nodes))
    return matrix


def edges_for(backbone: str, edge_index: np.ndarray, nodes: int) -> Tensor | Arcs:
    """The arcs as this backbone reads them: in the order of receivers where arcs are scored, else a sparse matrix."""
    return Arcs.of(edge_index, nodes) if backbone in ATTENTION else adjacency(edge_index, nodes)


def features(rows: Rows) -> Tensor:
    """Unit feature rows and a constant column, sparse where the features are."""
    unit = unit_rows(rows)
    if isinstance(unit, SparseRows):
        joined = sp.hstack([unit.values, np.ones((unit.shape[0], 1))], format="csr", dtype=np.float32)
        return csr_tensor(joined)
    dense = unit.matmul(torch.eye(unit.shape[1], dtype=torch.float64)).float()
    return torch.cat([dense, torch.ones(len(dense), 1)], dim=1)


def gcn_matrix(edge_index: np.ndarray, nodes: int) -> Tensor:
    """``S = (D+1)^-1/2 (A + I) (D+1)^-1/2`` with the receivers' degrees."""
    matrix: Tensor = gcn_norm(adjacency(edge_index, nodes))[0]
    return matrix


def mean_matrix(edge_index: np.ndarray, nodes: int) -> Tensor:
    """``D^-1 A`` with the receivers' degrees."""
    matrix = adjacency(edge_index, nodes)
    degrees = matrix.crow_indices().diff()
    matrix.values().div_(degrees.repeat_interleave(degrees))
    return matrix


def train_on_graph(
    network: nn.Module,
    x: Tensor,
    edges: Tensor | Arcs,
    targets: np.ndarray,
    *,
    epochs: int,
    learning_rate: float,
    weight_decay: float,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Full-batch Adam on the nodes whose target is not negative; dropout comes from ``seed`` (public)."""
    labels = torch.from_numpy(targets)
    chosen = labels >= 0
    optimizer = torch.optim.Adam(network.parameters(), learning_rate, weight_decay=weight_decay)
    network.train()
    with torch.random.fork_rng(devices=[]), one_graph(network):
        torch.manual_seed(seed)
        for epoch in range(epochs):
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(network(x, edges)[chosen], labels[chosen]))
            optimizer.step()
            if progress is not None:
                progress(epoch + 1, epochs)
    network.eval()
