"""Small heads on denoised label evidence, trained by forward correction; the best one on *released* labels is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.methods.common.backbone_training import NoisyLabels, column_scale, descend, weights_of
from graphveil.methods.common.denoise import forward_loss
from graphveil.privacy.noise import Array


class SharedHead(nn.Module):
    """logits = sum_f w_f evidence_f + bias: one weight for each kind of evidence, shared by the classes; the last starts at 1."""

    def __init__(self, kinds: int, classes: int) -> None:
        super().__init__()
        start = torch.zeros(kinds)
        start[-1] = 1.0
        self.weights = nn.Parameter(start)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, evidence: Tensor, columns: Tensor) -> Tensor:
        return torch.einsum("nfk,f->nk", evidence, self.weights) + self.bias


class MlpHead(SharedHead):
    """The shared head plus a small network on all evidence, column by column of mean 0 and deviation 1."""

    def __init__(self, kinds: int, classes: int, width: int, hidden: int = 64, dropout: float = 0.5) -> None:
        super().__init__(kinds, classes)
        self.network = nn.Sequential(
            nn.Linear(width, hidden), nn.SELU(), nn.Dropout(dropout), nn.Linear(hidden, classes)
        )

    def forward(self, evidence: Tensor, columns: Tensor) -> Tensor:
        more: Tensor = self.network(columns)
        return super().forward(evidence, columns) + more


@dataclass(frozen=True, eq=False)
class Evidence:
    """n x kinds x classes: out of fold for whoever has a label, and with nothing left out; ``extra`` columns are for the MLP.

    The last kind are log-posteriors, which the head ``plain`` takes as they are.
    """

    seen: Array
    whole: Array
    extra: Array

    def scale(self) -> tuple[Array, Array]:
        """Mean and deviation of every column of the whole."""
        mean, deviation = column_scale(flat(self.whole, self.extra))
        return mean, deviation + 1e-6


def flat(evidence: Array, extra: Array) -> Array:
    """All evidence on a vertex in one row."""
    return np.hstack([evidence.reshape(len(evidence), -1), extra])


@dataclass(frozen=True, eq=False)
class Head:
    """The head that was chosen, as it was learned; ``mean`` and ``deviation`` are of its columns."""

    name: str
    weights: Mapping[str, np.ndarray]
    mean: Array
    deviation: Array

    def logits(self, evidence: Array, extra: Array) -> Array:
        """Scores of whoever this is the evidence on."""
        if self.name == "plain":
            return evidence[:, -1]
        columns = (flat(evidence, extra) - self.mean) / self.deviation
        kinds, classes = evidence.shape[1:]
        head = new_head(self.name, kinds, classes, columns.shape[1])
        head.load_state_dict({name: torch.from_numpy(value) for name, value in self.weights.items()})
        head.eval()
        with torch.no_grad():
            found: Array = head(_single(evidence), _single(columns)).double().numpy()
        return found


def new_head(name: str, kinds: int, classes: int, width: int) -> SharedHead:
    """A head before it has learned."""
    return SharedHead(kinds, classes) if name == "shared" else MlpHead(kinds, classes, width)


def train_heads(
    evidence: Evidence,
    labels: NoisyLabels,
    masks: Mapping[str, np.ndarray],
    seed: int,
    epochs: int,
    learning_rate: float,
    weight_decay: float,
) -> tuple[Head, dict[str, float]]:
    """The head with the least loss on the released validation labels, and the losses of all that were trained."""
    mean, deviation = evidence.scale()
    seen, channel = _single(evidence.seen), _single(labels.channel)
    columns = _single((flat(evidence.seen, evidence.extra) - mean) / deviation)
    train, validation = map(torch.as_tensor, labels.learning_rows(masks))
    reports = torch.as_tensor(labels.reports)
    kinds, classes = seen.shape[1:]

    def loss(logits: Tensor, rows: Tensor) -> Tensor:
        return forward_loss(logits, channel, reports[rows])

    losses = {"plain": float(loss(seen[validation, -1], validation))}
    learned: dict[str, Mapping[str, np.ndarray]] = {"plain": {}}
    for name in ("shared", "mlp"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = new_head(name, kinds, classes, columns.shape[1])
            step = lambda head=head: loss(head(seen[train], columns[train]), train)
            for _ in descend(head, step, epochs, learning_rate, weight_decay):
                pass
        head.eval()
        with torch.no_grad():
            losses[name] = float(loss(head(seen[validation], columns[validation]), validation))
        learned[name] = weights_of(head)
    best = min(losses, key=lambda name: losses[name])
    return Head(best, learned[best], mean, deviation), losses


def _single(values: Any) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float32)
