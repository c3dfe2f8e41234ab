"""The arcs of one graph in the order of their receivers: sorted once, read in every epoch.

PyG gathers a row per arc and scatters it again, which takes arcs x width numbers of memory and most of the time. Operators that
are given :class:`Arcs` sum in place instead: the same numbers up to rounding. Tests: ``tests/learn/test_arcs.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.graph.layout import csr_tensor


class Fixed:
    """A sparse matrix that is not learned: ``fixed @ x``, with its transpose at hand for the gradient."""

    def __init__(self, matrix: sp.csr_matrix) -> None:
        self.matrix, self.turned = csr_tensor(matrix), csr_tensor(sp.csr_matrix(matrix.T))

    def __matmul__(self, x: Tensor) -> Tensor:
        return product(x, self)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, fixed: Fixed) -> Tensor:
        ctx.fixed = fixed
        return fixed.matrix @ x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.fixed.turned @ gradients[0], None


product: Callable[[Tensor, Fixed], Tensor] = _Product.apply


Said = tuple[Tensor, ...]  # what every row says, part by part


class Inputs(Protocol):
    """Rows that know their products with weights: a tensor, or factors of one."""

    def __matmul__(self, weights: Tensor, /) -> Tensor: ...


def on_arcs(operator: Any, x: Inputs, arcs: Arcs) -> Tensor:
    """An operator in its two steps: what everybody says (``sent``, row by row), and what receivers make of it (``heard``)."""
    said = operator.sent(x)
    rows: Tensor = operator.heard(said, said, arcs)
    return rows


def together(x: Inputs, *weights: Tensor) -> tuple[Tensor, ...]:
    """``x W^T`` for several matrices in one product, which passes over x once."""
    return torch.split(x @ torch.cat(weights).T, [len(weight) for weight in weights], dim=1)


@dataclass(frozen=True, eq=False)
class Arcs:
    """Receiver i hears ``senders[starts[i]:starts[i + 1]]``; who sends twice is there twice."""

    starts: np.ndarray
    senders: np.ndarray

    @classmethod
    def of(cls, edge_index: np.ndarray, nodes: int) -> Arcs:
        """From pairs (sender, receiver) in any order."""
        senders, receivers = np.asarray(edge_index)
        order = np.lexsort((senders, receivers))
        starts = np.concatenate([[0], np.cumsum(np.bincount(receivers, minlength=nodes))])
        return cls(starts.astype(np.int64), senders[order].astype(np.int64))

    @property
    def nodes(self) -> int:
        return len(self.starts) - 1

    @property
    def receivers(self) -> np.ndarray:
        return np.repeat(np.arange(self.nodes), np.diff(self.starts))

    @cached_property
    def with_loops(self) -> Arcs:
        """Everybody hears itself once."""
        receivers, everybody = self.receivers, np.arange(self.nodes)
        others = self.senders != receivers
        pairs = np.stack([self.senders[others], receivers[others]])
        return Arcs.of(np.concatenate([pairs, [everybody, everybody]], axis=1), self.nodes)

    @cached_property
    def sums(self) -> Fixed:
        """``A``."""
        return Fixed(self._weighted(np.ones(self.nodes), np.ones(self.nodes)))

    @cached_property
    def means(self) -> Fixed:
        """``D^-1 A`` with the receivers' degrees."""
        return Fixed(self._weighted(1 / np.maximum(np.diff(self.starts), 1), np.ones(self.nodes)))

    @cached_property
    def gcn(self) -> Fixed:
        """``D^-1/2 (A + I) D^-1/2`` with the receivers' degrees; whoever had a loop has one."""
        around = self.with_loops
        root = 1 / np.sqrt(np.diff(around.starts))
        return Fixed(around._weighted(root, root))

    def _weighted(self, receiving: np.ndarray, sending: np.ndarray) -> sp.csr_matrix:
        weights = receiving[self.receivers] * sending[self.senders]
        matrix = sp.csr_matrix((weights.astype(np.float32), self.senders, self.starts), (self.nodes, self.nodes))
        matrix.sum_duplicates()
        return matrix
