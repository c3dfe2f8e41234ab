"""What a trained GAP leaves behind: two networks of public shape and the released hop tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.graph.unit import unit_array
from graphveil.methods.common.branches import ReleasedNumbers, branch_parameters
from graphveil.methods.common.private_training import parameter_count
from graphveil.methods.mlp import input_width


@dataclass(frozen=True)
class Shape:
    """Public sizes of the two networks; no ``encoder_layers``: both are linear and ``width`` is the number of classes.

    ``raw``: features as they are, and the paper's encoder.
    """

    features: int
    classes: int
    width: int
    hops: int
    encoder_layers: int
    raw: bool = False

    @property
    def encoder(self) -> tuple[int, ...]:
        return input_width(self.features, self.raw), *[self.width] * self.encoder_layers, self.classes

    @property
    def encoder_size(self) -> int:
        return parameter_count(self.encoder, bias=self.encoder_layers > 0)

    @property
    def blocks(self) -> list[int]:
        return [self.width] * (self.hops + 1)

    @property
    def classifier_size(self) -> int:
        return branch_parameters(self.blocks, self.width if self.encoder_layers else 0, self.classes)


class GapPredictor(ReleasedNumbers):
    """Released numbers: centre, encoder, hop tables (one row per node) and classifier."""

    shaped = Shape

    @classmethod
    def build(cls, shape: Shape) -> Self:
        encoder: learn.Network = learn.SummedBranches(shape.encoder[:1], shape.classes)
        classifier: learn.Network = learn.SummedBranches(shape.blocks, shape.classes)
        if shape.encoder_layers:
            encoder = learn.MLP(shape.encoder, normalise=True)
            if shape.raw:  # the paper normalises before it activates
                encoder = learn.Branches([shape.encoder[:-1]], shape.encoder[-1:])
            classifier = learn.Branches([(width, width) for width in shape.blocks], (shape.classes,))
        return cls(shape, {"encoder.": encoder, "classifier.": classifier})

    @property
    def encoder(self) -> Any:
        return self.networks["encoder."]

    @property
    def hops(self) -> list[np.ndarray]:
        names = (f"hop{number}" for number in range(1, self.shape.hops + 1))
        return [self.tables[name] for name in names if name in self.tables]

    def embedding(self, graph: Graph) -> np.ndarray:
        """X_0: unit rows, a function of each node's own features."""
        own = self.own_inputs(graph)
        return self.encoder.embed(own).numpy() if self.shape.encoder_layers else unit_array(self.encoder(own).numpy())

    def all_inputs(self, graph: Graph) -> tuple[Any, ...]:
        """What the classifier reads: own embedding and the released rows."""
        import torch

        return tuple(torch.from_numpy(block) for block in (self.embedding(graph), *self.hops))

    def logits(self, graph: Graph) -> np.ndarray:
        return np.asarray(self.networks["classifier."](self.all_inputs(graph)).numpy())
