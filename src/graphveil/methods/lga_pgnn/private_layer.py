"""The private graph convolution of LGA-PGNN (eq. 18-20), with neighbours that are generated anew in every epoch.

    h_v = relu(W (x'_v + sum over N(v) of x'_u + sum of S generated rows) / (degree + 1 + S) + b)

The mean over true neighbours is computed once. The generated rows are a decoder's output, D relu(...) + c, so W is multiplied
with D instead of with every generated row: an epoch costs the same with and without them, and no row is ever built.
Tests: ``tests/methods/test_private_layer.py``.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.methods.common.denoise import normalised
from graphveil.methods.lga_pgnn.augmentation import NeighbourAutoEncoder, low_degree
from graphveil.privacy.noise import Array


def _linear(layers: nn.Sequential, number: int) -> nn.Linear:
    layer = layers[number]
    assert isinstance(layer, nn.Linear)
    return layer


class Neighbours:
    """S further neighbours for every vertex of low degree, by an auto-encoder of reports; without one they are zero vectors.

    ``encode``: z ~ q(z | mean(x_v, x_s), x_v) for a neighbour s of v drawn each time (eq. 13-14), else z ~ N(0, I).
    """

    def __init__(
        self,
        model: NeighbourAutoEncoder | None,
        rows: Array,
        edge_index: np.ndarray,
        samples: int,
        seed: int,
        *,
        encode: bool,
        few: float | None = None,
    ) -> None:
        graph = normalised(edge_index, len(rows), self_loops=False)
        degrees = torch.as_tensor(np.diff(graph.indptr))
        self.low = torch.as_tensor(np.flatnonzero(low_degree(edge_index, len(rows), few)))
        self.samples, self.encode, self.seed, self.model = samples, encode, seed, model
        self.share = 1.0 / (degrees[self.low] + 1 + samples).float()[:, None]
        self.kept = torch.ones(len(rows), 1)
        self.kept[self.low] = (degrees[self.low] + 1).float()[:, None] * self.share
        self._coins = torch.Generator().manual_seed(seed)
        if model is not None:
            self._prepare(model, torch.as_tensor(rows, dtype=torch.float32), graph.indptr, graph.indices)

    def _prepare(self, model: NeighbourAutoEncoder, rows: Tensor, starts: np.ndarray, targets: np.ndarray) -> None:
        """What does not change from epoch to epoch: reports seen through the first layers."""
        width, low = rows.shape[1], self.low
        encoder, decoder = _linear(model.encoder, 0), _linear(model.decoder, 0)
        with torch.no_grad():
            self._half = rows @ encoder.weight[:, :width].T / 2
            self._condition = rows[low] @ encoder.weight[:, width:].T + encoder.bias
            self._decoded = rows[low] @ decoder.weight[:, :width].T + decoder.bias
            self._latent = decoder.weight[:, width:].T.contiguous()
        self._first = torch.as_tensor(starts[:-1].astype(np.int64))[low]
        self._number = torch.as_tensor(np.diff(starts).astype(np.int64))[low]
        self._targets = torch.as_tensor(targets.astype(np.int64))

    def hidden_sums(self, training: bool) -> Tensor:
        """For every vertex of low degree the sum of S hidden rows of the decoder; the same at every look, new in every epoch."""
        assert self.model is not None
        coins = self._coins if training else torch.Generator().manual_seed(self.seed)
        total = torch.zeros_like(self._decoded)
        with torch.no_grad():
            for _ in range(self.samples):
                z = torch.randn(len(self.low), self.model.latent, generator=coins)
                if self.encode:
                    mean, log_variance = self._encoded(coins).chunk(2, dim=1)
                    z = mean + (0.5 * log_variance).exp() * z
                total += torch.relu(self._decoded + z @ self._latent)
        return total

    def _encoded(self, coins: torch.Generator) -> Tensor:
        """Mean and log-variance of z for every vertex and one of its neighbours (itself, if it has none)."""
        assert self.model is not None
        pick = (torch.rand(len(self.low), generator=coins) * self._number).long()
        other = self.low.clone()
        some = self._number > 0
        other[some] = self._targets[self._first[some] + pick[some]]
        found: Tensor = _linear(self.model.encoder, 2)(
            torch.relu(self._half[self.low] + self._half[other] + self._condition)
        )
        return found


class PrivateLayer(nn.Module):
    """relu(W h + b) of the means h over a vertex and its neighbours, the further ones included."""

    def __init__(self, width: int, hidden: int, neighbours: Neighbours | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden)
        self.neighbours = neighbours

    def forward(self, means: Tensor) -> Tensor:
        if self.neighbours is None:
            return torch.relu(self.linear(means))
        further, weight = self.neighbours, self.linear.weight
        out = (means @ weight.T) * further.kept
        if further.model is not None:
            last = _linear(further.model.decoder, 2)
            made = further.hidden_sums(self.training) @ (weight @ last.weight.detach()).T
            made = made + further.samples * (weight @ last.bias.detach())
            out = out.index_add(0, further.low, further.share * made)
        return torch.relu(out + self.linear.bias)
