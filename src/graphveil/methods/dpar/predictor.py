"""What DPAR leaves behind: a predictor on own features, and power iteration on a graph that is public."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from graphveil.graph import Graph
from graphveil.graph.rows import SparseRows, tensor
from graphveil.graph.unit import unit_rows
from graphveil.methods.common.branches import projected_rows
from graphveil.methods.common.own_predictor import OwnPredictor
from graphveil.methods.dpar.dropout import dropped, dropped_units

PREDICTION_COINS = 0xD9A3


@dataclass(frozen=True)
class Shape:
    """Public sizes of the two layers; ``projection``: width after a public random projection (0: none), ``key`` its coins.

    ``raw``: features as they are instead of unit rows; ``dropout``: rate in training, ``dropout_at_prediction``: also there.
    """

    features: int
    hidden: int
    classes: int
    projection: int = 0
    key: int = 0
    raw: bool = False
    dropout: float = 0.0
    dropout_at_prediction: bool = False

    @property
    def inputs(self) -> int:
        return self.projection or max(self.features, 1)

    @property
    def size(self) -> int:
        return self.hidden * (self.inputs + self.classes)


@dataclass
class TwoLayers:
    """``W2 relu(W1 x)`` on the own unit row, projected if the plan says so: the paper's network."""

    shape: Shape
    parameters: np.ndarray

    @classmethod
    def drawn(cls, shape: Shape, coins: np.random.Generator) -> TwoLayers:
        scale = [1 / math.sqrt(shape.inputs)] * (shape.hidden * shape.inputs)
        scale += [1 / math.sqrt(shape.hidden)] * (shape.classes * shape.hidden)
        return cls(shape, coins.normal(size=shape.size) * np.array(scale))

    def logits(self, graph: Graph) -> np.ndarray:
        return np.asarray(self.hidden(graph) @ self._weights()[1].T)

    def hidden(self, graph: Graph) -> np.ndarray:
        """What the hidden units say of everybody."""
        shape, rows, everybody = self.shape, self.inputs(graph), np.arange(graph.nodes)
        if not (shape.dropout and shape.dropout_at_prediction):
            return np.asarray(np.maximum(rows.values @ self._weights()[0].T, 0.0))
        rows = dropped(rows, everybody, PREDICTION_COINS, shape.dropout)
        kept = dropped_units(everybody, shape.hidden, PREDICTION_COINS, shape.dropout)
        return np.asarray(np.maximum(rows.values @ self._weights()[0].T, 0.0) * kept)

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        shape = self.shape
        first = self.parameters[: shape.hidden * shape.inputs].reshape(shape.hidden, shape.inputs)
        return first, self.parameters[shape.hidden * shape.inputs :].reshape(shape.classes, shape.hidden)

    def inputs(self, graph: Graph, index: np.ndarray | None = None) -> SparseRows:
        """What the layers read (of the nodes in ``index``)."""
        shape = self.shape
        if shape.projection or not graph.features:
            return SparseRows(sp.csr_matrix(projected_rows(graph, shape.projection, shape.key, index)))
        rows = graph.rows if index is None else graph.rows.take(index)
        if not isinstance(rows, SparseRows):
            rows = SparseRows(sp.csr_matrix(rows.matmul(tensor(np.eye(graph.features))).numpy()))
        return rows if shape.raw else cast(SparseRows, unit_rows(rows))

    def config(self) -> dict[str, Any]:
        return {"kind": "two-layers", **asdict(self.shape)}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"parameters": self.parameters}


@dataclass(frozen=True)
class Walk:
    """Power iteration: ``L <- (1 - a) D^-1 A L + a L_0``, self-loops included.

    Trained inductively, edges from or to training and calibration nodes are left out. The paper's figures are of this kind, on
    a test graph it declares unprotected.
    """

    teleport: float
    propagation: int
    inductive: bool

    def along(self, graph: Graph, own: np.ndarray) -> np.ndarray:
        if self.propagation == 0:
            return own
        senders, receivers = graph.lists.edge_index()
        if self.inductive:
            trained = graph.masks["train"] | graph.masks["calibration"]
            keep = trained[senders] == trained[receivers]
            senders, receivers = senders[keep], receivers[keep]
        matrix = sp.csr_matrix((np.ones(senders.size), (receivers, senders)), shape=(graph.nodes, graph.nodes))
        matrix = matrix + sp.eye(graph.nodes, format="csr")
        steps = sp.diags(1 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix
        scores = own
        for _ in range(self.propagation):
            scores = (1 - self.teleport) * (steps @ scores) + self.teleport * own
        return scores


@dataclass
class RankedPredictor:
    """What is released: a predictor on own rows. ``graph_logits`` also reads the edges of a public graph."""

    own: OwnPredictor | TwoLayers
    walk: Walk
    transfers = True

    def logits(self, graph: Graph) -> np.ndarray:
        return self.own.logits(graph)

    def graph_logits(self, graph: Graph) -> np.ndarray:
        return self.walk.along(graph, self.logits(graph))

    def config(self) -> dict[str, Any]:
        return {"own": self.own.config(), "walk": asdict(self.walk)}

    def arrays(self) -> dict[str, np.ndarray]:
        return self.own.arrays()

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> RankedPredictor:
        own = dict(config["own"])
        linear = own.pop("kind") == "own"
        restored = OwnPredictor.restore(own, arrays) if linear else TwoLayers(Shape(**own), arrays["parameters"])
        return cls(restored, Walk(**config["walk"]))
