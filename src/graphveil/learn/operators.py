"""PyG's operators where they are wasteful on sparse matrices: the same numbers, from narrower products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import ChebConv, GCNConv, GraphConv, SAGEConv, SGConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from graphveil.learn.arcs import Arcs, Inputs, Said, on_arcs, together


class Propagation(NamedTuple):
    """GCN's matrix S and its transpose, on all vertices or on some ``rows`` of them."""

    matrix: Tensor
    transposed: Tensor
    rows: Tensor | None = None


class _Propagated(torch.autograd.Function):
    """``S x`` where the transpose is at hand: torch would make it again in every backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor, transposed: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ x

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transposed @ slopes[0], None, None


class Gcn(GCNConv):  # type: ignore[misc]
    """``S x U + b``: PyG's ``GCNConv``, which also takes S as it is, or arcs; where it sees one graph (``cached``), S is kept."""

    _cached_edge_index: Propagation | None

    def forward(self, x: Tensor, adjacency: Tensor | Propagation | Arcs) -> Tensor:
        if isinstance(adjacency, Arcs):
            return on_arcs(self, x, adjacency)
        if isinstance(adjacency, Propagation):
            known = adjacency
        elif adjacency.layout is torch.strided or not self.cached:
            found: Tensor = super().forward(x, adjacency)
            return found
        else:
            if self._cached_edge_index is None:
                matrix = gcn_norm(adjacency, None, len(x), dtype=x.dtype)[0]
                self._cached_edge_index = Propagation(matrix, _transposed(matrix))
            known = self._cached_edge_index
        sent: Tensor = _Propagated.apply(self.lin(x), known.matrix, known.transposed)  # type: ignore[no-untyped-call]
        shifted: Tensor = sent + self.bias
        return shifted

    def sent(self, x: Inputs) -> Said:
        return together(x, self.lin.weight)

    def heard(self, sent: Said, own: Said, arcs: Arcs) -> Tensor:
        rows: Tensor = arcs.gcn @ sent[0] + self.bias
        return rows


def _transposed(matrix: Tensor) -> Tensor:
    """The transpose of a sparse matrix, by rows as well."""
    columns = matrix.to_sparse_csc()
    places = columns.ccol_indices(), columns.row_indices()
    return torch.sparse_csr_tensor(*places, columns.values(), (matrix.shape[1], matrix.shape[0]))


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

    projected: Callable[[Tensor, Tensor], Tensor]
    sent: Callable[[Inputs], Said]
    heard: Callable[[Said, Said, Arcs], Tensor]
    in_channels: int
    out_channels: int

    def forward(self, x: Tensor, adjacency: Tensor | Arcs) -> Tensor:
        if isinstance(adjacency, Arcs):
            return on_arcs(self, x, adjacency)
        along_arcs = adjacency.layout is torch.strided and self.out_channels < self.in_channels
        if x.layout is not torch.strided or along_arcs:
            return self.projected(x, adjacency)
        found: Tensor = super().forward(x, adjacency)  # type: ignore[misc]
        return found


class Sage(Projecting, SAGEConv):  # type: ignore[misc]
    """``mean_N(x) V + b + x U``."""

    def sent(self, x: Inputs) -> Said:
        return together(x, self.lin_l.weight, self.lin_r.weight)

    def heard(self, sent: Said, own: Said, arcs: Arcs) -> Tensor:
        rows: Tensor = arcs.means @ sent[0] + self.lin_l.bias + own[1]
        return rows

    def projected(self, x: Tensor, adjacency: Tensor) -> Tensor:
        near = x @ self.lin_l.weight.T
        sent: Tensor = self.propagate(adjacency, x=(near, near), size=None) + self.lin_l.bias + self.lin_r(x)
        return sent


class GraphSum(Projecting, GraphConv):  # type: ignore[misc]
    """``sum_N(x) V + b + x U``: GraphConv with its own aggregation, the sum."""

    def sent(self, x: Inputs) -> Said:
        return together(x, self.lin_rel.weight, self.lin_root.weight)

    def heard(self, sent: Said, own: Said, arcs: Arcs) -> Tensor:
        rows: Tensor = arcs.sums @ sent[0] + self.lin_rel.bias + own[1]
        return rows

    def projected(self, x: Tensor, adjacency: Tensor) -> Tensor:
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
