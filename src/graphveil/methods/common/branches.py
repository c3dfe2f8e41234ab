"""What a fit leaves behind as networks and tables, and the classifier on own features and released tables.

It has one branch per input, joined by a hidden layer or simply added. ``hidden > 0``: the papers' two-layer head. ``hidden = 0``:
softmax regression on all inputs, which needs fewer numbers and so less of the noise; the default wherever gradients are private
(``benchmarks/central.yaml`` measures it).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.graph.unit import unit_array, unit_rows
from graphveil.methods.common.own_predictor import centred
from graphveil.methods.common.private_training import parameter_count
from graphveil.methods.mlp import input_width, raw_inputs


def branch_parameters(inputs: Sequence[int], hidden: int, classes: int) -> int:
    """How many numbers :func:`branch_network` has."""
    if not hidden:
        return parameter_count(*((width, classes) for width in inputs), bias=False)
    return parameter_count(*((width, hidden) for width in inputs), (len(inputs) * hidden, classes))


def branch_network(inputs: Sequence[int], hidden: int, classes: int) -> learn.Network:
    """A network that reads one block of each of these widths."""
    if not hidden:
        return learn.SummedBranches(inputs, classes)
    return learn.Branches([(width, hidden) for width in inputs], (classes,), normalise=False)


class ReleasedNumbers(ABC):
    """Networks of public shape, by how the names of their parameters begin, and released tables by name."""

    shaped: ClassVar[type[Any]]

    def __init__(self, shape: Any, networks: dict[str, Any], tables: dict[str, np.ndarray] | None = None) -> None:
        self.shape, self.networks, self.tables = shape, networks, tables or {}

    @classmethod
    @abstractmethod
    def build(cls, shape: Any) -> Self:
        """Networks of this shape, before they are trained."""

    def own_inputs(self, graph: Graph) -> Any:
        """Everybody's own row: centred and of unit length, or the features as they are where the paper's code is followed."""
        if getattr(self.shape, "raw", False):
            return raw_inputs(graph)
        return centred(graph, self.tables.get("centre", np.zeros(graph.features)))

    @property
    def slot_arrays(self) -> tuple[str, ...]:
        """Every table but the centre has a row for each slot."""
        return tuple(name for name in self.tables if name != "centre")

    def config(self) -> dict[str, Any]:
        return asdict(self.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        states = [(start, network.state()) for start, network in self.networks.items()]
        return {start + name: value for start, state in states for name, value in state.items()} | self.tables

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        predictor = cls.build(cls.shaped(**config))
        predictor.tables = {name: value for name, value in arrays.items() if "layer" not in name}
        for start, network in predictor.networks.items():
            named = ((name.removeprefix(start), value) for name, value in arrays.items() if name.startswith(start))
            network.load({name: value for name, value in named if name.startswith("layer")})
        return predictor


@dataclass(frozen=True)
class BranchShape:
    """Public sizes: ``width`` of each of the ``tables``, ``hidden`` per branch (0: none); ``raw``: features as they are."""

    features: int
    classes: int
    width: int
    hidden: int
    tables: int = 1
    raw: bool = False

    @property
    def inputs(self) -> tuple[int, ...]:
        return input_width(self.features, self.raw), *[self.width] * self.tables

    @property
    def size(self) -> int:
        return branch_parameters(self.inputs, self.hidden, self.classes)


class BranchPredictor(ReleasedNumbers):
    """Released numbers: centre, tables (one row per node) and the classifier on them and own features."""

    shaped: ClassVar[type[Any]] = BranchShape

    @classmethod
    def build(cls, shape: Any) -> Self:
        return cls(shape, {"": branch_network(shape.inputs, shape.hidden, shape.classes)})

    def inputs(self, graph: Graph) -> tuple[Any, ...]:
        """Own features, and the released rows."""
        import torch

        names = sorted((name for name in self.tables if name.startswith("table")), key=lambda name: (len(name), name))
        return self.own_inputs(graph), *(torch.from_numpy(self.tables[name]) for name in names)

    def logits(self, graph: Graph) -> np.ndarray:
        return np.asarray(self.networks[""](self.inputs(graph)).numpy())


def projected_rows(graph: Graph, width: int, key: int, index: np.ndarray | None = None) -> np.ndarray:
    """Dense unit rows (of the nodes in ``index``): a public random projection of the unit features; no ``width``: themselves."""
    import torch

    rows = graph.rows if index is None else graph.rows.take(index)
    if not graph.features:
        return np.zeros((rows.shape[0], width or 1))
    if not width:
        return unit_rows(rows).matmul(torch.eye(graph.features, dtype=torch.float64)).numpy()
    matrix = np.random.default_rng(key).normal(size=(graph.features, width))
    return unit_array(unit_rows(rows).matmul(torch.from_numpy(matrix)).numpy())
