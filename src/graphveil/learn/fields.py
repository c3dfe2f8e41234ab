"""Which vertices a stack of graph convolutions reads to say something of a few, so that training leaves the others out.

Layer L of a vertex needs layer L - 1 of its neighbours: the logits of some vertices need the inputs of those within as many
steps as there are layers, and the matrix S among them. The numbers and gradients are those of the whole graph.
Tests: ``tests/learn/test_fields.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.graph.layout import csr_tensor
from graphveil.learn.arcs import Arcs
from graphveil.learn.operators import Propagation

WORTH = 0.7  # share of the vertices from which on everybody is seen


@dataclass(frozen=True)
class Field:
    """The vertices that are seen (None: all), S among them, and where among them those are that were asked for."""

    rows: Tensor | None
    edges: Propagation | Tensor | Arcs
    asked: Tensor

    def of(self, x: Tensor) -> Tensor:
        """What of the inputs is seen."""
        return x if self.rows is None else x[self.rows]


def field_of(gcn: Tensor, asked: np.ndarray, layers: int) -> Field:
    """What so many convolutions by the sparse matrix ``gcn[receiver, sender]`` read to know the vertices ``asked``."""
    places = gcn.col_indices().numpy(), gcn.crow_indices().numpy()
    matrix = sp.csr_matrix((gcn.values().numpy(), *places), tuple(gcn.shape))
    seen = np.zeros(matrix.shape[0], dtype=bool)
    seen[asked] = True
    for _ in range(layers):
        seen[matrix[np.flatnonzero(seen)].indices] = True
    if seen.mean() > WORTH:
        return Field(None, propagation(matrix), torch.as_tensor(asked))
    rows = np.flatnonzero(seen)
    part = propagation(matrix[rows][:, rows].tocsr(), torch.as_tensor(rows))
    return Field(part.rows, part, torch.as_tensor(np.searchsorted(rows, asked)))


def propagation(matrix: sp.csr_matrix, rows: Tensor | None = None) -> Propagation:
    """S and its transpose, as convolutions read them."""
    return Propagation(csr_tensor(matrix), csr_tensor(matrix.T.tocsr()), rows)
