"""From a PyG ``Data`` object to a :class:`Graph`: everything a method may rely on is checked here, once.

Public facts (``num_classes``, ``directed``, the masks) are taken as declared on ``data``; none is read off private
values, except the number of classes if it is missing, and then the graph carries a note saying so.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.errors import FOR_THE_OPERATOR, DataWarning, InputError
from graphveil.graph.graph import MASK_OF, MASKS, UNLABELLED, Graph
from graphveil.graph.ids import read_ids
from graphveil.graph.layout import to_scipy
from graphveil.graph.lists import Lists
from graphveil.graph.rows import DenseRows, SparseRows

BadRows = Literal["raise", "zero"]

INFERRED_CLASSES = (
    "number of classes inferred from the labels: declare data.num_classes, it is not covered by the promise"
)
ZEROED_ROWS = "rows with non-finite features, if any, were blanked and count as absent; their number is not published"


def validate(data: Data, *, on_bad_rows: BadRows = "raise", need_training: bool = True) -> Graph:
    """Check ``data`` and return the graph, or raise an :class:`InputError`: what is wrong, where and what to do.

    ``data`` has ``x`` dense or sparse (missing: no features), ``y`` integers with -1 for "no label", ``edge_index``
    ``(2, arcs)`` of senders and receivers, boolean ``train_mask``, ``val_mask``, ``test_mask``, and the public facts
    ``num_classes`` and ``directed`` (not declared: undirected, the conservative reading). ``on_bad_rows="zero"`` blanks
    rows with NaN or infinity (features 0, no label, absent). Masks are public and stay as declared: unlabelled nodes
    inside them are warned about, and simply contribute nothing. Prediction does not need training nodes. ``ids``, if
    there are any (numbers or text, one per node), say who is who when later data come in another order.
    """
    if on_bad_rows not in ("raise", "zero"):
        raise InputError(f"on_bad_rows is {on_bad_rows!r}: give 'raise' or 'zero'")
    if not isinstance(data, Data):
        raise InputError(f"data is a {type(data).__name__}: give a torch_geometric.data.Data object")
    nodes = _node_count(data)
    rows, bad = _rows(data.x, nodes, on_bad_rows)
    masks = {kind: _mask(data, name, nodes) for kind, name in MASK_OF.items()}
    _check_masks(masks, need_training)
    labels = _labels(data.y, nodes)
    classes, notes = _classes(data, labels)
    if on_bad_rows == "zero":
        labels = np.where(bad, UNLABELLED, labels)
        notes = (*notes, ZEROED_ROWS)
    _warn_unlabelled(labels, masks)
    declared = data.notes if "notes" in data else ()
    declared = (declared,) if isinstance(declared, str) else tuple(declared)
    return Graph(
        rows=rows,
        labels=labels,
        lists=_lists(data.edge_index, nodes),
        masks=masks,
        classes=classes,
        directed=bool(data.directed) if "directed" in data else False,
        notes=(*declared, *notes),
        ids=read_ids(data.get("ids"), nodes),
        class_names=_class_names(data.get("class_names"), classes),
    )


def check_graph(graph: Graph) -> Graph:
    """Refuse a graph that was built by hand and in which somebody could count for more than one.

    Lists are sets of other people: a contact that is listed twice is sent two messages of weight d^(-1/2), 2^(1/2) in all for
    d = 2, where Lemma M has 1. A feature that is stored twice is added up in products, but its squares are in norms: a row of
    norm 2 passes as 2^(1/2). A row that is not finite has no norm to be clipped by. Files and ``Data`` cannot hold any of these
    (lists of a folder are checked as they are read).
    """
    if graph.lists.nodes != graph.nodes or len(graph.labels) != graph.nodes:
        raise InputError(
            f"the graph has {graph.nodes} rows, {graph.lists.nodes} lists and {len(graph.labels)} labels: give one of each "
            "per node"
        )
    rows = graph.rows
    held = (
        rows.values.data
        if isinstance(rows, SparseRows)
        else rows.values.numpy()
        if isinstance(rows, DenseRows)
        else 0.0
    )
    if not np.isfinite(held).all():
        raise InputError("graph.rows has a feature that is not finite: its row would have no norm to be clipped by")
    if isinstance(graph.lists, Lists):
        contacts = _pattern(graph.lists.matrix, "lists")
        if (twice := _twice(contacts)) is not None:
            raise InputError(f"graph.lists has node {twice[0]} twice in the list of node {twice[1]}: {_LISTS_AGAIN}")
        if (own := contacts.diagonal()).any():
            raise InputError(f"graph.lists has node {int(own.argmax())} in its own list: {_LISTS_AGAIN}")
    if isinstance(graph.rows, SparseRows) and (twice := _twice(_pattern(graph.rows.values, "rows"))) is not None:
        raise InputError(
            f"graph.rows has column {twice[1]} of row {twice[0]} twice: merge them with sum_duplicates() of its matrix"
        )
    return graph


_LISTS_AGAIN = "make the lists with Lists.from_edge_index"


def _pattern(matrix: sp.csr_matrix, name: str) -> sp.csr_matrix:
    """Where ``matrix`` has entries, whatever their values and whatever it says of itself."""
    try:
        places = (np.ones(len(matrix.indices), dtype=bool), matrix.indices, matrix.indptr)
        pattern = sp.csr_matrix(places, shape=matrix.shape)
        pattern.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"graph.{name} holds no valid CSR matrix: {error}") from None
    return pattern if pattern.has_canonical_format else pattern.sorted_indices()


def _twice(pattern: sp.csr_matrix) -> tuple[int, int] | None:
    """Row and column of the first entry that comes twice."""
    if pattern.has_canonical_format:
        return None
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    first = int(((rows[1:] == rows[:-1]) & (pattern.indices[1:] == pattern.indices[:-1])).argmax())
    return int(rows[first]), int(pattern.indices[first])


def _node_count(data: Data) -> int:
    if data.x is not None:
        if data.x.dim() != 2:
            raise InputError(
                f"data.x has shape {tuple(data.x.shape)}: give one row of features per node (2 dimensions)"
            )
        return int(data.x.shape[0])
    for name in ("y", *MASKS):
        if isinstance(data.get(name), Tensor) and data[name].dim() > 0:
            return int(data[name].shape[0])
    declared = data.get("num_nodes")
    if declared is None:
        raise InputError("the number of nodes is unknown: set data.x or data.num_nodes")
    return int(declared)


def _rows(x: Tensor | None, nodes: int, on_bad_rows: BadRows) -> tuple[DenseRows | SparseRows, np.ndarray]:
    if x is None:
        return DenseRows(torch.zeros((nodes, 0), dtype=torch.float64)), np.zeros(nodes, dtype=bool)
    if x.is_complex():
        raise InputError("data.x is complex: give real features")
    if x.layout == torch.strided:
        dense = x.detach().to(device="cpu", dtype=torch.float64)
        bad = ~torch.isfinite(dense.sum(dim=1)).numpy()  # a finite sum has finite parts, but large ones may overflow
        bad[bad] = ~torch.isfinite(dense[torch.from_numpy(bad)]).all(dim=1).numpy()
        _refuse(bad, on_bad_rows)
        if bad.any():
            dense = dense.clone()
            dense[torch.from_numpy(bad)] = 0.0
        return DenseRows(dense), bad
    matrix = to_scipy(x)
    matrix = sp.csr_matrix((matrix.data.astype(np.float64), matrix.indices, matrix.indptr), shape=matrix.shape)
    owners = np.repeat(np.arange(nodes), np.diff(matrix.indptr))
    bad = np.zeros(nodes, dtype=bool)
    bad[owners[~np.isfinite(matrix.data)]] = True
    _refuse(bad, on_bad_rows)
    if bad.any():
        matrix.data = np.where(bad[owners], 0.0, matrix.data)
        matrix.eliminate_zeros()
    return SparseRows(matrix), bad


def _refuse(bad: np.ndarray, on_bad_rows: BadRows) -> None:
    if on_bad_rows == "raise" and bad.any():
        raise InputError(
            f"data.x has NaN or infinite values in {int(bad.sum())} rows, first in row {int(bad.argmax())}: "
            "repair them, or pass on_bad_rows='zero' (--on-bad-rows zero) to treat these rows as absent"
        )


def _mask(data: Data, name: str, nodes: int) -> np.ndarray:
    mask = data.get(name)
    if mask is None:
        return np.zeros(nodes, dtype=bool)
    mask = torch.as_tensor(mask)
    if mask.dim() == 2 and mask.shape[0] == nodes:
        raise InputError(f"data.{name} holds {mask.shape[1]} splits: choose one, e.g. data.{name}[:, 0]")
    if mask.dtype != torch.bool:
        raise InputError(f"data.{name} has type {_type(mask)}: give a boolean mask")
    if tuple(mask.shape) != (nodes,):
        raise InputError(f"data.{name} has shape {tuple(mask.shape)} for {nodes} nodes: give one entry per node")
    return mask.cpu().numpy()


def _check_masks(masks: dict[str, np.ndarray], need_training: bool) -> None:
    for first, second in combinations(masks, 2):
        shared = masks[first] & masks[second]
        if shared.any():
            raise InputError(
                f"data.{MASK_OF[first]} and data.{MASK_OF[second]} share {int(shared.sum())} nodes, first "
                f"node {int(shared.argmax())}: masks must be disjoint"
            )
    if need_training and not masks["train"].any():
        raise InputError("no training nodes: set data.train_mask, e.g. with graphveil.random_split(data, seed=0)")


def _labels(y: Tensor | None, nodes: int) -> np.ndarray:
    if y is None:
        return np.full(nodes, UNLABELLED, dtype=np.int64)
    y = torch.as_tensor(y)
    if y.dim() == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.dim() != 1:
        raise InputError(f"data.y has shape {tuple(y.shape)}: give one class per node (no multi-label targets)")
    if y.shape[0] != nodes:
        raise InputError(f"data.y has {y.shape[0]} labels for {nodes} nodes: give one per node, -1 where there is none")
    if y.is_floating_point() or y.is_complex():
        raise InputError(f"data.y has type {_type(y)}: give integer class numbers, -1 where there is none")
    return y.detach().cpu().numpy().astype(np.int64)


def _classes(data: Data, labels: np.ndarray) -> tuple[int, tuple[str, ...]]:
    low = labels < UNLABELLED
    if low.any():
        first = int(low.argmax())
        raise InputError(f"data.y[{first}] is {labels[first]}: classes start at 0, and -1 stands for no label")
    declared = data.get("num_classes")
    if declared is None:
        if labels.size == 0 or labels.max() < 0:
            raise InputError("data has no labels: set data.y and data.num_classes")
        return int(labels.max()) + 1, (INFERRED_CLASSES,)
    if int(declared) != declared or declared < 1:
        raise InputError(f"data.num_classes is {declared}: give a positive integer")
    high = labels >= declared
    if high.any():
        first = int(high.argmax())
        raise InputError(
            f"data.y[{first}] is {labels[first]}, outside 0..{int(declared) - 1}: correct data.y or data.num_classes"
        )
    return int(declared), ()


def _class_names(names: Sequence[object] | None, classes: int) -> tuple[str, ...] | None:
    """What the classes are called; names that do not fit their number are left out."""
    known = () if names is None else tuple(map(str, names))
    return known if len(known) == classes else None


def _warn_unlabelled(labels: np.ndarray, masks: dict[str, np.ndarray]) -> None:
    missing = labels == UNLABELLED
    where = ", ".join(kind for kind, mask in masks.items() if (missing & mask).any())
    if where:
        message = f"unlabelled nodes inside the masks ({where}) teach nothing and are left out of every accuracy"
        warnings.warn(f"{message} {FOR_THE_OPERATOR}", DataWarning, stacklevel=3)
    if (missing & ~np.logical_or.reduce(list(masks.values()))).any():
        warnings.warn(f"unlabelled nodes are in no mask {FOR_THE_OPERATOR}", DataWarning, stacklevel=3)


def _lists(edge_index: Tensor | None, nodes: int) -> Lists:
    if edge_index is None:
        raise InputError(
            "data.edge_index is missing: give the arcs, or an empty (2, 0) tensor for a graph without edges"
        )
    edge_index = torch.as_tensor(edge_index)
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise InputError(f"data.edge_index has shape {tuple(edge_index.shape)}: give (2, arcs), senders and receivers")
    if edge_index.is_floating_point() or edge_index.is_complex() or edge_index.dtype == torch.bool:
        raise InputError(f"data.edge_index has type {_type(edge_index)}: give integer node numbers")
    arcs = edge_index.detach().cpu().numpy()
    outside = ((arcs < 0) | (arcs >= nodes)).any(axis=0)
    if outside.any():
        first = int(outside.argmax())
        raise InputError(
            f"data.edge_index has {int(outside.sum())} arcs with nodes outside 0..{nodes - 1}, first arc {first} "
            f"({arcs[0, first]}, {arcs[1, first]}): correct the node numbers"
        )
    lists = Lists.from_edge_index(arcs, nodes)
    if lists.duplicates or lists.self_loops:
        what = [
            name for name, count in (("duplicate arcs", lists.duplicates), ("self-loops", lists.self_loops)) if count
        ]
        warnings.warn(f"removed {' and '.join(what)} {FOR_THE_OPERATOR}", DataWarning, stacklevel=3)
    return lists


def _type(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
