"""Adaptive calibrated aggregation (ACA) on noisy rows and a noisy graph, trained on noisy labels: all of it post-processing.

    M = S H^(k-1),   gamma = max(1 - tau / ||M - H^0||, 0),   H^k = (1 - gamma) H^0 + gamma M,   k = 1 .. K      (eq. 14, 15)

on the noisy rows H^0 themselves, S the normalised noisy adjacency with self-loops, tau learned; a two-layer network reads H^K.
Training as in section 5.1: Adam, batches of 64, the rate halved when the loss on released labels has not fallen for 20 epochs.
With ``E^k = H^k - H^0`` a hop reads ``E^k = gamma (S H^0 - H^0 + S E^(k-1))``, so a batch needs E^(K-1) of its neighbours alone,
and ``S E^1`` is linear in tau while nobody's gamma comes to or leaves 0. Without residual: SAGE (the ablation "w/o A-r").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphveil.learn.kernels import calibrated_rows
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.progress import Progress

Look = Callable[[Callable[[np.ndarray], np.ndarray]], float]

LEAST = 1e-9
PATIENCE, DECAY = 20, 0.5
AT_ONCE = 512  # nodes scored together


def noisy_matrix(arcs: np.ndarray, nodes: int, loops: bool) -> sp.csr_matrix:
    """``D^-1/2 (A + I) D^-1/2``, or without loops the mean ``D^-1 A``, of arcs (senders, receivers) by the receivers' degrees."""
    matrix = sp.csr_matrix((np.ones(arcs.shape[1], dtype=np.float32), (arcs[1], arcs[0])), shape=(nodes, nodes))
    matrix = matrix + sp.identity(nodes, dtype=np.float32, format="csr") if loops else matrix
    degrees = np.maximum(np.asarray(matrix.sum(axis=1))[:, 0], 1)
    if not loops:
        return (sp.diags(1 / degrees) @ matrix).tocsr()
    scale = sp.diags(1 / np.sqrt(degrees))
    return (scale @ matrix @ scale).tocsr()


def _bags(matrix: sp.csr_matrix, nodes: np.ndarray) -> tuple[np.ndarray, Tensor, Tensor]:
    """Columns, where each row's begin, and values of some rows."""
    rows = matrix[nodes]
    return rows.indices.astype(np.int64), torch.from_numpy(rows.indptr[:-1].astype(np.int64)), _floats(rows.data)


def _floats(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def _summed(columns: np.ndarray, starts: Tensor, weights: Tensor, table: Tensor) -> Tensor:
    return functional.embedding_bag(torch.from_numpy(columns), table, starts, mode="sum", per_sample_weights=weights)


def _layer(inputs: int, outputs: int, coins: np.random.Generator, bias: bool = True) -> nn.Linear:
    """A layer with weights from public coins and no bias yet."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    with torch.no_grad():
        layer.weight.copy_(_floats(coins.normal(0, 1 / math.sqrt(max(inputs, 1)), (inputs, outputs)).T))
        if bias:
            layer.bias.zero_()
    return layer


class _Read(torch.autograd.Function):
    """``rows W + b``, where ``both`` is the rows and their derivative by tau: one product for both."""

    @staticmethod
    def forward(ctx: Any, both: Tensor, weight: Tensor, bias: Tensor, tau: Tensor) -> Tensor:
        found, slope = (both @ weight.T).chunk(2)
        ctx.save_for_backward(both, slope)
        return found + bias

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (given,), (both, slope) = gradients, ctx.saved_tensors
        return None, given.T @ both[: len(given)], given.sum(dim=0), (given * slope).sum().reshape(1)


_read: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = _Read.apply


class Calibrated(nn.Module):
    """H^K of some nodes, then two layers."""

    def __init__(
        self, rows: np.ndarray, arcs: np.ndarray, hidden: int, classes: int, hops: int, coins: np.random.Generator
    ) -> None:
        super().__init__()
        self.hops, self.near = hops, noisy_matrix(arcs, len(rows), loops=True)
        self.start = _floats(rows)
        self.step = _floats(self.near @ self.start.numpy()) - self.start if hops else self.start
        self.distance = torch.linalg.vector_norm(self.step, dim=1).clamp(min=LEAST)
        self.first, self.last = _layer(rows.shape[1], hidden, coins), _layer(hidden, classes, coins)
        self.free_tau = nn.Parameter(torch.zeros(1))
        self.active = torch.zeros(0, dtype=torch.bool)
        self.refresh()

    def refresh(self) -> None:
        """``M - H^0`` of the second hop, ``base - tau slope`` as long as the set of nodes with gamma > 0 stays as it is."""
        active = self.distance > functional.softplus(self.free_tau.detach())
        if self.hops != 2 or torch.equal(active, self.active):
            return
        self.active = active
        whole = torch.where(active[:, None], self.step, 0.0)
        self.base = self.step + _floats(self.near @ whole.numpy())
        self.slope = _floats(self.near @ (whole / self.distance[:, None]).numpy())

    def forward(self, nodes: np.ndarray) -> Tensor:
        at, tau = torch.from_numpy(nodes), functional.softplus(self.free_tau)
        if self.hops == 2 and torch.equal(self.active, self.distance > tau):
            hidden = _read(self.two_hops(at, tau.detach()), self.first.weight, self.first.bias, tau)
        else:
            hidden = self.first(self.start[at] + (self.excess(nodes, self.hops, tau) if self.hops else 0.0))
        scores: Tensor = self.last(functional.selu(hidden))
        return scores

    def two_hops(self, at: Tensor, tau: Tensor) -> Tensor:
        """H^2 of these nodes, and below it its derivative by tau."""
        found = torch.empty(2 * len(at), self.start.shape[1])
        tables = self.start.numpy(), self.base.numpy(), self.slope.numpy()
        calibrated_rows(*tables, at.numpy(), float(tau), LEAST, found.numpy())
        return found

    def excess(self, nodes: np.ndarray, hop: int, tau: Tensor) -> Tensor:
        """E^hop of these nodes."""
        at = torch.from_numpy(nodes)
        if hop == 1:
            return torch.relu(1 - tau / self.distance[at])[:, None] * self.step[at]
        columns, starts, weights = _bags(self.near, nodes)
        around, places = np.unique(columns, return_inverse=True)
        moved = self.step[at] + _summed(places.reshape(-1), starts, weights, self.excess(around, hop - 1, tau))
        distance = torch.linalg.vector_norm(moved, dim=1).clamp(min=LEAST)
        return torch.relu(1 - tau / distance)[:, None] * moved


class Sage(nn.Module):
    """K SAGE layers ``h <- selu(h W + mean(h) V)`` over the noisy graph, the last to the classes and without selu."""

    def __init__(
        self, rows: np.ndarray, arcs: np.ndarray, hidden: int, classes: int, hops: int, coins: np.random.Generator
    ) -> None:
        super().__init__()
        self.near, self.start = noisy_matrix(arcs, len(rows), loops=False), _floats(rows)
        self.mean = _floats(self.near @ rows)
        widths = [rows.shape[1], *[hidden] * (hops - 1), classes]
        pairs = list(pairwise(widths))
        self.own = nn.ModuleList(_layer(*pair, coins) for pair in pairs)
        self.heard = nn.ModuleList(_layer(*pair, coins, bias=False) for pair in pairs)

    def forward(self, nodes: np.ndarray) -> Tensor:
        return self._layer(nodes, len(self.own))

    def _layer(self, nodes: np.ndarray, layer: int) -> Tensor:
        at, own, heard = torch.from_numpy(nodes), self.own[layer - 1], self.heard[layer - 1]
        if layer == 1:
            rows: Tensor = own(self.start[at]) + heard(self.mean[at])
            return rows
        columns, starts, weights = _bags(self.near, nodes)
        around, places = np.unique(np.concatenate([nodes, columns]), return_inverse=True)
        places = places.reshape(-1)
        inner = functional.selu(self._layer(around, layer - 1))
        told: Tensor = heard(_summed(places[len(nodes) :], starts, weights, inner))
        joined: Tensor = told + own(inner[torch.from_numpy(places[: len(nodes)])])
        return joined


def train_calibrated(
    rows: np.ndarray,
    arcs: np.ndarray,
    targets: np.ndarray,
    classes: int,
    coins: np.random.Generator,
    progress: Progress,
    *,
    hidden: int,
    hops: int,
    epochs: int,
    learning_rate: float,
    batch_size: int = 64,
    residual: bool = True,
    look: Look | None = None,
) -> ScoresPredictor:
    """Scores of every node after training on the targets that are not negative; inputs are released values.

    ``look`` says how good the scores of some nodes are: the epoch with the best of them is kept, else the last.
    """
    with torch.random.fork_rng(devices=[]):  # torch draws weights of its own first, which are thrown away
        network = (Calibrated if residual else Sage)(rows, arcs, hidden, classes, hops, coins)
    settings: dict[str, Any] = {"epochs": epochs, "learning_rate": learning_rate, "batch_size": batch_size}
    _descend(network, targets, coins, progress, look, **settings)
    return ScoresPredictor(scores_of(network, np.arange(len(rows))).double().numpy())


def scores_of(network: nn.Module, nodes: np.ndarray) -> Tensor:
    """Scores of these nodes, some at a time."""
    with torch.no_grad():
        return torch.cat([network(part) for part in np.array_split(nodes, max(1, len(nodes) // AT_ONCE))])


def _descend(
    network: nn.Module,
    targets: np.ndarray,
    coins: np.random.Generator,
    progress: Progress,
    look: Look | None,
    *,
    epochs: int,
    learning_rate: float,
    batch_size: int,
) -> None:
    """Adam on batches; the rate is halved when an epoch's mean loss has not fallen for ``PATIENCE`` epochs."""
    best, kept = -1.0, network.state_dict()
    chosen, labels = np.flatnonzero(targets >= 0), torch.from_numpy(targets)
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate, fused=True)
    decay = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=DECAY, patience=PATIENCE)
    for epoch in range(epochs if chosen.size else 0):
        order, total = coins.permutation(chosen), 0.0
        if isinstance(network, Calibrated):
            network.refresh()
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(batch), labels[torch.from_numpy(batch)])
            torch.autograd.backward(loss)
            optimizer.step()
            total += float(loss.detach()) * len(batch)
        decay.step(total / len(order))
        progress("network", epoch + 1, epochs)
        if look is not None and (reached := look(lambda nodes: scores_of(network, nodes).numpy())) > best:
            best, kept = reached, {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(kept)
