"""Sums of clipped per-example gradients, without building a single per-example gradient.

For a linear layer ``y = x W^T + b`` the gradient of example ``i`` is the outer product ``g_i a_i^T`` of the gradient at
its output and its input, so ``||grad_i||^2 = sum_layers ||g_i||^2 (||a_i||^2 + [bias])`` (Goodfellow 2015). One
backward pass gives every ``g``; the clipped sum ``sum_i f_i g_i a_i^T`` is then one matrix product per layer.

Formal guarantee (``tests/learn/test_gradient_sensitivity.py``): for finite ``clip``, the term of one example has
Euclidean norm at most ``clip``, whatever the example contains; an absent example (weight 0 or label outside 0 .. C-1)
and an example whose gradient is not finite have the term 0. Other examples' terms do not depend on it.

Rounding. The norm is computed from the very numbers that are multiplied later. Its relative error is below
``(width + 20) 2^-53``, so dividing by it could exceed ``clip`` in the last digits: ``SLACK`` is kept as a reserve,
enough for widths up to 10^5. Squares below 1e-300 lose their digits, hence ``TINY`` is added to them. The terms are
then added in float64, where the order of addition can matter: ``privacy.noise.summation_error`` bounds that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError, PrivacyError
from graphveil.graph.rows import DenseRows, SparseRows
from graphveil.learn.modules import Block, Inputs, Linear, Network, Plainly

SLACK = 1e-10
TINY = 1e-300


class Call(NamedTuple):
    """One use of a layer: what it read and what it wrote."""

    layer: Linear
    inputs: Block
    outputs: Tensor


def check_use(layer: Linear, used: Iterable[Linear]) -> None:
    """Norms are added up layer by layer, so an example may go through each of them once, and through none that mixes examples."""
    if layer.mixes:
        raise PrivacyError(f"{layer} mixes examples: it is trained on open records only, by batch_norm.batch_gradient")
    if any(one is layer for one in used):
        raise PrivacyError(f"{layer} is used twice by one example; its gradient norm would be underestimated")


class Calls(Plainly):
    """Applies layers, remembers each use, and finds the gradient at every output.

    Ordinary training may drop inputs of all but first layers: at the rate ``dropout``, with ``coins``.
    """

    def __init__(self, dropout: float = 0.0, coins: np.random.Generator | None = None) -> None:
        self.made: list[Call] = []
        self._dropout, self._coins = dropout, coins

    def __call__(self, layer: Linear, x: Block, /) -> Tensor:
        check_use(layer, (call.layer for call in self.made))
        if isinstance(x, DenseRows):
            x = x.values
        if isinstance(x, Tensor) and x.requires_grad and self._dropout:
            if self._coins is None:
                raise InputError("dropout needs a source of coins")
            kept = self._coins.random(tuple(x.shape)) >= self._dropout
            x = x * torch.from_numpy(kept / (1 - self._dropout))
        outputs = layer(x)
        if not outputs.requires_grad:
            outputs.requires_grad_()
        self.made.append(Call(layer, x.detach() if isinstance(x, Tensor) else x, outputs))
        return outputs

    def output_gradients(self, logits: Tensor, gradient: Tensor) -> list[Tensor | None]:
        """Per call the gradient at its output, given the gradient at the logits."""
        if len(self.made) == 1 and self.made[0].outputs is logits:
            return [gradient]
        outputs = [call.outputs for call in self.made]
        return list(torch.autograd.grad(logits, outputs, gradient, allow_unused=True))


def clipped_gradient_sum(
    network: Network,
    inputs: Inputs,
    targets: Tensor | np.ndarray,
    clip: float | None,
    weights: Tensor | np.ndarray | None = None,
    *,
    out: Tensor | None = None,
    calls: Calls | None = None,
) -> Tensor:
    """``sum_i min(1, clip / ||grad_i||) grad_i`` of the cross-entropy, as one flat vector.

    ``targets`` are ``n`` labels (outside 0 .. C-1: absent) or ``(n, C)`` distributions; ``clip=None`` gives the plain
    sum (epsilon = inf); ``weights`` are factors on the losses, applied before clipping, 0 for absent examples.
    """
    if clip is not None and not (math.isfinite(clip) and clip > 0):
        raise PrivacyError(f"the clipping norm must be positive and finite, got {clip}")
    calls = calls or Calls()
    with torch.enable_grad():
        logits = network.forward(inputs, calls)
    at_logits = loss_gradient(logits.detach(), torch.as_tensor(targets), weights)
    at_outputs = calls.output_gradients(logits, at_logits)
    used = [(call, gradient) for call, gradient in zip(calls.made, at_outputs, strict=True) if gradient is not None]

    squares = torch.zeros(logits.shape[0], dtype=torch.float64)
    for call, gradient in used:
        read = _squared_norms(call.inputs) + (1.0 if call.layer.has_bias else TINY)
        squares.addcmul_(read, _squared_norms(gradient).add_(TINY))
    finite = torch.isfinite(squares)
    factors = finite.to(torch.float64)
    if clip is not None:
        factors = torch.where(finite, squares.rsqrt().mul_(clip * (1 - SLACK)).clamp_(max=1.0), 0.0)
    dropped = None if bool(finite.all()) else ~finite

    total = torch.empty_like(network.parameters) if out is None else out
    if len(used) < len(network.layers):
        total.zero_()  # else every layer writes all of its part
    for call, gradient in used:
        _accumulate(call, gradient, factors, dropped, total)
    return total


def loss_gradient(logits: Tensor, targets: Tensor, weights: Tensor | np.ndarray | None = None) -> Tensor:
    """Gradient of ``-w sum_c t_c log softmax(logits)_c`` at the logits: ``w (p sum_c t_c - t)``."""
    examples, classes = logits.shape
    if targets.shape not in ((examples,), (examples, classes)):
        expected = f"({examples},) labels or ({examples}, {classes}) distributions"
        raise InputError(f"targets have shape {tuple(targets.shape)}, expected {expected}")
    factors = None if weights is None else torch.as_tensor(weights).to(torch.float64)
    if factors is not None and factors.shape != (examples,):
        raise InputError(f"weights have shape {tuple(factors.shape)}, expected ({examples},)")

    gradient = torch.softmax(logits, dim=1)
    if targets.ndim == 2:
        targets = targets.to(torch.float64)
        gradient.mul_(targets.sum(dim=1, keepdim=True)).sub_(targets)
    else:
        labels = targets.to(torch.int64)[:, None]
        present = (labels >= 0) & (labels < classes)
        gradient.scatter_add_(1, labels.clamp(0, classes - 1), torch.full_like(logits[:, :1], -1.0))
        gradient.mul_(present)
    return gradient if factors is None else gradient.mul_(factors[:, None])


def _squared_norms(x: Block) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(x, dim=1).square_() if isinstance(x, Tensor) else x.squared_norms()
    return norms


def _accumulate(call: Call, gradient: Tensor, factors: Tensor, dropped: Tensor | None, total: Tensor) -> None:
    """Write this layer's part of the weighted sum into ``total``."""
    inputs, weighted = call.inputs, gradient * factors[:, None]
    if dropped is not None:
        weighted = weighted.masked_fill(dropped[:, None], 0.0)
        if isinstance(inputs, Tensor):
            inputs = inputs.masked_fill(dropped[:, None], 0.0)
        else:
            kept = (~dropped).nonzero()[:, 0]
            inputs, weighted = inputs.take(kept.numpy()), weighted[kept]
    write_sum(call.layer, inputs, weighted, total)


def write_sum(layer: Linear, inputs: Block, weighted: Tensor, total: Tensor) -> None:
    """Write ``sum_i g_i a_i^T`` and ``sum_i g_i``, this layer's part of a gradient sum, into ``total``."""
    weight, bias = layer.views(total)
    if isinstance(inputs, Tensor):
        torch.mm(weighted.T, inputs, out=weight)
    elif isinstance(inputs, SparseRows) and inputs.meets_few_columns:
        inputs.turned_product(weighted, weight)
    else:
        weight.copy_(inputs.transpose_matmul(weighted).T)
    if bias is not None:
        torch.sum(weighted, dim=0, out=bias)
