"""Small heads on denoised label evidence, trained by forward correction; the best one on *released* labels is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from graphveil.methods.common.denoise import forward_loss
from graphveil.privacy.noise import Array


class SharedHead(nn.Module):
    """logits = sum_f w_f evidence_f + bias: one weight for each kind of evidence, shared by the classes."""

    def __init__(self, kinds: int, classes: int, start: Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(start.clone())
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, evidence: Tensor, extra: Tensor) -> Tensor:
        return torch.einsum("nfk,f->nk", evidence, self.weights) + self.bias


class MlpHead(SharedHead):
    """The shared head plus a small network on all evidence, column by column of mean 0 and deviation 1."""

    def __init__(
        self, kinds: int, classes: int, start: Tensor, width: int, hidden: int = 64, dropout: float = 0.5
    ) -> None:
        super().__init__(kinds, classes, start)
        self.network = nn.Sequential(
            nn.Linear(width, hidden), nn.SELU(), nn.Dropout(dropout), nn.Linear(hidden, classes)
        )

    def forward(self, evidence: Tensor, extra: Tensor) -> Tensor:
        return super().forward(evidence, extra) + self.network(extra)


@dataclass(frozen=True)
class Chosen:
    """The winner, its scores for all slots, and everybody's loss on the released validation labels."""

    head: str
    logits: Array
    losses: dict[str, float]


def train_heads(
    evidence: Array,
    plain: Array,
    channel: Array,
    train: tuple[np.ndarray, np.ndarray],
    validation: tuple[np.ndarray, np.ndarray],
    *,
    seed: int,
    apply_to: Array | None = None,
    extra: tuple[Array, Array] | None = None,
    apply_plain: Array | None = None,
    heads: tuple[str, ...] = ("plain", "shared", "mlp"),
    epochs: int = 100,
    learning_rate: float = 1e-2,
    weight_decay: float = 1e-3,
) -> Chosen:
    """Train each head on the released training labels and keep the one with the least loss on the released validation labels.

    Args:
        evidence: n x kinds x classes, out of fold for whoever has a label.
        plain: n x classes, log-posteriors used as they are by the head ``plain``.
        channel: T[c, r] = P(report r | class c).
        train, validation: slots and their reports.
        apply_to, apply_plain: the same evidence with nothing left out, for slots without a report.
        extra: further columns (out of fold, and with nothing left out) for the MLP.
    """
    single = lambda values: torch.as_tensor(values, dtype=torch.float32)
    apply_to = evidence if apply_to is None else apply_to
    inputs, final, matrix = single(evidence), single(apply_to), single(channel)
    none = np.zeros((len(evidence), 0))
    seen, whole = (
        np.hstack([part.reshape(len(part), -1), further])
        for part, further in zip((evidence, apply_to), extra or (none, none), strict=True)
    )
    more, final_more = (single((part - whole.mean(axis=0)) / (whole.std(axis=0) + 1e-6)) for part in (seen, whole))
    rows, reports = (torch.as_tensor(part) for part in train)
    val_rows, val_reports = (torch.as_tensor(part) for part in validation)
    kinds, classes = inputs.shape[1:]
    losses: dict[str, float] = {}
    scores: dict[str, Array] = {}
    for name in heads:
        if name == "plain":
            losses[name] = float(forward_loss(single(plain)[val_rows], matrix, val_reports))
            scores[name] = plain if apply_plain is None else apply_plain
            continue
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            start = torch.zeros(kinds)
            start[-1] = 1.0
            head: nn.Module
            if name == "shared":
                head = SharedHead(kinds, classes, start)
            else:
                head = MlpHead(kinds, classes, start, more.shape[1])
            optimizer = torch.optim.Adam(head.parameters(), learning_rate, weight_decay=weight_decay)
            for _ in range(epochs):
                optimizer.zero_grad()
                forward_loss(head(inputs[rows], more[rows]), matrix, reports).backward()
                optimizer.step()
        head.eval()
        with torch.no_grad():
            losses[name] = float(forward_loss(head(inputs[val_rows], more[val_rows]), matrix, val_reports))
            scores[name] = head(final, final_more).double().numpy()
    best = min(losses, key=lambda name: losses[name])
    return Chosen(best, scores[best], losses)
