"""What DPAR leaves behind: a small network on own features, and power iteration on a graph that is public."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from graphveil.graph import Graph


@dataclass(frozen=True)
class Shape:
    """Public sizes; ``projection`` is the width after a public random projection (0: none), ``key`` its coins."""

    features: int
    hidden: int
    classes: int
    projection: int
    key: int
    teleport: float
    propagation: int
    inductive: bool

    @property
    def inputs(self) -> int:
        return self.projection or max(self.features, 1)

    @property
    def size(self) -> int:
        return self.hidden * (self.inputs + self.classes)


class RankedPredictor:
    """Released numbers: W1 and W2. ``logits`` reads the own row; ``graph_logits`` also the edges of a public graph.

    ``graph_logits``: ``L <- (1 - a) D^-1 A L + a L_0``, self-loops included; trained inductively, edges from or to training and
    calibration nodes are left out. The paper's figures are of this kind, on a test graph it declares unprotected.
    """

    transfers = True

    def __init__(self, shape: Shape, parameters: np.ndarray) -> None:
        self.shape, self.parameters = shape, parameters

    def rows(self, graph: Graph) -> np.ndarray:
        """Unit feature rows, projected if the plan says so."""
        return projected_rows(graph, self.shape)

    def own_logits(self, graph: Graph) -> np.ndarray:
        shape = self.shape
        w1 = self.parameters[: shape.hidden * shape.inputs].reshape(shape.hidden, shape.inputs)
        w2 = self.parameters[shape.hidden * shape.inputs :].reshape(shape.classes, shape.hidden)
        return np.maximum(self.rows(graph) @ w1.T, 0.0) @ w2.T

    def logits(self, graph: Graph) -> np.ndarray:
        return self.own_logits(graph)

    def graph_logits(self, graph: Graph) -> np.ndarray:
        import scipy.sparse as sp

        own = self.own_logits(graph)
        if self.shape.propagation == 0:
            return own
        senders, receivers = graph.lists.edge_index()
        if self.shape.inductive:
            trained = graph.masks["train"] | graph.masks["calibration"]
            keep = trained[senders] == trained[receivers]
            senders, receivers = senders[keep], receivers[keep]
        matrix = sp.csr_matrix((np.ones(senders.size), (receivers, senders)), shape=(graph.nodes, graph.nodes))
        matrix = matrix + sp.eye(graph.nodes, format="csr")
        walk = sp.diags(1 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix
        scores = own
        for _ in range(self.shape.propagation):
            scores = (1 - self.shape.teleport) * (walk @ scores) + self.shape.teleport * own
        return scores

    def config(self) -> dict[str, Any]:
        return asdict(self.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"parameters": self.parameters}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> RankedPredictor:
        return cls(Shape(**config), arrays["parameters"])


def projected_rows(graph: Graph, shape: Shape, index: np.ndarray | None = None) -> np.ndarray:
    """Dense unit rows (of the nodes in ``index``): the features themselves, or their public random projection."""
    import torch

    from graphveil.graph.unit import unit_array, unit_rows

    rows = graph.rows if index is None else graph.rows.take(index)
    if shape.features == 0:
        return np.zeros((rows.shape[0], 1))
    unit = unit_rows(rows)
    if not shape.projection:
        return unit.matmul(torch.eye(shape.features, dtype=torch.float64)).numpy()
    matrix = np.random.default_rng(shape.key).normal(size=(shape.features, shape.projection))
    return unit_array(unit.matmul(torch.from_numpy(matrix)).numpy())
