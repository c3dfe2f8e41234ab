"""Networks made of linear layers whose parameters are views of one flat float64 vector.

One vector per network keeps private training simple: a gradient sum, its noise and an optimiser step are each one
operation on one array. Layers never ask autograd for weight gradients; ``gradients.py`` computes them once, already
clipped. A network is any composition of ``Linear`` layers and row-wise functions: its ``forward`` calls
``apply(layer, x)`` for every layer and thereby lets the caller watch what goes in and what comes out, or compute it in another
way. Nothing may mix rows: an example must not reach another example's gradient. The one layer that does (``batch_norm.py``)
says so (``mixes``) and is refused wherever examples are looked at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.errors import InputError
from graphveil.graph.rows import Rows

Block: TypeAlias = Tensor | Rows
Inputs: TypeAlias = Block | list[Block] | tuple[Block, ...]
"""What a network reads: a tensor, feature rows, or a tuple of these (one per branch)."""


def blocks_of(inputs: Inputs, count: int | None = None) -> list[Block]:
    """The single inputs; ``count``: how many the network reads."""
    blocks = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if count not in (None, len(blocks)):
        raise InputError(f"the network reads {count} inputs, it was given {len(blocks)}")
    return blocks


def take(inputs: Inputs, index: np.ndarray) -> Inputs:
    """The examples with these numbers, in every branch."""
    chosen = torch.from_numpy(np.asarray(index))
    taken = [block[chosen] if isinstance(block, Tensor) else block.take(index) for block in blocks_of(inputs)]
    return tuple(taken) if isinstance(inputs, list | tuple) else taken[0]


class Linear:
    """``y = x W^T + b`` with ``W`` of shape ``(outputs, inputs)``, a view of the network's flat vector."""

    weight: Tensor
    bias: Tensor | None
    mixes = False  # whether an example reaches the outputs of others

    def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
        if inputs < 1 or outputs < 1:
            raise InputError(f"a linear layer needs at least one input and one output, got {inputs} -> {outputs}")
        self.inputs, self.outputs, self.has_bias = inputs, outputs, bias
        self.start = 0

    @property
    def size(self) -> int:
        return self.outputs * (self.inputs + self.has_bias)

    def bind(self, vector: Tensor, start: int) -> None:
        """Live in ``vector`` from position ``start`` on."""
        self.start = start
        self.weight, self.bias = self.views(vector)

    def views(self, vector: Tensor) -> tuple[Tensor, Tensor | None]:
        """This layer's weight and bias inside any vector laid out like the parameters."""
        end = self.start + self.outputs * self.inputs
        weight = vector[self.start : end].view(self.outputs, self.inputs)
        return weight, vector[end : end + self.outputs] if self.has_bias else None

    def initialise(self, coins: np.random.Generator, gain: float) -> None:
        """Weights from N(0, gain^2 / inputs), bias zero."""
        scale = gain / math.sqrt(self.inputs)
        self.weight.copy_(torch.from_numpy(coins.normal(0.0, scale, tuple(self.weight.shape))))
        if self.bias is not None:
            self.bias.zero_()

    def __getstate__(self) -> dict[str, Any]:
        """What is in the vector is sent with the vector."""
        return {name: value for name, value in self.__dict__.items() if name not in ("weight", "bias")}

    def __call__(self, x: Block) -> Tensor:
        if isinstance(x, Tensor):
            return functional.linear(x, self.weight, self.bias)
        product = x.matmul(self.weight.T)
        return product if self.bias is None else product.add_(self.bias)

    def __repr__(self) -> str:
        return f"Linear({self.inputs} -> {self.outputs}{'' if self.has_bias else ', no bias'})"


class LinearByInput(Linear):
    """A layer whose weights lie by input, so that a batch of wide sparse rows reads and writes whole stretches of memory."""

    def views(self, vector: Tensor) -> tuple[Tensor, Tensor | None]:
        end = self.start + self.outputs * self.inputs
        weight = vector[self.start : end].view(self.inputs, self.outputs).T
        return weight, vector[end : end + self.outputs] if self.has_bias else None


class Apply(Protocol):
    """How layers, and the functions of a row between them, are computed."""

    def __call__(self, layer: Linear, x: Block, /) -> Tensor: ...

    def selu(self, x: Tensor) -> Tensor: ...

    def unit(self, x: Tensor) -> Tensor:
        """Every row divided by its norm."""


class Plainly:
    """As torch computes them."""

    def __call__(self, layer: Linear, x: Block, /) -> Tensor:
        return layer(x)

    def selu(self, x: Tensor) -> Tensor:
        return torch.selu(x)

    def unit(self, x: Tensor) -> Tensor:
        return functional.normalize(x, dim=1)


PLAINLY = Plainly()


class Network:
    """Linear layers over one flat vector; subclasses say in ``forward`` how they are composed."""

    gain = 1.0

    def __init__(self, layers: Sequence[Linear]) -> None:
        self.layers = tuple(layers)
        self.parameters = torch.zeros(sum(layer.size for layer in self.layers), dtype=torch.float64)
        self._bind()

    def _bind(self) -> None:
        start = 0
        for layer in self.layers:
            layer.bind(self.parameters, start)
            start += layer.size

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "parameters": self.parameters.numpy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy of what was sent here: its layers live in one vector again."""
        self.__dict__.update(state)
        self.parameters = torch.from_numpy(state["parameters"].copy())
        self._bind()

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        """Logits of shape ``(n, classes)``; every linear layer goes through ``apply``, at most once."""
        raise NotImplementedError

    def __call__(self, inputs: Inputs) -> Tensor:
        return self.forward(inputs, PLAINLY)

    def initialise(self, coins: np.random.Generator) -> Self:
        """Weights from N(0, gain^2 / inputs), biases zero; ``coins`` are public."""
        for layer in self.layers:
            layer.initialise(coins, self.gain)
        return self

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all parameters by name."""
        return {name: view.numpy().copy() for name, view in self._named()}

    def load(self, state: Mapping[str, np.ndarray]) -> Self:
        """Take over the parameters of ``state()``."""
        named = dict(self._named())
        if named.keys() != state.keys():
            raise InputError(f"the saved network has parameters {sorted(state)}, this one has {sorted(named)}")
        for name, view in named.items():
            if view.shape != state[name].shape:
                raise InputError(f"saved {name} has shape {state[name].shape}, expected {tuple(view.shape)}")
        for name, view in named.items():
            view.copy_(torch.from_numpy(np.asarray(state[name], dtype=np.float64)))
        return self

    def _named(self) -> list[tuple[str, Tensor]]:
        named = []
        for number, layer in enumerate(self.layers):
            named.append((f"layer{number}.weight", layer.weight))
            if layer.bias is not None:
                named.append((f"layer{number}.bias", layer.bias))
        return named


class MLP(Network):
    """A chain of linear layers with an activation between them, SELU unless another is given.

    ``MLP((d, C), bias=False)`` is softmax regression; ``MLP((d, 64, 16, C), normalise=True)`` has an embedding of unit
    rows (``embed``) below its last layer. The activation works row by row.
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: Callable[[Tensor], Tensor] | None = None,
        bias: bool = True,
        normalise: bool = False,
    ) -> None:
        super().__init__(chain_layers(widths, bias))
        self.activation, self.normalise = activation, normalise
        self.gain = math.sqrt(2) if activation is torch.relu else 1.0

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        return apply(self.layers[-1], self.embed(inputs, apply))

    def embed(self, inputs: Inputs, apply: Apply = PLAINLY) -> Block:
        """What the last layer reads."""
        (x,) = blocks_of(inputs, 1)
        activation = self.activation or apply.selu
        for layer in self.layers[:-1]:
            x = activation(apply(layer, x))
        if not self.normalise:
            return x
        if not isinstance(x, Tensor):
            raise InputError("the network cannot normalise feature rows: normalise them before, or give it a tensor")
        return apply.unit(x)


class Branches(Network):
    """One chain per input; their outputs are joined, normalised, activated and read by a head.

    ``logits = head(selu(unit([branch_1(x_1), ..., branch_B(x_B)])))``, the classifier of GAP (one linear layer per hop)
    and, with two branches and ``normalise=False``, of DPDGC. ``branches`` are widths from inputs to outputs, ``head``
    those after the joined rows.
    """

    def __init__(self, branches: Sequence[Sequence[int]], head: Sequence[int], normalise: bool = True) -> None:
        self.branches = tuple(chain_layers(widths) for widths in branches)
        self.head = chain_layers((sum(widths[-1] for widths in branches), *head))
        super().__init__([layer for chain in (*self.branches, self.head) for layer in chain])
        self.normalise = normalise

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        return chain(self.head, apply.selu(self.embed(inputs, apply)), apply)

    def embed(self, inputs: Inputs, apply: Apply = PLAINLY) -> Tensor:
        """The joined rows, before activation and head."""
        pairs = zip(self.branches, blocks_of(inputs, len(self.branches)), strict=True)
        joined = torch.cat([chain(branch, block, apply) for branch, block in pairs], dim=1)
        return apply.unit(joined) if self.normalise else joined


def chain(layers: Sequence[Linear], x: Block, apply: Apply) -> Tensor:
    """The layers one after the other, with an activation between them."""
    first, *rest = layers
    output = apply(first, x)
    for layer in rest:
        output = apply(layer, apply.selu(output))
    return output


class SummedBranches(Network):
    """One linear layer per input, their outputs added: softmax regression on several inputs at once, starting from zero."""

    def __init__(self, inputs: Sequence[int], classes: int) -> None:
        super().__init__([Linear(width, classes, bias=False) for width in inputs])

    def initialise(self, coins: np.random.Generator) -> Self:
        self.parameters.zero_()
        return self

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        blocks = blocks_of(inputs, len(self.layers))
        first, *rest = (apply(layer, block) for layer, block in zip(self.layers, blocks, strict=True))
        return sum(rest, start=first)


def chain_layers(widths: Sequence[int], bias: bool = True) -> tuple[Linear, ...]:
    if len(widths) < 2:
        raise InputError(f"a chain needs input and output widths, got {tuple(widths)}")
    return tuple(Linear(inputs, outputs, bias) for inputs, outputs in pairwise(widths))
