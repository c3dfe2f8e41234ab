"""LINKX (Lim et al., NeurIPS 2021): features and adjacency rows embedded apart, mixed, with both embeddings added back.

h = W [h_X, h_A] + h_X + h_A,     logits = head(selu(h)),     h_X = MLP(x),     h_A = A_i E  (or a table given as it is)

With ``batch_norm`` what goes into an activation is normalised over the batch first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.learn.batch_norm import Normalised
from graphveil.learn.modules import Apply, Inputs, Linear, Network, blocks_of, chain_layers


class Linkx(Network):
    """Reads own features and, beside them, rows of ``width`` numbers: embedded by one layer, or taken as the embedding."""

    def __init__(
        self, features: int, width: int, hidden: int, classes: int, embeds: bool = True, batch_norm: bool = False
    ) -> None:
        if not embeds and width != hidden:
            raise InputError(f"a table that is added to the hidden layer must be as wide: {width} is not {hidden}")
        self.own = chain_layers((features, hidden, hidden))
        self.near = (Linear(width, hidden),) if embeds else ()
        self.mixed, self.head = chain_layers((2 * hidden, hidden, hidden)), Linear(hidden, classes)
        self.norms = [Normalised(size) for size in (hidden, 2 * hidden, hidden, hidden)] if batch_norm else []
        super().__init__([*self.own, *self.near, *self.mixed, self.head, *self.norms])

    def forward(self, inputs: Inputs, apply: Apply) -> Tensor:
        x, a = blocks_of(inputs, 2)

        def active(place: int, rows: Tensor) -> Tensor:
            return apply.selu(apply(self.norms[place], rows) if self.norms else rows)

        own = apply(self.own[1], active(0, apply(self.own[0], x)))
        near: Tensor = apply(self.near[0], a) if self.near else a  # type: ignore[assignment]
        mixed = apply(self.mixed[0], active(1, torch.cat([own, near], dim=1)))
        mixed = apply(self.mixed[1], active(2, mixed))
        return apply(self.head, active(3, mixed + own + near))
