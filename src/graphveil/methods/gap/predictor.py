"""What a trained GAP leaves behind: two networks of public shape and the released hop tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.common.branches import branch_parameters
from graphveil.methods.common.own_predictor import centred
from graphveil.methods.common.private_training import parameter_count
from graphveil.methods.mlp import input_width, raw_inputs

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import MLP, Branches, Network, SummedBranches

    Encoder = MLP | Branches | SummedBranches


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


class GapPredictor:
    """Released numbers: centre, encoder, hop tables (one row per node) and classifier."""

    def __init__(self, shape: Shape, encoder: Encoder, classifier: Network, centre: np.ndarray) -> None:
        self.shape, self.encoder, self.classifier, self.centre = shape, encoder, classifier, centre
        self.hops: list[np.ndarray] = []

    @classmethod
    def build(cls, shape: Shape, centre: np.ndarray) -> GapPredictor:
        from graphveil.learn import MLP, Branches, SummedBranches

        if not shape.encoder_layers:
            linear = SummedBranches(shape.encoder[:1], shape.classes), SummedBranches(shape.blocks, shape.classes)
            return cls(shape, *linear, centre)
        encoder: Encoder = MLP(shape.encoder, normalise=True)
        if shape.raw:  # the paper normalises before it activates
            encoder = Branches([shape.encoder[:-1]], shape.encoder[-1:])
        classifier = Branches([(width, width) for width in shape.blocks], (shape.classes,))
        return cls(shape, encoder, classifier, centre)

    def own_inputs(self, graph: Graph) -> Any:
        """What the encoder reads: everybody's own row, centred and of unit length unless the paper's code is followed."""
        return raw_inputs(graph) if self.shape.raw else centred(graph, self.centre)

    def embedding(self, graph: Graph) -> np.ndarray:
        """X_0: unit rows, a function of each node's own features."""
        from graphveil.graph.unit import unit_array

        own = self.own_inputs(graph)
        if self.shape.encoder_layers:
            return self.encoder.embed(own).numpy()  # type: ignore[union-attr]
        return unit_array(self.encoder(own).numpy())

    def all_inputs(self, graph: Graph) -> tuple[Any, ...]:
        """What the classifier reads: own embedding and the released rows."""
        import torch

        return tuple(torch.from_numpy(block) for block in (self.embedding(graph), *self.hops))

    def logits(self, graph: Graph) -> np.ndarray:
        return self.classifier(self.all_inputs(graph)).numpy()

    def config(self) -> dict[str, Any]:
        return asdict(self.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        parts = {"encoder": self.encoder.state(), "classifier": self.classifier.state()}
        named = {f"{part}.{name}": value for part, state in parts.items() for name, value in state.items()}
        tables = {f"hop{number}": table for number, table in enumerate(self.hops, start=1)}
        return named | tables | {"centre": self.centre}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> GapPredictor:
        predictor = cls.build(Shape(**config), arrays["centre"])
        for part, network in (("encoder", predictor.encoder), ("classifier", predictor.classifier)):
            start = f"{part}."
            network.load({name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)})
        tables = sorted((name for name in arrays if name.startswith("hop")), key=lambda name: int(name[3:]))
        predictor.hops = [arrays[name] for name in tables]
        return predictor
