"""Propagated sparse rows that are never made: inputs of a first layer as factors.

    x = S^K (a R + b 1 1^T),     x W = S^K (R (a W)) + b (S^K 1)(1^T W)

R has few entries per row (multi-bit reports: one of thousands), x has none that is 0. A product costs entries(R) + K arcs numbers
per column of W instead of nodes x width, and x need not be held. The numbers are those of the product with x up to rounding.
Tests: ``tests/learn/test_propagated.py``.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.learn.arcs import Fixed

WORTH = 32  # a dense product is so many times quicker per number, with room to spare


class PropagatedRows:
    """``S^steps (scale R + shift)`` for ``rows @ weights``: what operators on arcs ask of their inputs."""

    def __init__(self, matrix: sp.csr_matrix, reports: sp.csr_matrix, steps: int, scale: float, shift: float) -> None:
        self.shape = reports.shape
        self.steps, self.step = steps, Fixed(matrix)
        scaled = sp.csr_matrix(reports, dtype=np.float32) * np.float32(scale)
        scaled.sum_duplicates()  # sorts, too
        self.reports = Fixed(scaled)
        level = np.full(len(self), shift, dtype=np.float32)
        for _ in range(steps):
            level = matrix @ level
        self.level = torch.from_numpy(level)[:, None]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __matmul__(self, weights: Tensor) -> Tensor:
        found = self.reports @ weights.contiguous()
        for _ in range(self.steps):
            found = self.step @ found
        return found + self.level * weights.sum(dim=0)

    @staticmethod
    def worth(matrix: sp.csr_matrix, reports: sp.csr_matrix, steps: int) -> bool:
        """Whether factors are quicker than the rows themselves."""
        return bool(np.prod(reports.shape) > WORTH * (reports.nnz + steps * matrix.nnz))
