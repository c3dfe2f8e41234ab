"""Networks made of linear layers whose parameters are views of one flat float64 vector.

One vector per network keeps private training simple: a gradient sum, its noise and an optimiser step are each one
operation on one array. Layers never ask autograd for weight gradients; ``gradients.py`` computes them once, already
clipped. A network is any composition of ``Linear`` layers and row-wise functions: its ``forward`` calls
``apply(layer, x)`` for every layer and thereby lets the caller watch what goes in and what comes out. Nothing may mix
rows (no batch normalisation): an example must not reach another example's gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphveil.errors import InputError
from graphveil.graph.rows import Rows
from graphveil.learn.inputs import Block, Inputs


class Activation(Enum):
    """Row-wise non-linearities, callable on tensors."""

    SELU = "selu"
    RELU = "relu"
    TANH = "tanh"

    def __call__(self, x: Tensor) -> Tensor:
        return _FUNCTIONS[self](x)

    @property
    def gain(self) -> float:
        """Factor on the initial weights that keeps the scale of activations."""
        return math.sqrt(2) if self is Activation.RELU else 1.0


_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.SELU: torch.selu,
    Activation.RELU: torch.relu,
    Activation.TANH: torch.tanh,
}


def unit_rows(x: Block) -> Tensor:
    """Every row divided by its Euclidean length; zero rows stay zero."""
    if not isinstance(x, Tensor):
        raise InputError("the network cannot normalise feature rows: normalise them before, or give it a tensor")
    return functional.normalize(x, dim=1)


class Linear:
    """``y = x W^T + b`` with ``W`` of shape ``(outputs, inputs)``, a view of the network's flat vector."""

    weight: Tensor
    bias: Tensor | None

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

    def __call__(self, x: Block) -> Tensor:
        if isinstance(x, Tensor):
            return functional.linear(x, self.weight, self.bias)
        product = x.matmul(self.weight.T)
        return product if self.bias is None else product.add_(self.bias)

    def __repr__(self) -> str:
        return f"Linear({self.inputs} -> {self.outputs}{'' if self.has_bias else ', no bias'})"


Apply = Callable[[Linear, Block], Tensor]


class Network:
    """Linear layers over one flat vector; subclasses say in ``forward`` how they are composed."""

    gain = 1.0

    def __init__(self, layers: Sequence[Linear]) -> None:
        self.layers = tuple(layers)
        self.parameters = torch.zeros(sum(layer.size for layer in self.layers), dtype=torch.float64)
        start = 0
        for layer in self.layers:
            layer.bind(self.parameters, start)
            start += layer.size

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        """Logits of shape ``(n, classes)``; every linear layer goes through ``apply``, at most once."""
        raise NotImplementedError

    def __call__(self, inputs: Inputs) -> Tensor:
        return self.forward(inputs, Linear.__call__)

    def initialise(self, coins: np.random.Generator) -> Self:
        """Weights from N(0, gain^2 / inputs), biases zero; ``coins`` are public."""
        for layer in self.layers:
            scale = self.gain / math.sqrt(layer.inputs)
            layer.weight.copy_(torch.from_numpy(coins.normal(0.0, scale, tuple(layer.weight.shape))))
            if layer.bias is not None:
                layer.bias.zero_()
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

    def __repr__(self) -> str:
        layers = ", ".join(f"{layer.inputs} -> {layer.outputs}" for layer in self.layers)
        return f"{type(self).__name__}({layers}; {self.parameters.numel()} parameters)"


class MLP(Network):
    """A chain of linear layers with an activation between them.

    ``MLP((d, C), bias=False)`` is softmax regression; ``MLP((d, 64, 16, C), normalise={2})`` has an embedding of unit
    rows (``embed``) below its last layer.

    Args:
        widths: inputs, hidden widths, outputs.
        activation: applied between layers.
        bias: whether layers have one.
        normalise: numbers of the layers whose input rows are first brought to unit length.
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: Activation = Activation.SELU,
        bias: bool = True,
        normalise: Collection[int] = (),
    ) -> None:
        super().__init__(_layers(widths, bias))
        unknown = set(normalise) - set(range(len(self.layers)))
        if unknown:
            raise InputError(f"layers to normalise {sorted(unknown)} do not exist; there are {len(self.layers)}")
        self.activation, self.gain = activation, activation.gain
        self.normalise = frozenset(normalise)

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        return apply(self.layers[-1], self.embed(inputs, apply))

    def embed(self, inputs: Inputs, apply: Apply = Linear.__call__) -> Block:
        """What the last layer reads."""
        if not isinstance(inputs, Tensor | Rows):
            raise InputError(f"a chain reads one input, got {len(inputs)}")
        x = self._normalised(0, inputs)
        for number, layer in enumerate(self.layers[:-1]):
            x = self._normalised(number + 1, self.activation(apply(layer, x)))
        return x

    def _normalised(self, number: int, x: Block) -> Block:
        return unit_rows(x) if number in self.normalise else x


class Branches(Network):
    """One chain per input; their outputs are joined, normalised, activated and read by a head.

    ``logits = head(activation(unit_rows([branch_1(x_1), ..., branch_B(x_B)])))``, the classifier of GAP (one linear
    layer per hop) and, with two branches and ``normalise=False``, of DPDGC.

    Args:
        branches: per branch its widths, from inputs to outputs.
        head: widths after the joined rows, the last one being the number of classes.
        activation: between layers and after joining.
        bias: whether layers have one.
        normalise: whether joined rows are brought to unit length.
    """

    def __init__(
        self,
        branches: Sequence[Sequence[int]],
        head: Sequence[int],
        activation: Activation = Activation.SELU,
        bias: bool = True,
        normalise: bool = True,
    ) -> None:
        self.branches = tuple(_layers(widths, bias) for widths in branches)
        joined = sum(widths[-1] for widths in branches)
        self.head = _layers((joined, *head), bias)
        super().__init__([layer for chain in (*self.branches, self.head) for layer in chain])
        self.activation, self.gain, self.normalise = activation, activation.gain, normalise

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        return self._chain(self.head, self.activation(self.embed(inputs, apply)), apply)

    def embed(self, inputs: Inputs, apply: Apply = Linear.__call__) -> Tensor:
        """The joined rows, before activation and head."""
        blocks = [inputs] if isinstance(inputs, Tensor | Rows) else list(inputs)
        if len(blocks) != len(self.branches):
            raise InputError(f"the network has {len(self.branches)} branches but was given {len(blocks)} inputs")
        pairs = zip(self.branches, blocks, strict=True)
        joined = torch.cat([self._chain(branch, block, apply) for branch, block in pairs], dim=1)
        return unit_rows(joined) if self.normalise else joined

    def _chain(self, layers: Sequence[Linear], x: Block, apply: Apply) -> Tensor:
        first, *rest = layers
        output = apply(first, x)
        for layer in rest:
            output = apply(layer, self.activation(output))
        return output


class SummedBranches(Network):
    """One linear layer per input, their outputs added: softmax regression on several inputs at once, starting from zero."""

    def __init__(self, inputs: Sequence[int], classes: int) -> None:
        super().__init__([Linear(width, classes, bias=False) for width in inputs])

    def initialise(self, coins: np.random.Generator) -> Self:
        self.parameters.zero_()
        return self

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        blocks = [inputs] if isinstance(inputs, Tensor | Rows) else list(inputs)
        if len(blocks) != len(self.layers):
            raise InputError(f"the network reads {len(self.layers)} inputs, it was given {len(blocks)}")
        first, *rest = (apply(layer, block) for layer, block in zip(self.layers, blocks, strict=True))
        return sum(rest, start=first)


def _layers(widths: Sequence[int], bias: bool) -> tuple[Linear, ...]:
    if len(widths) < 2:
        raise InputError(f"a chain needs input and output widths, got {tuple(widths)}")
    return tuple(Linear(inputs, outputs, bias) for inputs, outputs in pairwise(widths))
