"""Sums of clipped per-example gradients of any network that are exact: the same for any order and any cut into blocks.

*A record's numbers are its own.* Inputs of every layer lie on a grid relative to their row (``exact_rows.py``) and weights are
rounded (``grids.rounded_weights``), so that no product rounds, in whatever order a library adds up, forwards and backwards; what
is between layers is computed row by row (``exact_kernels.py``).

*Sums do not round.* A record adds ``c_i a_i^T`` for each layer, with a_i in multiples of 2^-a and the clipped c_i truncated to
multiples of 2^-b; for n records of norm at most L, and n L 2^(a + b) <= 2^53, float64 adds without rounding (``grids.py``).

Formal guarantee (``tests/learn/test_exact_gradients.py``): the term of one record has norm at most ``clip``, whatever the record
contains, and the sum changes by that term alone if the record goes. The norm is computed from the very a_i that are multiplied
later; ``SLACK`` covers its rounding, and truncation only shortens c_i. Absent examples (labels below 0) have the term 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from graphveil.learn import exact_kernels as kernels
from graphveil.learn.exact_rows import Coins, ExactRows, ScaledRows, cut_sum
from graphveil.learn.gradients import SLACK, TINY, check_use
from graphveil.learn.grid_kernels import row_squares
from graphveil.learn.grids import MOST_BITS, SumGrid, rounded_weights
from graphveil.learn.modules import Block, Inputs, Linear, Network

SIDES = 1 << 16  # of a coin


@dataclass(frozen=True)
class Dropout:
    """Coins for the inputs of all but first layers, by the number of the example: ``first`` is that of the first one here."""

    rate: float
    key: int
    first: int = 0

    def at(self, layer: int, shape: tuple[int, ...]) -> Coins:
        """Those for these examples' inputs of one layer; every coin has 16 random bits."""
        records, width = shape
        words = -(-width // 4)
        stream = np.random.PCG64([self.key, layer]).advance(int(self.first) * words)
        shown = stream.random_raw(records * words).view(np.uint16).reshape(records, 4 * words)
        return Coins(shown, round(self.rate * SIDES), 1 / (1 - self.rate))


class Use(NamedTuple):
    """One use of a layer: what it read and what it wrote."""

    layer: Linear
    rows: ExactRows
    outputs: Tensor


class ExactCalls:
    """Applies layers and functions of a row so that no example's numbers depend on the others; remembers each use."""

    def __init__(self, bits: int = MOST_BITS, dropout: Dropout | None = None) -> None:
        self.made: list[Use] = []
        self._bits, self._dropout = bits, dropout

    def __call__(self, layer: Linear, x: Block, /) -> Tensor:
        check_use(layer, (use.layer for use in self.made))
        if not isinstance(x, Tensor):
            rows = cast(ExactRows, x)
            outputs = torch.from_numpy(_product(layer, rows, self._bits)).requires_grad_(torch.is_grad_enabled())
            self.made.append(Use(layer, rows, outputs))
            return outputs
        coins = None if self._dropout is None else self._dropout.at(len(self.made), tuple(x.shape))
        rows = ScaledRows.of(x.detach().numpy(), self._bits, coins)
        outputs = _apply(_Applied, x, layer, rows, self._bits, coins)
        self.made.append(Use(layer, rows, outputs))
        return outputs

    def selu(self, x: Tensor) -> Tensor:
        return _apply(_Selu, x)

    def unit(self, x: Tensor) -> Tensor:
        return _apply(_Unit, x)


def exact_gradient_sum(
    network: Network,
    inputs: Sequence[ExactRows],
    labels: np.ndarray,
    clip: float,
    grid: SumGrid,
    dropout: Dropout | None = None,
) -> np.ndarray:
    """``sum_i min(1, clip / ||grad_i||) grad_i`` of the cross-entropy, as one flat vector.

    ``grid`` is that of all records there are, here and in other blocks, with terms of norm ``clip``.
    """
    calls = ExactCalls(grid.bits, dropout)
    with torch.enable_grad():
        logits = network.forward(cast(Inputs, list(inputs)), calls)
    at_logits = np.empty(tuple(logits.shape))
    kernels.residuals(logits.detach().numpy(), labels, at_logits)
    gradients = _at_outputs(calls.made, logits, at_logits)

    squares, own = np.zeros(len(labels)), np.empty(len(labels))
    for use, gradient in zip(calls.made, gradients, strict=True):
        row_squares(gradient, own)
        squares += (use.rows.squares + (1.0 if use.layer.has_bias else 0.0)) * own
    finite = np.isfinite(squares)
    factors = np.where(finite, np.minimum(1.0, clip * (1 - SLACK) / np.sqrt(squares + TINY)), 0.0)

    total = np.zeros(network.parameters.numel())
    for use, gradient in zip(calls.made, gradients, strict=True):
        if not finite.all():
            gradient = np.where(finite[:, None], gradient, 0.0)
        weight, bias = use.layer.views(torch.from_numpy(total))
        weight.numpy()[:] = use.rows.sums(gradient, grid.unit, factors).T
        if bias is not None:
            bias.numpy()[:] = cut_sum(gradient, factors, grid.unit)
    return total


def exact_scores(network: Network, inputs: Sequence[ExactRows]) -> np.ndarray:
    """Logits of every example, by its own inputs alone."""
    with torch.no_grad():
        return np.asarray(network.forward(cast(Inputs, list(inputs)), ExactCalls()).numpy())


def exact_embedding(embed: Callable[[Inputs, ExactCalls], Block], inputs: Sequence[ExactRows]) -> np.ndarray:
    """What ``embed`` of a network gives for every example."""
    with torch.no_grad():
        return np.asarray(cast(Tensor, embed(cast(Inputs, list(inputs)), ExactCalls())).numpy())


def _product(layer: Linear, rows: ExactRows, bits: int) -> np.ndarray:
    found = rows.scores(rounded_weights(layer.weight.numpy().T, bits))
    if layer.bias is not None:
        found += layer.bias.numpy()
    return found


def _at_outputs(made: Sequence[Use], logits: Tensor, at_logits: np.ndarray) -> list[np.ndarray]:
    """Per use the gradient at its output."""
    if len(made) == 1 and made[0].outputs is logits:
        return [at_logits]
    found = torch.autograd.grad(logits, [use.outputs for use in made], torch.from_numpy(at_logits))
    return [np.ascontiguousarray(gradient.numpy()) for gradient in found]  # kernels add up in an order of the layout


def _apply(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    return cast(Tensor, function.apply(*arguments))  # type: ignore[no-untyped-call]


def _rows(x: Tensor) -> np.ndarray:
    return np.ascontiguousarray(x.detach().numpy())


class _Applied(torch.autograd.Function):
    """A layer between others: exact forwards and backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, layer: Linear, rows: ScaledRows, bits: int, coins: Coins | None) -> Tensor:
        ctx.layer, ctx.coins = layer, coins
        return torch.from_numpy(_product(layer, rows, bits))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        back = rounded_weights(ctx.layer.weight.numpy(), MOST_BITS)
        found = ScaledRows.of(_rows(gradients[0]), MOST_BITS).scores(back)
        if ctx.coins is not None:
            ctx.coins.keep(found, found)
        return torch.from_numpy(found), None, None, None, None


class _Selu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        values = _rows(x)
        ctx.found = np.empty_like(values)
        kernels.selu(values.ravel(), ctx.found.ravel())
        return torch.from_numpy(ctx.found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient = _rows(gradients[0])
        out = np.empty_like(gradient)
        kernels.selu_slope(ctx.found.ravel(), gradient.ravel(), out.ravel())
        return torch.from_numpy(out)


class _Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        values = _rows(x)
        ctx.found, ctx.norms = np.empty_like(values), np.empty(len(values))
        kernels.unit(values, ctx.found, ctx.norms)
        return torch.from_numpy(ctx.found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient = _rows(gradients[0])
        out = np.empty_like(gradient)
        kernels.unit_slope(ctx.found, ctx.norms, gradient, out)
        return torch.from_numpy(out)
