"""What a trained GAP leaves behind: two networks of public shape and the released hop tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.graph.unit import unit_array
from graphveil.learn import engine
from graphveil.learn.centred_sums import BIAS
from graphveil.learn.exact_rows import ConstantRows, ExactRows, ScaledRows
from graphveil.learn.grid_rows import grid_rows
from graphveil.learn.grids import MOST_BITS
from graphveil.methods.common.block_training import BlockTrainer
from graphveil.methods.common.branches import ReleasedNumbers, branch_parameters
from graphveil.methods.common.private_training import parameter_count
from graphveil.methods.mlp import input_width, raw_inputs


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

    def embedding(self, block: Block, chosen: np.ndarray | None = None) -> np.ndarray:
        """X_0 of the records of a block (at the positions ``chosen``): unit rows, a function of each node's own features."""
        if self.shape.raw:
            return np.asarray(self.encoder.embed(raw_inputs(block)).numpy())
        own = self.encoder_inputs(block, np.arange(len(block)) if chosen is None else chosen, MOST_BITS)
        if self.shape.encoder_layers:
            return learn.exact_embedding(self.encoder.embed, own)
        return unit_array(learn.exact_scores(self.encoder, own))

    def sent(self, block: Block) -> np.ndarray:
        """What the records of a block send along their lists: released rows, or at first their own embedding."""
        return self.hops[-1][block.slots] if self.hops else self.embedding(block) * block.present[:, None]

    def encoder_inputs(self, block: Block, chosen: np.ndarray, bits: int) -> tuple[ExactRows, ...]:
        """What the encoder reads: centred unit rows and a constant, on the grid 2^-bits."""
        centre = self.tables.get("centre", np.zeros(self.shape.features))
        return (ConstantRows.of(grid_rows(block, chosen, centre, bits), BIAS, bits),)

    def classifier_inputs(self, block: Block, chosen: np.ndarray, bits: int) -> tuple[ExactRows, ...]:
        """What the classifier reads: own embedding and the released rows, on the grid 2^-bits."""
        released = (table[block.slots][chosen] for table in self.hops)
        return tuple(ScaledRows.of(rows, bits) for rows in (self.embedding(block, chosen), *released))

    def raw_joined(self, block: Block) -> tuple[Any, ...]:
        """The same as the paper's code has it."""
        import torch

        rows = (self.embedding(block), *(table[block.slots] for table in self.hops))
        return tuple(torch.from_numpy(np.ascontiguousarray(part)) for part in rows)

    def logits(self, graph: Graph) -> np.ndarray:
        return engine.gathered(graph, self.scores, np.ones(graph.nodes, dtype=bool))

    def scores(self, block: Block) -> np.ndarray:
        """Logits of the records of a block, by their own features and released rows."""
        classifier = self.networks["classifier."]
        if self.shape.raw:
            return np.asarray(classifier(self.raw_joined(block)).numpy())
        return learn.exact_scores(classifier, self.classifier_inputs(block, np.arange(len(block)), MOST_BITS))

    def stages(self, train: BlockTrainer) -> Callable[[str], None]:
        """Encoder and classifier by name, for a trainer that goes over blocks."""
        inputs = {"encoder": self.encoder_inputs, "classifier": self.classifier_inputs}
        return lambda name: train(name, self.networks[f"{name}."], inputs[name])
