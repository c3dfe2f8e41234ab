"""Two loops: descent along given gradient sums (private or not) and ordinary training."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.learn.gradients import Calls, clipped_gradient_sum
from graphveil.learn.modules import Inputs, Network, blocks_of, take
from graphveil.learn.optimizers import Adam, Optimizer

Progress = Callable[[int, int], None]
BatchGradient = Callable[[Network, Inputs, Tensor, float, np.random.Generator], Tensor]


def descend(
    network: Network,
    gradient: Callable[[int], Tensor],
    optimizer: Optimizer,
    steps: int,
    divisor: float,
    progress: Progress | None = None,
) -> None:
    """``steps`` times: take the gradient sum, divide it by a public number, let the optimiser step.

    The loop reads private data only through ``gradient``. When that returns releases of a curator, the trained
    parameters are post-processing of releases; when it returns exact sums, this is the same training with
    epsilon = inf. Number of steps and divisor must be public: never the size of a random or private batch.
    """
    if not (math.isfinite(divisor) and divisor > 0):
        raise InputError(f"the divisor must be positive and finite, got {divisor}")
    for step in range(steps):
        total = gradient(step)
        if total.shape != network.parameters.shape:
            wanted = tuple(network.parameters.shape)
            raise InputError(f"the gradient has shape {tuple(total.shape)}, the parameters {wanted}")
        optimizer.step(network.parameters, total, divisor)
        if progress is not None:
            progress(step + 1, steps)


def plain_gradient(
    network: Network, inputs: Inputs, targets: Tensor, dropout: float, coins: np.random.Generator
) -> Tensor:
    """The gradient sum of a batch; dropout is on the inputs of all but first layers."""
    return clipped_gradient_sum(network, inputs, targets, None, calls=Calls(dropout, coins))


def train_plainly(
    network: Network,
    inputs: Inputs,
    targets: Tensor | np.ndarray,
    *,
    epochs: int,
    coins: np.random.Generator,
    optimizer: Optimizer | None = None,
    weight_decay: float = 0.0,
    dropout: float = 0.0,
    batch_size: int | None = None,
    after_epoch: Callable[[Network], None] | None = None,
    progress: Progress | None = None,
    gradient_sum: BatchGradient = plain_gradient,
) -> None:
    """Ordinary, non-private training: mean cross-entropy plus ``weight_decay / 2 ||theta||^2``, by default with Adam.

    Targets are labels (outside 0 .. C-1: left out) or distributions; ``gradient_sum``: that of a batch, at a rate of dropout.
    """
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be at least 0 and less than 1, got {dropout}")
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size must be at least 1, got {batch_size}")
    targets = torch.as_tensor(targets)
    chosen = np.arange(blocks_of(inputs)[0].shape[0]) if targets.ndim == 2 else (targets >= 0).numpy().nonzero()[0]
    size = max(1, min(batch_size or chosen.size, chosen.size))
    batches = max(1, math.ceil(chosen.size / size))
    whole = (take(inputs, chosen), targets[torch.from_numpy(chosen)]) if batches == 1 else None
    order = chosen

    def gradient(step: int) -> Tensor:
        nonlocal order
        if whole is not None:
            examples, labels = whole
        else:
            if step % batches == 0:
                order = coins.permutation(chosen)
            index = order[step % batches * size :][:size]
            examples, labels = take(inputs, index), targets[torch.from_numpy(index)]
        total = gradient_sum(network, examples, labels, dropout, coins)
        return total.div_(max(1, len(labels))).add_(network.parameters, alpha=weight_decay)

    def passed(done: int, total: int) -> None:
        if after_epoch is not None and done % batches == 0:
            after_epoch(network)
        if progress is not None:
            progress(done, total)

    descend(network, gradient, optimizer or Adam(0.01), epochs * batches, 1.0, progress=passed)
