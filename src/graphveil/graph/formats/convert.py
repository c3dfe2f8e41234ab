"""NetworkX and SciPy in and out. PyG ``Data`` is the common form; files are in :mod:`graphveil.graph.formats.npz`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph.formats.npz import NAMES, both_directions, undirected_pairs
from graphveil.graph.graph import MASKS, UNLABELLED
from graphveil.graph.layout import features_tensor, is_dense, scipy_features

if TYPE_CHECKING:
    import networkx  # type: ignore[import-untyped]

_PUBLIC = ("num_classes", "notes", "name", *NAMES)


def to_networkx(data: Data) -> networkx.Graph:
    """A NetworkX graph that :func:`from_networkx` turns back into equal data.

    Node attributes: ``x`` (the non-zero features as ``{column: value}``), ``y`` (absent if unlabelled), ``id`` and the masks;
    graph attributes: the width and the declared facts. Data that know their arcs give a ``DiGraph``, with the
    attribute ``directed=False`` if their usual view is undirected.
    """
    import networkx

    directed = bool(data.get("directed") or False)
    arcs = data.get("directed_edge_index")
    graph = networkx.DiGraph() if directed or arcs is not None else networkx.Graph()
    x = scipy_features(data)
    graph.graph |= {key: data[key] for key in _PUBLIC if key in data}
    graph.graph |= {"features": x.shape[1], "directed": directed, "labelled": data.get("y") is not None}
    graph.graph["dense"] = is_dense(data)
    masks = {name: data[name].numpy() for name in MASKS if data.get(name) is not None}
    labels = data.y.numpy() if data.get("y") is not None else np.full(x.shape[0], UNLABELLED)
    ids = None if data.get("ids") is None else np.asarray(data.ids).tolist()
    for node in range(x.shape[0]):
        row = slice(x.indptr[node], x.indptr[node + 1])
        attributes: dict[str, Any] = {"x": dict(zip(x.indices[row].tolist(), x.data[row].tolist(), strict=True))}
        attributes |= {name: mask[node].tolist() for name, mask in masks.items()}
        if labels[node] != UNLABELLED:
            attributes["y"] = int(labels[node])
        if ids is not None:
            attributes["id"] = ids[node]
        graph.add_node(node, **attributes)
    pairs = (data.edge_index if arcs is None or directed else arcs).numpy()
    graph.add_edges_from(pairs.T.tolist())
    return graph


def from_networkx(
    graph: networkx.Graph, *, label: str = "y", features: str | Sequence[str] = "x", classes: int | None = None
) -> Data:
    """PyG ``Data`` of any NetworkX graph; nodes are numbered in the order of ``graph.nodes``, their names become ids.

    Nodes without the attribute ``label`` (a class number) are unlabelled. ``features`` is one attribute that holds a
    row (a sequence, an array, or ``{column: value}``), or the names of several numeric attributes, one per column.
    ``classes`` is by default the graph's own attribute ``num_classes``.
    """
    number = {node: index for index, node in enumerate(graph.nodes)}
    arcs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2).T
    first: Mapping[str, Any] = next((attributes for _, attributes in graph.nodes(data=True)), {})
    columns = isinstance(features, str) and isinstance(first.get(features), Mapping)
    directed = bool(graph.graph.get("directed", graph.is_directed()))
    data = _data(arcs, _networkx_features(graph, features), directed, dense=bool(graph.graph.get("dense", not columns)))
    if graph.is_directed() and not data.directed:
        data.directed_edge_index = torch.from_numpy(np.ascontiguousarray(arcs))
    if graph.graph.get("labelled", True):
        labels = [attributes.get(label) for _, attributes in graph.nodes(data=True)]
        data.y = torch.from_numpy(_labels(labels, label))
    for name in MASKS:
        if name in first:
            data[name] = torch.tensor([bools for _, bools in graph.nodes(data=name)], dtype=torch.bool)
    for key in _PUBLIC:
        if key in graph.graph:
            data[key] = graph.graph[key]
    if "id" in first:
        data.ids = [name for _, name in graph.nodes(data="id")]
    elif list(graph.nodes) != list(range(len(graph))):  # names, and not only places
        data.ids = [str(node) for node in graph.nodes]
    if classes is not None:
        data.num_classes = classes
    return data


def from_scipy(
    adjacency: sp.spmatrix | sp.sparray,
    features: sp.spmatrix | sp.sparray | np.ndarray | None = None,
    labels: np.ndarray | None = None,
    *,
    directed: bool = False,
    classes: int | None = None,
) -> Data:
    """PyG ``Data`` of an adjacency matrix: a non-zero entry ``(u, v)`` is an arc from ``u`` to ``v``.

    Weights are dropped. Unless ``directed``, both directions of every entry are added. ``labels`` are integers, -1
    where there is none.
    """
    matrix = sp.coo_matrix(adjacency)
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the adjacency matrix has shape {matrix.shape}: give a square one")
    nodes = matrix.shape[0]
    kept = matrix.data != 0
    arcs = np.stack([matrix.row[kept], matrix.col[kept]]).astype(np.int64)
    x = sp.csr_matrix((nodes, 0), dtype=np.float32) if features is None else sp.csr_matrix(features)
    if x.shape[0] != nodes:
        raise InputError(f"{x.shape[0]} feature rows for {nodes} nodes: give one row per node")
    data = _data(arcs, x, directed, dense=not sp.issparse(features))
    if labels is not None:
        labels = np.asarray(labels)
        if labels.shape != (nodes,) or labels.dtype.kind not in "iu":
            raise InputError(f"labels must be {nodes} integers, -1 where there is none")
        data.y = torch.from_numpy(labels.astype(np.int64))
    if classes is not None:
        data.num_classes = classes
    return data


def _data(arcs: np.ndarray, x: sp.csr_matrix, directed: bool, *, dense: bool = True) -> Data:
    """Features are held as they were given, whatever they are."""
    nodes = x.shape[0]
    pairs = arcs if directed else both_directions(undirected_pairs(arcs, nodes), nodes)
    data = Data(x=features_tensor(x, dense), edge_index=torch.from_numpy(np.ascontiguousarray(pairs)))
    data.num_nodes, data.directed = nodes, directed
    return data


def to_scipy_graph(data: Data) -> tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray | None]:
    """Adjacency (0/1, row to column), features and labels of ``data``: the inverse of :func:`from_scipy`."""
    nodes = int(data.num_nodes)
    ones = np.ones(data.edge_index.shape[1], dtype=bool)
    adjacency = sp.coo_matrix((ones, tuple(data.edge_index.numpy())), shape=(nodes, nodes)).tocsr()
    return adjacency, scipy_features(data), None if data.get("y") is None else data.y.numpy()


def _networkx_features(graph: networkx.Graph, features: str | Sequence[str]) -> sp.csr_matrix:
    names = [features] if isinstance(features, str) else list(features)
    indptr, indices, values = [0], [], []
    width = int(graph.graph.get("features", 0)) if isinstance(features, str) else len(names)
    for node, attributes in graph.nodes(data=True):
        row = attributes.get(names[0], {}) if isinstance(features, str) else [attributes.get(name) for name in names]
        try:
            entries = row.items() if isinstance(row, Mapping) else enumerate(np.asarray(row, dtype=np.float64).tolist())
            for column, value in entries:
                if value:
                    indices.append(int(column))
                    values.append(float(value))
        except (TypeError, ValueError):
            raise InputError(f"node {node!r} has no numeric features in {', '.join(names)}: give numbers") from None
        indptr.append(len(indices))
        width = max(width, len(row) if not isinstance(row, Mapping) else max(row, default=-1) + 1)
    return sp.csr_matrix((np.array(values, dtype=np.float32), indices, indptr), shape=(len(graph), width))


def _labels(values: list[Any], name: str) -> np.ndarray:
    for value in values:
        if value is not None and not isinstance(value, int | np.integer):
            raise InputError(f"node attribute {name!r} is {value!r}: number the classes from 0")
    return np.array([UNLABELLED if value is None else value for value in values], dtype=np.int64)
