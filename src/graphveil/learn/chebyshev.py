"""Chebyshev convolution of order 2 that also takes a sparse adjacency matrix."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn import ChebConv


class Chebyshev(ChebConv):
    """Theta_0 x - Theta_1 D^-1/2 A D^-1/2 x + b: PyG's ``ChebConv`` with K = 2 and largest eigenvalue 2.

    On a sparse matrix ``adjacency[receiver, sender]`` the (narrower) product Theta_1 x is propagated instead of x, which is the
    same numbers. Test: ``tests/learn/test_chebyshev.py``.
    """

    def __init__(self, width: int, out: int) -> None:
        super().__init__(width, out, K=2)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        if adjacency.layout is torch.strided:
            found: Tensor = super().forward(x, adjacency)
            return found
        senders = adjacency.col_indices()
        degrees = torch.bincount(senders, minlength=len(x)).to(x.dtype)
        scale = torch.where(degrees > 0, degrees.rsqrt(), torch.zeros_like(degrees))[:, None]
        return self.lins[0](x) - scale * (adjacency @ (scale * self.lins[1](x))) + self.bias
