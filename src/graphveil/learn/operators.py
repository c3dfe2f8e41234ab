"""PyG's operators where they are wasteful on sparse matrices: the same numbers, from narrower products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import ChebConv, GCNConv, GraphConv, SAGEConv, SGConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from graphveil.learn.arcs import Arcs, together


class Gcn(GCNConv):  # type: ignore[misc]
    """``S x W + b``, S once for all epochs where arcs are given."""

    def forward(self, x: Tensor, adjacency: Tensor | Arcs) -> Tensor:
        if isinstance(adjacency, Arcs):
            heard: Tensor = adjacency.gcn @ self.lin(x) + self.bias
            return heard
        found: Tensor = super().forward(x, adjacency)
        return found


class Chebyshev(ChebConv):  # type: ignore[misc]
    """Theta_0 x - Theta_1 D^-1/2 A D^-1/2 x + b: PyG's ``ChebConv`` with K = 2 and largest eigenvalue 2.

    On a sparse matrix ``adjacency[receiver, sender]`` the (narrower) product Theta_1 x is propagated instead of x, which is the
    same numbers. Test: ``tests/learn/test_operators.py``.
    """

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        if adjacency.layout is torch.strided:
            found: Tensor = super().forward(x, adjacency)
            return found
        senders = adjacency.col_indices()
        degrees = torch.bincount(senders, minlength=len(x)).to(x.dtype)
        scale = torch.where(degrees > 0, degrees.rsqrt(), torch.zeros_like(degrees))[:, None]
        near: Tensor = self.lins[0](x) - scale * (adjacency @ (scale * self.lins[1](x))) + self.bias
        return near


class Projecting:
    """Sparse features, and dense ones along single arcs where it makes them narrower, are projected before they travel."""

    projected: Callable[[Tensor, Any], Tensor]
    in_channels: int
    out_channels: int

    def forward(self, x: Tensor, adjacency: Tensor | Arcs) -> Tensor:
        if isinstance(adjacency, Arcs):
            return self.projected(x, adjacency)
        along_arcs = adjacency.layout is torch.strided and self.out_channels < self.in_channels
        if x.layout is not torch.strided or along_arcs:
            return self.projected(x, adjacency)
        found: Tensor = super().forward(x, adjacency)  # type: ignore[misc]
        return found


class Sage(Projecting, SAGEConv):  # type: ignore[misc]
    """``mean_N(x) V + b + x U``."""

    def projected(self, x: Tensor, adjacency: Tensor | Arcs) -> Tensor:
        if isinstance(adjacency, Arcs):
            near, own = together(x, self.lin_l.weight, self.lin_r.weight)
            heard: Tensor = adjacency.means @ near + self.lin_l.bias + own
            return heard
        near = x @ self.lin_l.weight.T
        sent: Tensor = self.propagate(adjacency, x=(near, near), size=None) + self.lin_l.bias + self.lin_r(x)
        return sent


class GraphSum(Projecting, GraphConv):  # type: ignore[misc]
    """``sum_N(x) V + b + x U``: GraphConv with its own aggregation, the sum."""

    def projected(self, x: Tensor, adjacency: Tensor | Arcs) -> Tensor:
        if isinstance(adjacency, Arcs):
            near, own = together(x, self.lin_rel.weight, self.lin_root.weight)
            heard: Tensor = adjacency.sums @ near + self.lin_rel.bias + own
            return heard
        near = x @ self.lin_rel.weight.T
        near = self.propagate(adjacency, x=(near, near), edge_weight=None, size=None)
        sent: Tensor = near + self.lin_rel.bias + self.lin_root(x)
        return sent


class Sgc(Projecting, SGConv):  # type: ignore[misc]
    """``S^2 x U + b``."""

    def projected(self, x: Tensor, adjacency: Tensor) -> Tensor:
        edges, weights = gcn_norm(adjacency, None, len(x), dtype=x.dtype)
        sent: Tensor = x @ self.lin.weight.T
        for _ in range(self.K):
            sent = self.propagate(edges, x=sent, edge_weight=weights)
        shifted: Tensor = sent + self.lin.bias
        return shifted
