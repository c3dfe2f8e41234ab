"""Adaptive calibrated aggregation (ACA) on noisy rows and a noisy graph, trained on noisy labels: all of it post-processing.

    h0 = X W + b,   m = S h_{k-1},   gamma = max(1 - tau / ||m - h0||, 0),   h_k = (1 - gamma) h0 + gamma m,   k = 1 .. K

with S the normalised noisy adjacency with self-loops and tau learned. ``residual=False`` keeps h_k = m.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional

from graphveil.learn.graph_training import gcn_matrix
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.progress import Progress


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
    residual: bool,
) -> ScoresPredictor:
    """Scores of every node after training on the targets that are not negative; inputs are released values."""
    x = torch.from_numpy(rows / max(float(np.abs(rows).std()), 1e-12)).float()
    near = gcn_matrix(arcs, len(rows))
    width = rows.shape[1]
    weights = {
        "in": torch.from_numpy(coins.normal(0, 1 / math.sqrt(max(width, 1)), (width, hidden))).float(),
        "bias": torch.zeros(hidden),
        "out": torch.from_numpy(coins.normal(0, 1 / math.sqrt(hidden), (hidden, classes))).float(),
        "end": torch.zeros(classes),
        "tau": torch.zeros(1),
    }

    def scores() -> torch.Tensor:
        h0 = x @ weights["in"] + weights["bias"]
        h, tau = h0, functional.softplus(weights["tau"])
        for _ in range(hops):
            m = near @ h
            if not residual:
                h = m
                continue
            distance = torch.linalg.vector_norm(m - h0, dim=1, keepdim=True).clamp(min=1e-6)
            gamma = torch.relu(1 - tau / distance)
            h = (1 - gamma) * h0 + gamma * m
        return functional.selu(h) @ weights["out"] + weights["end"]

    labels = torch.from_numpy(targets)
    chosen = labels >= 0
    for weight in weights.values():
        weight.requires_grad_()
    optimizer = torch.optim.Adam(list(weights.values()), lr=learning_rate)
    for epoch in range(epochs if bool(chosen.any()) else 0):
        optimizer.zero_grad()
        torch.autograd.backward(functional.cross_entropy(scores()[chosen], labels[chosen]))
        optimizer.step()
        progress("network", epoch + 1, epochs)
    with torch.no_grad():
        return ScoresPredictor(scores().double().numpy())
