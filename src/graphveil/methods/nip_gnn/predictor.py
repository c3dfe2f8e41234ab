"""What sound NIP-GNN leaves behind: released rows of every hop and a classifier on own features beside them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.common.branches import branch_network, branch_parameters
from graphveil.methods.common.own_predictor import centred

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import Network

PROJECTION_COINS = 0x0917  # public


@dataclass(frozen=True)
class Shape:
    """Public sizes: ``width`` of the projected features, ``tables`` released ones, ``hidden`` per branch (0: none)."""

    features: int
    classes: int
    width: int
    tables: int
    hidden: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.features + 1, *[self.width] * self.tables

    @property
    def size(self) -> int:
        return branch_parameters(self.inputs, self.hidden, self.classes)


class InfluencePredictor:
    """Released numbers: tables (one row per node) and network."""

    def __init__(self, shape: Shape, network: Network) -> None:
        self.shape, self.network = shape, network
        self.tables: list[np.ndarray] = []

    @classmethod
    def build(cls, shape: Shape) -> InfluencePredictor:
        return cls(shape, branch_network(shape.inputs, shape.hidden, shape.classes))

    def inputs(self, graph: Graph) -> tuple[Any, ...]:
        """Own unit features, and the released rows."""
        import torch

        return centred(graph, np.zeros(graph.features)), *(torch.from_numpy(table) for table in self.tables)

    def logits(self, graph: Graph) -> np.ndarray:
        return self.network(self.inputs(graph)).numpy()

    def config(self) -> dict[str, Any]:
        return asdict(self.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        return self.network.state() | {f"table{number}": table for number, table in enumerate(self.tables)}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> InfluencePredictor:
        predictor = cls.build(Shape(**config))
        predictor.network.load({name: value for name, value in arrays.items() if name.startswith("layer")})
        predictor.tables = [arrays[f"table{number}"] for number in range(predictor.shape.tables)]
        return predictor


def projected(graph: Graph, shape: Shape) -> np.ndarray:
    """Unit rows of a public random projection of the unit features."""
    import torch

    from graphveil.graph.unit import unit_array, unit_rows

    if shape.features == 0:
        return np.zeros((graph.nodes, shape.width))
    matrix = np.random.default_rng(PROJECTION_COINS).normal(size=(shape.features, shape.width))
    return unit_array(unit_rows(graph.rows).matmul(torch.from_numpy(matrix)).numpy())
