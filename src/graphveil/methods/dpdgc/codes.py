"""The codes of DPDGC: one vector per node that its neighbours will receive, learned from the adjacency alone or not at all.

    Y^ = selu(A W + b) R,     R random and fixed; rows of W are kept at norm 1 (times c in the table)

A node appears as a column of A in the rows of those it sends to, so one person touches several rows of each gradient sum
(``bounds.group_of``). Other sources of codes: training labels, labels after randomised response, public random vectors.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.graph import Lists, SparseRows
from graphveil.learn import Inputs, Network
from graphveil.learn.batch_norm import Normalised
from graphveil.learn.kernels import unit_rows
from graphveil.learn.modules import Apply, LinearByInput


class CodeNetwork(Network):
    """One trained layer on adjacency rows and a fixed random head.

    ``norm``: every node's code is kept at this norm; without one codes are free, as in the authors' code, whose normalisation
    writes into a copy. ``batch_norm``: before the activation, where records are open.
    """

    def __init__(
        self,
        nodes: int,
        width: int,
        classes: int,
        coins: np.random.Generator,
        norm: float | None = 1.0,
        batch_norm: bool = False,
    ) -> None:
        self._norm, self._scaled = norm, [Normalised(width)] if batch_norm else []
        super().__init__([LinearByInput(nodes, width), *self._scaled])
        for layer in self._scaled:
            layer.initialise(coins, 1.0)
        wide = max(width, classes)
        orthonormal = np.linalg.qr(coins.normal(size=(wide, wide)))[0][:width, :classes]
        self._head = torch.from_numpy(np.ascontiguousarray(orthonormal) * math.sqrt(6.0))
        weight, scale = coins.normal(size=(width, nodes)), 1 / math.sqrt(3 * nodes)
        self.layers[0].weight.copy_(torch.from_numpy(weight if norm else weight * scale))
        self.normalise()

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        rows = apply(self.layers[0], inputs)  # type: ignore[arg-type]
        for layer in self._scaled:
            rows = apply(layer, rows)
        return apply.selu(rows) @ self._head

    def normalise(self) -> None:
        """Every node's code to its norm, as the paper constrains it; the trained vector is changed in place."""
        if self._norm is not None:
            unit_rows(self.layers[0].weight.numpy().T, 1e-12)
            if self._norm != 1:
                self.layers[0].weight.mul_(self._norm)

    @property
    def codes(self) -> np.ndarray:
        """W, one row per node."""
        return self.layers[0].weight.numpy().T.copy()

    @property
    def offset(self) -> np.ndarray:
        bias = self.layers[0].bias
        assert bias is not None
        return bias.numpy().copy()


def adjacency_rows(lists: Lists, weights: np.ndarray, rows: np.ndarray, scales: np.ndarray | None = None) -> SparseRows:
    """Rows of the weighted A: who reaches each of ``rows``, with the sender's weight; ``scales``: factors of whole rows."""
    senders, receivers = lists.edge_index()
    values = weights[senders] if scales is None else weights[senders] * scales[receivers]
    matrix = sp.csr_matrix((values, (receivers, senders)), shape=(lists.nodes, lists.nodes))
    return SparseRows(matrix[rows])


def random_codes(nodes: int, width: int, coins: np.random.Generator) -> np.ndarray:
    """Public unit vectors."""
    drawn = coins.normal(size=(nodes, width))
    return np.asarray(drawn / (np.linalg.norm(drawn, axis=1, keepdims=True) * (1 + 1e-12)))
