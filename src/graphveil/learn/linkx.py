"""LINKX (Lim et al., NeurIPS 2021): features and adjacency rows embedded apart, mixed, with both embeddings added back.

h = W [h_X, h_A] + h_X + h_A,     logits = head(selu(h)),     h_X = MLP(x),     h_A = A_i E  (or a table given as it is)
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.learn.modules import Apply, Inputs, Linear, Network, blocks_of, chain, chain_layers


class Linkx(Network):
    """Reads own features and, beside them, rows of ``width`` numbers: embedded by one layer, or taken as the embedding."""

    def __init__(self, features: int, width: int, hidden: int, classes: int, embeds: bool = True) -> None:
        if not embeds and width != hidden:
            raise InputError(f"a table that is added to the hidden layer must be as wide: {width} is not {hidden}")
        self.own = chain_layers((features, hidden, hidden))
        self.near = (Linear(width, hidden),) if embeds else ()
        self.mixed, self.head = chain_layers((2 * hidden, hidden, hidden)), Linear(hidden, classes)
        super().__init__([*self.own, *self.near, *self.mixed, self.head])

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        x, a = blocks_of(inputs, 2)
        own = chain(self.own, x, apply)
        near: Tensor = apply(self.near[0], a) if self.near else a  # type: ignore[assignment]
        mixed = chain(self.mixed, apply.selu(torch.cat([own, near], dim=1)), apply)
        return apply(self.head, apply.selu(mixed + own + near))
