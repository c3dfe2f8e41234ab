"""GAP (Sajadmanesh, Shamsabadi, Bellet and Gatica-Perez, USENIX Security 2023), node level, on PyG and Opacus.

1. *Encoder*: two layers and a head on own features, trained by DP-Adam; its unit rows are X_0.
2. *Aggregation*: X_l = unit(A X_{l-1} + N(0, (z sqrt D)^2)) for l = 1..K, by PyG's sum over everybody's list, cut to D entries.
3. *Classifier*: one layer per hop, joined, made unit and activated, and a head; DP-Adam.

One multiplier z for all. *Promise*: cutting reads nobody's list but one's own, so blanking one record (features, label and own
list) takes at most D unit rows out of one sum: sqrt D per hop, ``record`` adjacency, zero-out. The paper states the same bound
for a whole node, which does not hold. No epoch is chosen on validation labels: the last one counts.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, selu
from torch_geometric.nn import SimpleConv

from graphveil.bench.peers.training import HIDDEN, Settings, train

HOPS = 2


class Encoder(nn.Module):
    """Embedding and its training head."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, HIDDEN), nn.SELU(), nn.Linear(HIDDEN, HIDDEN))
        self.head = nn.Linear(HIDDEN, classes)

    def embed(self, rows: Tensor) -> Tensor:
        return normalize(self.layers(rows))

    def forward(self, rows: Tensor) -> Tensor:
        found: Tensor = self.head(selu(self.embed(rows)))
        return found


class Classifier(nn.Module):
    """One layer per hop, then all of them together."""

    def __init__(self, hops: int, classes: int) -> None:
        super().__init__()
        self.bases = nn.ModuleList(nn.Linear(HIDDEN, HIDDEN) for _ in range(hops + 1))
        self.head = nn.Linear((hops + 1) * HIDDEN, classes)

    def forward(self, *rows: Tensor) -> Tensor:
        joined = torch.cat([base(part) for base, part in zip(self.bases, rows, strict=True)], dim=1)
        found: Tensor = self.head(selu(normalize(joined)))
        return found


def run(data: Any, epsilon: float, delta: float, settings: Settings, hops: int = HOPS, most: int = 100) -> Tensor:
    """Predicted classes of all nodes; lists are cut to ``most`` entries."""
    nodes, classes = data.train_mask.nonzero().flatten(), int(data.num_classes)
    noise = settings.noise(epsilon, delta, len(nodes), sums=hops)
    encoder = Encoder(data.x.shape[1], classes)
    train(encoder, lambda drawn: (data.x[drawn],), data.y, nodes, noise, settings)
    conv, lists = SimpleConv(aggr="sum"), cut_lists(data.edge_index, data.num_nodes, most)
    with torch.no_grad():
        tables = [encoder.embed(data.x)]
        for _ in range(hops):
            total = conv(tables[-1], lists)
            tables.append(normalize(total + noise * math.sqrt(most) * torch.randn_like(total)))
    classifier = Classifier(hops, classes)
    train(classifier, lambda drawn: tuple(table[drawn] for table in tables), data.y, nodes, noise, settings)
    with torch.no_grad():
        found: Tensor = classifier(*tables).argmax(dim=1)
    return found


def cut_lists(edge_index: Tensor, nodes: int, most: int) -> Tensor:
    """At most ``most`` entries of everybody's own list, drawn at random: everything that one source sends."""
    shuffled = edge_index[:, torch.randperm(edge_index.shape[1])]
    shuffled = shuffled[:, shuffled[0].argsort(stable=True)]
    degrees = shuffled[0].bincount(minlength=nodes)
    rank = torch.arange(shuffled.shape[1]) - (degrees.cumsum(0) - degrees)[shuffled[0]]
    return shuffled[:, rank < most]
