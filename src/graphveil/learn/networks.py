"""Deeper networks for local methods, built from the backbones: dense layers at the end, or twice as many graph layers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphveil.learn.backbones import TwoLayers, build_backbone


class DenseEnd(nn.Module):
    """Two graph layers, then two dense layers with ReLU: logits = B drop(relu(A drop(relu(graph(x))))) (LGA-PGNN)."""

    def __init__(self, graph: nn.Module, hidden: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.graph = graph
        self.dense = nn.Sequential(
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        logits: Tensor = self.dense(self.graph(x, edge_index))
        return logits


class TwiceAsDeep(nn.Module):
    """Four graph layers: one backbone on top of another."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        logits: Tensor = self.second(nn.functional.selu(self.first(x, edge_index)), edge_index)
        return logits


def with_dense_end(name: str, width: int, hidden: int, classes: int, dropout: float, seed: int) -> nn.Module:
    """The backbone followed by two dense layers, with initial weights from ``seed``."""
    graph = for_one_graph(name, width, hidden, hidden, dropout, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DenseEnd(graph, hidden, classes, dropout)


def twice_as_deep(name: str, width: int, hidden: int, classes: int, dropout: float, seed: int) -> nn.Module:
    """Two backbones, one on the output of the other, with initial weights from ``seed``."""
    first = for_one_graph(name, width, hidden, hidden, dropout, seed)
    return TwiceAsDeep(first, for_one_graph(name, hidden, hidden, classes, dropout, seed + 1))


def for_one_graph(name: str, width: int, hidden: int, classes: int, dropout: float, seed: int) -> TwoLayers:
    """A backbone that sees one graph only, so that GCN keeps its normalised matrix."""
    network = build_backbone(name, width, hidden, classes, dropout, seed)
    if name == "gcn":
        network.first.cached = network.second.cached = True  # type: ignore[union-attr, assignment]
    return network
