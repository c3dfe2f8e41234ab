"""What DPDGC leaves behind: the released table and a classifier with two branches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.common.branches import branch_network, branch_parameters
from graphveil.methods.common.own_predictor import centred
from graphveil.methods.mlp import input_width, raw_inputs

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import Network


@dataclass(frozen=True)
class Shape:
    """Public sizes; ``hidden = 0``: no hidden layer; ``raw``: features as they are."""

    features: int
    classes: int
    width: int
    hidden: int
    raw: bool = False

    @property
    def inputs(self) -> tuple[int, int]:
        return input_width(self.features, self.raw), self.width

    @property
    def classifier_size(self) -> int:
        return branch_parameters(self.inputs, self.hidden, self.classes)


class DecoupledPredictor:
    """Released numbers: centre, table (one row per node) and network."""

    def __init__(self, shape: Shape, network: Network, centre: np.ndarray) -> None:
        self.shape, self.network, self.centre = shape, network, centre
        self.table = np.zeros((0, shape.width))

    @classmethod
    def build(cls, shape: Shape, centre: np.ndarray) -> DecoupledPredictor:
        return cls(shape, branch_network(shape.inputs, shape.hidden, shape.classes), centre)

    def inputs(self, graph: Graph) -> tuple[Any, Any]:
        """Own features (centred and of unit length unless the paper's code is followed), and the released row."""
        import torch

        own = raw_inputs(graph) if self.shape.raw else centred(graph, self.centre)
        return own, torch.from_numpy(self.table)

    def logits(self, graph: Graph) -> np.ndarray:
        return self.network(self.inputs(graph)).numpy()

    def config(self) -> dict[str, Any]:
        return asdict(self.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        return {**self.network.state(), "table": self.table, "centre": self.centre}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> DecoupledPredictor:
        predictor = cls.build(Shape(**config), arrays["centre"])
        predictor.table = arrays["table"]
        predictor.network.load({name: value for name, value in arrays.items() if name.startswith("layer")})
        return predictor
