"""A validated graph: what every method reads, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.graph.blocks import Block, spans
from graphveil.graph.lists import Lists
from graphveil.graph.rows import DenseRows, RecordRows, Rows, SparseRows, tensor

UNLABELLED = -1
MASK_OF = {"train": "train_mask", "calibration": "val_mask", "query": "test_mask"}
"""PyG's mask of every public kind of record; the kinds are disjoint."""
MASKS = tuple(MASK_OF.values())


@dataclass(frozen=True, eq=False)
class Graph:
    """One record per node: a feature row, a label, an own contact list; plus the public facts.

    Attributes:
        rows: float64 feature rows, all finite.
        labels: int64, ``-1`` where there is none.
        lists: everybody's contact lists.
        masks: boolean array per kind of record (:data:`MASK_OF`), pairwise disjoint. Public.
        classes: number of classes. Public, declared or noted in ``notes``.
        directed: whether one friendship is one arc (else it is two). Public, declared.
        notes: assumptions a certificate has to print.
        ids: who is in which slot, as text, where the data say so. Never published.
        class_names: what the classes are called, where the data say so. Public, declared.
    """

    rows: RecordRows
    labels: np.ndarray
    lists: Lists
    masks: Mapping[str, np.ndarray]
    classes: int
    directed: bool = False
    notes: tuple[str, ...] = field(default=())
    ids: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        masks = [np.asarray(self.masks[kind]) for kind in MASK_OF]
        if any(mask.dtype != bool or mask.shape != (self.nodes,) for mask in masks):
            raise InputError(f"every mask must be a boolean array of length {self.nodes}")
        if np.sum(masks, axis=0).max(initial=0) > 1:
            raise InputError("a node is in two masks: train, calibration and query nodes must be disjoint")

    @property
    def nodes(self) -> int:
        return self.rows.shape[0]

    @property
    def features(self) -> int:
        return self.rows.shape[1]

    @cached_property
    def present(self) -> np.ndarray:
        """Whether a slot holds a record: some feature is not zero, or it is a labelled train or calibration node.

        A function of the node's own record (and the public masks) alone, so blanking one record changes one entry.
        Absent slots must contribute nothing to any sum.
        """
        return self.present_in(self.rows, self.labels, self.masks)

    @staticmethod
    def present_in(rows: Rows, labels: np.ndarray, masks: Mapping[str, np.ndarray]) -> np.ndarray:
        """:attr:`present` of these records."""
        learning = masks["train"] | masks["calibration"]
        return np.asarray(rows.occupied().numpy() | (learning & (labels != UNLABELLED)))

    @property
    def on_disk(self) -> bool:
        """Whether features and lists can only be read block by block."""
        return hasattr(type(self.rows), "spans")

    @property
    def spans(self) -> tuple[slice, ...]:
        """The slots of every block."""
        return self.rows.spans if self.on_disk else spans(self.nodes)  # type: ignore[attr-defined,no-any-return]

    def blocks(self) -> Iterator[Block]:
        """All records, in the order of their slots; each block is made when its turn comes, so that none is kept."""
        return (Block(self, slots) for slots in self.spans)

    def without_lists(self) -> Graph:
        """The same records with empty contact lists."""
        return replace(self, lists=Lists.from_edge_index(np.zeros((2, 0), dtype=np.int64), self.nodes))

    def reordered(self, order: np.ndarray) -> Graph:
        """The same graph with node ``order[i]`` in slot i."""
        place = np.empty(self.nodes, dtype=np.int64)
        place[order] = np.arange(self.nodes)
        return Graph(
            rows=self.rows.take(order),
            labels=self.labels[order],
            lists=Lists.from_edge_index(place[self.lists.edge_index()], self.nodes),
            masks={kind: mask[order] for kind, mask in self.masks.items()},
            classes=self.classes,
            directed=self.directed,
            notes=self.notes,
            ids=None if self.ids is None else self.ids[order],
            class_names=self.class_names,
        )

    def placed(self, slots: np.ndarray, size: int) -> Graph:
        """The same people in these slots of ``size``, for predictions that read a node's own row and list and nobody else's row.

        Slots without a person hold no label and an empty list; what features they hold is nobody's business and read by nobody.
        """
        order = np.zeros(size, dtype=np.int64)
        order[slots] = np.arange(self.nodes)
        taken = np.zeros(size, dtype=bool)
        taken[slots] = True
        return Graph(
            rows=self.rows.take(order),
            labels=np.where(taken, self.labels[order], UNLABELLED),
            lists=Lists.from_edge_index(slots[self.lists.edge_index()], size),
            masks={kind: mask[order] & taken for kind, mask in self.masks.items()},
            classes=self.classes,
            directed=self.directed,
            notes=self.notes,
            class_names=self.class_names,
        )

    def __repr__(self) -> str:
        kinds = ", ".join(f"{kind} {int(self.masks[kind].sum())}" for kind in MASK_OF)
        size = f"{self.nodes} nodes, {self.lists.arcs} arcs, {self.features} features, {self.classes} classes"
        return f"Graph({size}; {kinds})"


def blanked(graph: Graph, gone: np.ndarray) -> Graph:
    """The zero-out world of several people: no features, label or contacts for anybody under the mask ``gone``."""
    gone = np.asarray(gone, dtype=bool)
    rows: DenseRows | SparseRows
    if isinstance(graph.rows, SparseRows):
        rows = SparseRows(sp.diags((~gone).astype(np.float64)) @ graph.rows.values)
    elif isinstance(graph.rows, DenseRows):
        rows = DenseRows(graph.rows.values.masked_fill(tensor(gone)[:, None], 0.0))
    else:
        raise TypeError(f"cannot blank rows of {type(graph.rows).__name__}")
    arcs = graph.lists.edge_index()
    lists = Lists.from_edge_index(arcs[:, ~gone[arcs].any(axis=0)], graph.nodes)
    return replace(graph, rows=rows, labels=np.where(gone, UNLABELLED, graph.labels), lists=lists)
