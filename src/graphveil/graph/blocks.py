"""Records in blocks: what a query reads at a time, from memory or from disk alike.

A block holds the records of some slots in a row: their features, labels, public kinds and own contact lists, and nobody else's.
Features and lists are read when they are asked for, so that a query that needs no lists reads none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphveil.graph.graph import Graph
    from graphveil.graph.lists import OwnLists
    from graphveil.graph.rows import DenseRows, SparseRows

SIZE = 65536
"""Records of a block where the storage does not say otherwise."""


def spans(records: int, size: int = SIZE) -> tuple[slice, ...]:
    """The slots of every block."""
    return tuple(slice(first, min(first + size, records)) for first in range(0, records, size))


class Block:
    """The records in ``slots``."""

    def __init__(self, graph: Graph, slots: slice) -> None:
        self.slots, self.classes, self._graph = slots, graph.classes, graph

    def __len__(self) -> int:
        return int(self.slots.stop - self.slots.start)

    @cached_property
    def rows(self) -> DenseRows | SparseRows:
        return self._graph.rows.block(self.slots)

    @cached_property
    def lists(self) -> OwnLists:
        return self._graph.lists.block(self.slots)

    @cached_property
    def labels(self) -> np.ndarray:
        return self._graph.labels[self.slots]

    @cached_property
    def masks(self) -> Mapping[str, np.ndarray]:
        return {kind: mask[self.slots] for kind, mask in self._graph.masks.items()}

    @cached_property
    def present(self) -> np.ndarray:
        """Whether a slot holds a record, by that record alone (:attr:`Graph.present`)."""
        return self._graph.present_in(self.rows, self.labels, self.masks)


def whole(graph: Graph) -> Block:
    """All records as one block, for whoever does not go block by block."""
    return Block(graph, slice(0, graph.nodes))
