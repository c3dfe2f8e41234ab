"""Batch normalisation, for ordinary training on open records alone: the rows of a batch reach each other's gradients.

A ``Normalised`` layer keeps its running statistics beside its parameters in the network's flat vector, so that whatever copies or
saves the vector has both; their gradient is 0, so no optimiser moves them. What looks at single examples refuses such a layer.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.learn.gradients import Calls, loss_gradient, write_sum
from graphveil.learn.modules import Block, Inputs, Linear, Network

MOMENTUM, FLOOR = 0.1, 1e-5  # torch's own defaults


class Normalised(Linear):
    """Columns less their mean, over their deviation, times a factor, plus a bias; by running statistics unless it is trained."""

    mixes = True

    def __init__(self, width: int) -> None:
        super().__init__(3, width)  # factor, running mean, running variance

    def __call__(self, x: Block) -> Tensor:
        assert isinstance(x, Tensor) and self.bias is not None
        factor, mean, variance = self.weight.T
        outputs: Tensor = (x - mean) * (factor * (variance + FLOOR).rsqrt()) + self.bias
        return outputs

    def initialise(self, coins: np.random.Generator, gain: float) -> None:
        """Factor 1, bias 0; mean 0 and variance 1 until a batch is seen."""
        assert self.bias is not None
        self.weight.copy_(torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64).expand_as(self.weight))
        self.bias.zero_()

    def trained(self, x: Tensor, factor: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """By the statistics of this batch, and the running ones after it; one example alone goes by these and leaves them."""
        mean, variance = seen = self.weight.T[1:].contiguous()
        outputs = functional.batch_norm(x, mean, variance, factor, bias, len(x) > 1, MOMENTUM, FLOOR)
        return outputs, seen.T


class _Batch(Calls):
    """Layers on whole batches; dropout comes before every activation."""

    def __init__(self, dropout: float, coins: np.random.Generator) -> None:
        super().__init__()
        self._rate, self._drawn = dropout, coins
        self.normalised: list[tuple[Normalised, tuple[Tensor, Tensor], Tensor]] = []

    def __call__(self, layer: Linear, x: Block, /) -> Tensor:
        if not isinstance(layer, Normalised):
            return super().__call__(layer, x)
        assert isinstance(x, Tensor) and layer.bias is not None
        numbers = layer.weight[:, 0].clone().requires_grad_(), layer.bias.clone().requires_grad_()
        outputs, statistics = layer.trained(x, *numbers)
        self.normalised.append((layer, numbers, statistics))
        return outputs

    def selu(self, x: Tensor) -> Tensor:
        if self._rate:
            kept = self._drawn.random(tuple(x.shape)) >= self._rate
            x = x * torch.from_numpy(kept / (1 - self._rate))
        return torch.selu(x)


def batch_gradient(
    network: Network, inputs: Inputs, targets: Tensor, dropout: float, coins: np.random.Generator
) -> Tensor:
    """The gradient of the summed cross-entropy of a batch, as one flat vector; running statistics move."""
    total, batch = torch.zeros_like(network.parameters), _Batch(dropout, coins)
    with torch.enable_grad():
        logits = network.forward(inputs, batch)
    leaves = [call.outputs for call in batch.made] + [one for _, numbers, _ in batch.normalised for one in numbers]
    gradients = iter(torch.autograd.grad(logits, leaves, loss_gradient(logits.detach(), targets), allow_unused=True))
    for call in batch.made:
        if (gradient := next(gradients)) is not None:
            write_sum(call.layer, call.inputs, gradient, total)
    for layer, _, statistics in batch.normalised:
        weight, bias = layer.views(total)
        for part in (weight[:, 0], bias):
            if (gradient := next(gradients)) is not None and part is not None:
                part += gradient
        layer.weight[:, 1:] = statistics
    return total
