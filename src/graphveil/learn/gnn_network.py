"""Two-layer graph networks on sparse products: GraphSAGE (mean), GCN and SGC, trained without privacy on a given graph.

    sage  h = selu(X U + D^-1 A X V + b),    logits = h U' + D^-1 A h V' + b'
    gcn   h = selu(S X U + b),               logits = S h U' + b',   S = (D+1)^-1/2 (A + I) (D+1)^-1/2
    sgc   logits = S^2 X U + b

Features are projected before they travel, so a product costs arcs x hidden width; nothing is n x n.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.graph import Graph
from graphveil.graph.lists import Lists
from graphveil.graph.rows import Rows, SparseRows
from graphveil.graph.unit import unit_rows


class Operator(StrEnum):
    """How neighbours are read."""

    SAGE = "sage"
    GCN = "gcn"
    SGC = "sgc"


class Product(torch.autograd.Function):
    """``matrix @ x`` for a constant SciPy matrix."""

    @staticmethod
    def forward(ctx: Any, matrix: sp.csr_matrix, transposed: sp.csr_matrix, x: Tensor) -> Tensor:
        ctx.transposed = transposed
        return torch.from_numpy(matrix @ x.detach().numpy())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, torch.from_numpy(ctx.transposed @ np.ascontiguousarray(gradient.numpy()))


class Constant:
    """A matrix that does not change during training, with its transpose at hand."""

    def __init__(self, matrix: sp.csr_matrix | np.ndarray) -> None:
        self.sparse = sp.issparse(matrix)
        self.matrix = matrix.tocsr().astype(np.float32) if self.sparse else torch.from_numpy(matrix).float()
        self.transposed = self.matrix.T.tocsr() if self.sparse else None

    def __matmul__(self, x: Tensor) -> Tensor:
        return Product.apply(self.matrix, self.transposed, x) if self.sparse else self.matrix @ x


def neighbourhood(lists: Lists, operator: Operator) -> Constant:
    """The operator's matrix: rows are receivers."""
    senders, receivers = lists.edge_index()
    nodes = lists.nodes
    if operator is Operator.SAGE:
        weights = 1.0 / np.maximum(lists.in_degrees, 1)[receivers]
        return Constant(sp.csr_matrix((weights, (receivers, senders)), shape=(nodes, nodes)))
    scale = 1.0 / np.sqrt(lists.in_degrees + 1.0)
    matrix = sp.csr_matrix((scale[receivers] * scale[senders], (receivers, senders)), shape=(nodes, nodes))
    return Constant(matrix + sp.diags(scale**2))


def features(rows: Rows) -> Constant:
    """Unit feature rows and a constant column."""
    unit = unit_rows(rows)
    ones = np.ones((unit.shape[0], 1))
    if isinstance(unit, SparseRows):
        return Constant(sp.hstack([unit.values, sp.csr_matrix(ones)]).tocsr())
    return Constant(np.hstack([unit.matmul(torch.eye(unit.shape[1], dtype=torch.float64)).numpy(), ones]))


class GraphNetwork:
    """Weights of one of the three networks; ``logits`` on any graph with as many features."""

    def __init__(self, operator: Operator, weights: dict[str, Tensor]) -> None:
        self.operator, self.weights = operator, weights

    @classmethod
    def initialised(
        cls, operator: Operator, inputs: int, hidden: int, classes: int, coins: np.random.Generator
    ) -> GraphNetwork:
        shapes = {
            "own": (inputs, hidden),
            "near": (inputs, hidden),
            "own2": (hidden, classes),
            "near2": (hidden, classes),
        }
        if operator is Operator.GCN:
            shapes = {"near": (inputs, hidden), "near2": (hidden, classes)}
        elif operator is Operator.SGC:
            shapes = {"near": (inputs, classes)}
        weights = {
            name: torch.from_numpy(coins.normal(0, 1 / math.sqrt(shape[0]), shape)).float()
            for name, shape in shapes.items()
        }
        return cls(operator, weights | {"bias": torch.zeros(classes)})

    def logits(self, x: Constant, near: Constant, dropout: float = 0.0) -> Tensor:
        w = self.weights
        if self.operator is Operator.SGC:
            return near @ (near @ (x @ w["near"])) + w["bias"]
        h = near @ (x @ w["near"])
        if self.operator is Operator.SAGE:
            h = h + x @ w["own"]
        h = functional.dropout(functional.selu(h), dropout, training=dropout > 0)
        out = near @ (h @ w["near2"]) + w["bias"]
        return out + h @ w["own2"] if self.operator is Operator.SAGE else out

    def train(
        self,
        x: Constant,
        near: Constant,
        targets: np.ndarray,
        *,
        epochs: int,
        learning_rate: float,
        weight_decay: float,
        dropout: float,
        coins: np.random.Generator,
        progress: Any = None,
    ) -> None:
        """Full-batch Adam on the nodes whose target is not negative."""
        labels = torch.from_numpy(targets)
        chosen = labels >= 0
        for weight in self.weights.values():
            weight.requires_grad_()
        optimizer = torch.optim.Adam(list(self.weights.values()), lr=learning_rate, weight_decay=weight_decay)
        with torch.random.fork_rng():
            torch.manual_seed(int(coins.integers(2**31)))
            for epoch in range(epochs):
                optimizer.zero_grad()
                functional.cross_entropy(self.logits(x, near, dropout)[chosen], labels[chosen]).backward()
                optimizer.step()
                if progress is not None:
                    progress(epoch + 1, epochs)
        for weight in self.weights.values():
            weight.requires_grad_(False)


class GnnPredictor:
    """A trained network; ``arcs`` is the released graph it predicts on, or None to read the graph it is given."""

    transfers = True

    def __init__(self, network: GraphNetwork, arcs: np.ndarray | None = None) -> None:
        self.network, self.arcs = network, arcs
        self.transfers = arcs is None

    def logits(self, graph: Graph) -> np.ndarray:
        lists = graph.lists if self.arcs is None else Lists.from_edge_index(self.arcs, graph.nodes)
        with torch.no_grad():
            scores = self.network.logits(features(graph.rows), neighbourhood(lists, self.network.operator))
        return scores.double().numpy()

    def config(self) -> dict[str, Any]:
        return {"kind": "gnn", "operator": str(self.network.operator)}

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {name: weight.numpy() for name, weight in self.network.weights.items()}
        return arrays if self.arcs is None else arrays | {"arcs": self.arcs}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> GnnPredictor:
        weights = {name: torch.from_numpy(value) for name, value in arrays.items() if name != "arcs"}
        return cls(GraphNetwork(Operator(config["operator"]), weights), arrays.get("arcs"))
