"""Small heads on denoised label evidence, trained by forward correction; the best one on *released* labels is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.methods.common.backbone_training import NoisyLabels, descend
from graphveil.methods.common.denoise import forward_loss
from graphveil.methods.common.scores import ScoresPredictor
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

    def columns(self) -> tuple[Array, Array]:
        """Both and the extra ones, flat, with the mean and deviation of the whole."""
        seen, whole = (np.hstack([part.reshape(len(part), -1), self.extra]) for part in (self.seen, self.whole))
        mean, deviation = whole.mean(axis=0), whole.std(axis=0) + 1e-6
        return (seen - mean) / deviation, (whole - mean) / deviation


def train_heads(
    evidence: Evidence,
    labels: NoisyLabels,
    masks: Mapping[str, np.ndarray],
    seed: int,
    epochs: int,
    learning_rate: float,
    weight_decay: float,
) -> ScoresPredictor:
    """Train each head on the released training labels and keep the one with the least loss on the released validation labels."""
    seen, whole, channel = _single(evidence.seen), _single(evidence.whole), _single(labels.channel)
    columns, whole_columns = map(_single, evidence.columns())
    train, validation = map(torch.as_tensor, labels.learning_rows(masks))
    reports = torch.as_tensor(labels.reports)
    kinds, classes = seen.shape[1:]

    def loss(logits: Tensor, rows: Tensor) -> Tensor:
        return forward_loss(logits, channel, reports[rows])

    losses = {"plain": float(loss(seen[validation, -1], validation))}
    scores: dict[str, Array] = {"plain": evidence.whole[:, -1]}
    for name in ("shared", "mlp"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            head = SharedHead(kinds, classes) if name == "shared" else MlpHead(kinds, classes, columns.shape[1])
            step = lambda head=head: loss(head(seen[train], columns[train]), train)
            for _ in descend(head, step, epochs, learning_rate, weight_decay):
                pass
        head.eval()
        with torch.no_grad():
            losses[name] = float(loss(head(seen[validation], columns[validation]), validation))
            scores[name] = head(whole, whole_columns).double().numpy()
    best = min(losses, key=lambda name: losses[name])
    return ScoresPredictor(scores[best], {"head": best, "losses": losses}, public=True)


def _single(values: Any) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float32)
