"""Batch normalisation, for ordinary training on open records alone: the rows of a batch reach each other's gradients.

A ``Normalised`` layer keeps its running statistics beside its parameters in the network's flat vector, so that whatever copies or
saves the vector has both; their gradient is 0, so no optimiser moves them. What looks at single examples refuses such a layer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.graph.rows import Rows
from graphveil.learn.modules import Block, Inputs, Linear, Network, Plainly

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

    def trained(self, x: Tensor, factor: Tensor, bias: Tensor) -> tuple[Tensor, Tensor | None]:
        """By the statistics of this batch, and what these are; one example alone has none and goes by the running ones."""
        if len(x) < 2:
            seen, (mean, variance) = None, self.weight.T[1:]
        else:
            variance, mean = torch.var_mean(x, dim=0, correction=0)
            seen = torch.stack([mean.detach(), variance.detach() * (len(x) / (len(x) - 1))], dim=1)
        return (x - mean) * (factor * (variance + FLOOR).rsqrt()) + bias, seen

    def saw(self, statistics: Tensor) -> None:
        """Move the running statistics towards those of a batch."""
        self.weight[:, 1:].lerp_(statistics, MOMENTUM)


class _Product(torch.autograd.Function):
    """``x W^T`` of feature rows."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rows: Rows) -> Tensor:  # type: ignore[override]
        ctx.rows = rows
        return rows.matmul(weight.T)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return ctx.rows.transpose_matmul(gradient).T, None


class _Batch(Plainly):
    """Layers by parameters that gradients are taken by; dropout comes before every activation."""

    def __init__(self, network: Network, dropout: float, coins: np.random.Generator) -> None:
        self._dropout, self._coins = dropout, coins
        self._parts: dict[Linear, list[Tensor | None]] = {}
        for layer in network.layers:
            views = layer.views(network.parameters)
            self._parts[layer] = [None if view is None else view.detach().requires_grad_() for view in views]
        self.seen: list[tuple[Normalised, Tensor]] = []

    @property
    def leaves(self) -> list[Tensor]:
        """What gradients are taken by, layer by layer."""
        return [part for parts in self._parts.values() for part in parts if part is not None]

    def __call__(self, layer: Linear, x: Block, /) -> Tensor:
        weight, bias = self._parts[layer]
        assert weight is not None
        if isinstance(layer, Normalised):
            assert isinstance(x, Tensor) and bias is not None
            outputs, statistics = layer.trained(x, weight[:, 0], bias)
            self.seen += [] if statistics is None else [(layer, statistics)]
            return outputs
        if isinstance(x, Tensor):
            return functional.linear(x, weight, bias)
        product: Tensor = _Product.apply(weight, x)  # type: ignore[no-untyped-call]
        return product if bias is None else product + bias

    def selu(self, x: Tensor) -> Tensor:
        if self._dropout:
            kept = self._coins.random(tuple(x.shape)) >= self._dropout
            x = x * torch.from_numpy(kept / (1 - self._dropout))
        return torch.selu(x)


def batch_gradient(
    network: Network, inputs: Inputs, targets: Tensor, dropout: float, coins: np.random.Generator
) -> Tensor:
    """The gradient of the summed cross-entropy of a batch, as one flat vector; running statistics move."""
    total = torch.zeros_like(network.parameters)
    batch = _Batch(network, dropout, coins)
    with torch.enable_grad():
        logits = network.forward(inputs, batch)
        loss = functional.cross_entropy(logits, targets.long(), reduction="sum")
    places = [view for layer in network.layers for view in layer.views(total) if view is not None]
    gradients = torch.autograd.grad(loss, batch.leaves, allow_unused=True)
    for place, gradient in zip(places, gradients, strict=True):
        if gradient is not None:
            place.copy_(gradient)
    for layer, statistics in batch.seen:
        layer.saw(statistics)
    return total
