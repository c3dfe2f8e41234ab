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
from graphveil.methods.lga_pgnn.augmentation import NeighbourAutoEncoder, linear, low_degree
from graphveil.privacy.noise import Array

BLOCK = 1024  # vertices at a time, so that what was just written is still in the cache


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
        self._looked: Tensor | None = None
        if model is not None:
            self._prepare(model, torch.as_tensor(rows, dtype=torch.float32), graph.indptr, graph.indices)

    def _prepare(self, model: NeighbourAutoEncoder, rows: Tensor, starts: np.ndarray, targets: np.ndarray) -> None:
        """What does not change from epoch to epoch: reports seen through the first layers, and z's law for every pair."""
        width, low = rows.shape[1], self.low.numpy()
        decoder = linear(model.decoder, 0)
        with torch.no_grad():
            self._decoded = rows[self.low] @ decoder.weight[:, :width].T + decoder.bias
            self._latent = decoder.weight[:, width:].T.contiguous()
        if self.encode:
            number = np.diff(starts).astype(np.int64)[low]
            choices = np.maximum(number, 1)  # whoever has no neighbour is paired with itself
            owner = np.repeat(np.arange(len(low)), choices)
            first = np.cumsum(choices) - choices
            place = np.where(number > 0, starts[low], 0)[owner] + np.arange(len(owner)) - first[owner]
            other = low[owner]
            other[number[owner] > 0] = targets[place[number[owner] > 0]]
            self._first, self._choices = torch.as_tensor(first), torch.as_tensor(choices)
            self._encoded = _encoded(model, rows, torch.as_tensor(low[owner]), torch.as_tensor(other))

    def among(self, rows: Tensor | None) -> tuple[Tensor, Tensor]:
        """Which of the vertices of low degree are among these rows (None: all), and where."""
        if rows is None:
            return torch.arange(len(self.low)), self.low
        place = torch.full((len(self.kept),), -1)
        place[rows] = torch.arange(len(rows))
        found = torch.nonzero(place[self.low] >= 0).ravel()
        return found, place[self.low[found]]

    def hidden_sums(self, training: bool, some: Tensor | None = None) -> Tensor:
        """For vertices of low degree the sum of S hidden rows of the decoder; the same at every look, new in every epoch."""
        everybody = torch.arange(len(self.low))
        if training:
            return self._drawn(self._coins, everybody if some is None else some)
        if self._looked is None:
            self._looked = self._drawn(torch.Generator().manual_seed(self.seed), everybody)
        return self._looked if some is None else self._looked[some]

    def _drawn(self, coins: torch.Generator, some: Tensor) -> Tensor:
        assert self.model is not None
        with torch.no_grad():
            latent = [self._sample(self.model.latent, coins, some) for _ in range(self.samples)]
            decoded = self._decoded[some]
            total = torch.zeros_like(decoded)
            for start in range(0, len(total), BLOCK):
                here = slice(start, start + BLOCK)
                for z in latent:
                    total[here] += torch.addmm(decoded[here], z[here], self._latent).relu_()
        return total

    def _sample(self, size: int, coins: torch.Generator, some: Tensor) -> Tensor:
        """One z for each of these vertices of low degree."""
        z = torch.randn(len(some), size, generator=coins)
        if not self.encode:
            return z
        pick = self._first[some] + (torch.rand(len(some), generator=coins) * self._choices[some]).long()
        mean, log_variance = self._encoded[pick].chunk(2, dim=1)
        return mean + (0.5 * log_variance).exp() * z


def _encoded(model: NeighbourAutoEncoder, rows: Tensor, vertex: Tensor, other: Tensor) -> Tensor:
    """Mean and log-variance of z for every pair of a vertex and a neighbour."""
    width, encoder = rows.shape[1], linear(model.encoder, 0)
    found = torch.empty(len(vertex), 2 * model.latent)
    with torch.no_grad():
        half = rows @ encoder.weight[:, :width].T / 2
        own = half + rows @ encoder.weight[:, width:].T + encoder.bias
        for start in range(0, len(vertex), BLOCK):
            here = slice(start, start + BLOCK)
            found[here] = linear(model.encoder, 2)(torch.relu(own[vertex[here]] + half[other[here]]))
    return found


class PrivateLayer(nn.Module):
    """relu(W h + b) of the means h over a vertex and its neighbours, the further ones included."""

    def __init__(self, width: int, hidden: int, neighbours: Neighbours | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden)
        self.neighbours = neighbours

    def forward(self, means: Tensor, rows: Tensor | None = None) -> Tensor:
        """``rows``: the vertices whose means these are (None: all)."""
        if self.neighbours is None:
            return torch.relu(self.linear(means))
        further, weight = self.neighbours, self.linear.weight
        out = (means @ weight.T) * (further.kept if rows is None else further.kept[rows])
        if further.model is not None:
            some, places = further.among(rows)
            last = linear(further.model.decoder, 2)
            made = further.hidden_sums(self.training, some) @ (weight @ last.weight.detach()).T
            made = made + further.samples * (weight @ last.bias.detach())
            out = out.index_add(0, places, further.share[some] * made)
        return torch.relu(out + self.linear.bias)
