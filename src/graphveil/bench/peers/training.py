"""Stages trained by Opacus: Poisson batches, per-sample clipping, Gaussian noise, Adam; and their noise for a promise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

HIDDEN = 64
HOOKS, GHOST = "hooks", "ghost"
PRECISION = 1e-3  # of losses and of the noise multiplier; never to the wrong side

Inputs = Callable[[Tensor], tuple[Tensor, ...]]  # what a network reads of these nodes


@dataclass(frozen=True)
class Settings:
    """``clipping``: per-sample gradients (``hooks``, what Opacus does unless told otherwise) or its ``ghost`` clipping."""

    epochs: int
    learning_rate: float
    batch: int = 256
    clip: float = 1.0
    clipping: str = HOOKS

    def noise(self, epsilon: float, delta: float, records: int, sums: int) -> float:
        """The multiplier for two trained stages and ``sums`` noisy sums; Opacus draws each record with 1 / batches."""
        batches = math.ceil(records / self.batch)
        return noise_multiplier(epsilon, delta, 2, sums, self.epochs * batches, 1 / batches)


@lru_cache
def noise_multiplier(epsilon: float, delta: float, stages: int, sums: int, steps: int, rate: float) -> float:
    """One multiplier for ``stages`` trained stages and ``sums`` noisy sums, as both papers share theirs, by bisection.

    dp_accounting's PLD accountant, which is tight and, of all at hand, the cheapest; Opacus' accountants agree.
    """
    less, enough = 0.0, 1.0
    while spent(enough, delta, stages, sums, steps, rate) > epsilon:
        less, enough = enough, 2 * enough
    while enough - less > PRECISION * enough:
        middle = (enough + less) / 2
        if spent(middle, delta, stages, sums, steps, rate) <= epsilon:
            enough = middle
        else:
            less = middle
    return enough


def spent(multiplier: float, delta: float, stages: int, sums: int, steps: int, rate: float) -> float:
    """Epsilon of the whole run at this noise multiplier; add or remove one record."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    noisy = GaussianDpEvent(multiplier)
    accountant = PLDAccountant(value_discretization_interval=PRECISION)
    accountant.compose(PoissonSampledDpEvent(rate, noisy), stages * steps)
    if sums:
        accountant.compose(noisy, sums)
    return float(accountant.get_epsilon(delta))


def train(network: nn.Module, inputs: Inputs, labels: Tensor, nodes: Tensor, noise: float, settings: Settings) -> None:
    """DP-Adam on these nodes, one row per node; the network is changed in place."""
    from opacus import PrivacyEngine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private: Any
        private, optimizer, *criteria, loader = PrivacyEngine(accountant="rdp").make_private(
            module=network,
            optimizer=torch.optim.Adam(network.parameters(), lr=settings.learning_rate),
            data_loader=DataLoader(TensorDataset(nodes), batch_size=settings.batch),
            criterion=nn.CrossEntropyLoss(),
            noise_multiplier=noise,
            max_grad_norm=settings.clip,
            grad_sample_mode=settings.clipping,
        )
        criterion = criteria[0] if criteria else nn.CrossEntropyLoss()
        for _ in range(settings.epochs):
            for (drawn,) in loader:
                optimizer.zero_grad()
                criterion(private(*inputs(drawn)), labels[drawn]).backward()
                optimizer.step()
        private.remove_hooks()
        for parameter in network.parameters():
            parameter.__dict__.pop("grad_sample", None)
