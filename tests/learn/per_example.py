"""Independent references: one autograd pass per example, and the explicit matrix behind any kind of rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.graph.rows import DenseRows, Rows, SparseRows
from graphveil.learn import MLP, Branches, CentredRows, Network, SummedBranches


def gradients(network: Network, inputs: list[Tensor], targets: Tensor, weights: Tensor | None = None) -> Tensor:
    """Row ``i`` is the gradient of example ``i``'s cross-entropy in all parameters, by autograd."""
    rows = []
    for i in range(len(targets)):
        theta = network.parameters.clone().requires_grad_()
        for layer in network.layers:
            layer.bind(theta, layer.start)
        blocks = [block[i : i + 1] for block in inputs]
        reads_many = isinstance(network, Branches | SummedBranches)
        log_probabilities = torch.log_softmax(network(blocks if reads_many else blocks[0]), dim=1)[0]
        target = targets[i]
        if targets.ndim == 2:
            loss = -(target * log_probabilities).sum()
        else:
            loss = -log_probabilities[target] if 0 <= target < len(log_probabilities) else 0 * log_probabilities.sum()
        if weights is not None:
            loss = loss * weights[i]
        rows.append(torch.autograd.grad(loss, theta)[0])
    for layer in network.layers:
        layer.bind(network.parameters, layer.start)
    return torch.stack(rows) if rows else torch.zeros(0, network.parameters.numel(), dtype=torch.float64)


def clipped_sum(per_example: Tensor, clip: float | None) -> Tensor:
    """The definition: scale every gradient longer than ``clip`` down to it, then add."""
    if clip is not None:
        per_example = per_example * (clip / per_example.norm(dim=1, keepdim=True).clamp(min=1e-300)).clamp(max=1.0)
    return per_example.sum(dim=0)


def explicit(block: Tensor | Rows) -> Tensor:
    """The matrix itself."""
    return block if isinstance(block, Tensor) else block.matmul(torch.eye(block.shape[1], dtype=torch.float64))


KINDS = ("tensor", "dense", "sparse", "centred dense", "centred sparse")


def rows_of_kind(kind: str, count: int, width: int, rng: np.random.Generator) -> Tensor | Rows:
    """Random rows, about a third of their entries filled, some rows empty."""
    width -= kind.startswith("centred")
    values = rng.normal(size=(count, width)) * (rng.random((count, width)) < 0.35)
    match kind:
        case "tensor":
            return torch.from_numpy(values)
        case "dense":
            return DenseRows(torch.from_numpy(values))
        case "sparse":
            return SparseRows(sp.csr_matrix(values))
    rows = DenseRows(torch.from_numpy(values)) if kind == "centred dense" else SparseRows(sp.csr_matrix(values))
    return CentredRows(rows, rng.normal(size=width) / 3)


def random_network(rng: np.random.Generator, width: int, classes: int, branched: bool) -> Network:
    """Any depth, activation, bias and normalisation, with random parameters."""
    activation = (torch.selu, torch.relu, torch.tanh)[rng.integers(3)]
    bias = bool(rng.integers(2))
    if branched:
        chains = [[width, *rng.integers(1, 5, rng.integers(1, 3))] for _ in range(rng.integers(1, 4))]
        head = [*rng.integers(1, 5, rng.integers(0, 2)), classes]
        network: Network = Branches(chains, head, normalise=bool(rng.integers(2)))
    else:
        hidden = rng.integers(1, 6, rng.integers(0, 4))
        network = MLP([width, *hidden, classes], activation, bias, bool(len(hidden) and rng.integers(2)))
    network.parameters.copy_(torch.from_numpy(rng.normal(size=network.parameters.numel())))
    return network
