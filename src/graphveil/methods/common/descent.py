"""The loop in which networks on reports are trained: Adam on a loss of whole epochs.

Tests: ``tests/methods/test_backbone_training.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

LOOK_EVERY = 5  # epochs between two looks at the released validation labels


def descend(
    network: nn.Module, loss: Callable[[], Tensor], epochs: int, learning_rate: float, weight_decay: float = 0.0
) -> Iterator[int]:
    """One epoch after the other, and how many there were; whoever iterates may pause between two."""
    optimizer = torch.optim.Adam(network.parameters(), learning_rate, weight_decay=weight_decay)
    for epoch in range(1, epochs + 1):
        network.train()
        optimizer.zero_grad()
        torch.autograd.backward(loss())
        optimizer.step()
        yield epoch


@dataclass(frozen=True)
class Fitted:
    """Scores of every slot, and the epoch and validation loss they come from."""

    scores: np.ndarray
    validation_loss: float
    epoch: int


@dataclass
class Descent:
    """A training run that can be interrupted and taken up again; its dropout does not depend on the interruption.

    Args:
        steps: one epoch each, as :func:`descend` gives them.
        look: the scores of every slot now, and their loss on the released validation labels.
        epochs: how many there will be.
        coins: state of the (public) coins of dropout.
        tell: hears of every epoch.
        best: the scores to beat.
    """

    steps: Iterator[int]
    look: Callable[[], tuple[np.ndarray, float]]
    epochs: int
    coins: Tensor
    tell: Callable[[str, int, int], None]
    best: Fitted
    epoch: int = 0

    def until(self, epoch: int) -> Fitted:
        """Train up to this epoch; the best so far."""
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.coins)
            while self.epoch < min(epoch, self.epochs):
                self.epoch = next(self.steps)
                self.tell("epochs", self.epoch, self.epochs)
                if self.epoch % LOOK_EVERY == 0 or self.epoch == self.epochs:
                    scores, loss = self.look()
                    if loss < self.best.validation_loss:
                        self.best = Fitted(scores, loss, self.epoch)
            self.coins = torch.random.get_rng_state()
        return self.best
