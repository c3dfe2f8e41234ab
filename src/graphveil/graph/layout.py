"""Between the arrays of a graph file (:mod:`graphveil.graph.formats.npz`) and PyG ``Data``: nothing is lost either way."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph.graph import UNLABELLED
from graphveil.graph.validate import to_scipy

Arrays = Mapping[str, np.ndarray]

DENSE_FROM = 0.1
"""Share of non-zeros from which features become a dense tensor. It is measured on the file: a choice made for public
benchmark files. It changes time and memory only, never a result, and those are not part of a promise."""

MASKS = ("train_mask", "val_mask", "test_mask")
NAMES = ("class_names", "feature_names", "genre_names")


def data_from_arrays(arrays: Arrays, *, directed: bool | None = None) -> Data:
    """PyG ``Data`` with both directions of every undirected edge, or the arcs as they are if ``directed``.

    Official splits have PyG's shape (``[n]``, or ``[n, splits]``); unlabelled nodes get ``y = -1``. If the file has
    arcs but the undirected view is asked for, they stay available as ``directed_edge_index``, so that nothing is lost.
    """
    nodes = int(arrays["x_shape"][0])
    stored = bool(arrays["directed"]) if "directed" in arrays else False
    directed = stored if directed is None else directed
    arcs = arrays.get("directed_edge_index")
    if directed and arcs is None:
        raise InputError("this graph is undirected: directed=True needs a file with directed_edge_index")
    pairs = arcs if directed else both_directions(arrays["edge_index"], nodes)
    data = Data(x=_features(arrays), edge_index=torch.from_numpy(np.ascontiguousarray(pairs, dtype=np.int64)))
    data.num_nodes = nodes
    data.directed = directed
    if "num_classes" in arrays:
        data.num_classes = int(arrays["num_classes"])
    if "y" in arrays:
        labels = arrays["y"].astype(np.int64)
        labels[arrays.get("unlabeled_nodes", np.empty(0, dtype=np.int64))] = UNLABELLED
        data.y = torch.from_numpy(labels)
    for name in MASKS:
        if name in arrays:
            data[name] = torch.from_numpy(np.ascontiguousarray(arrays[name].T))
    for name in NAMES:
        if name in arrays:
            data[name] = [str(value) for value in arrays[name]]
    if arcs is not None and not directed:
        data.directed_edge_index = torch.from_numpy(arcs.astype(np.int64))
    if "notes" in arrays:
        data.notes = tuple(str(note) for note in arrays["notes"])
    return data


def arrays_from_data(data: Data) -> dict[str, np.ndarray]:
    """The layout of ``data``: the inverse of :func:`data_from_arrays`."""
    nodes = int(data.num_nodes)
    pairs = data.edge_index.numpy()
    directed = bool(data.get("directed") or False)
    if not directed and not np.array_equal(unique_arcs(pairs, nodes), unique_arcs(pairs[::-1], nodes)):
        raise InputError(
            "data.edge_index has arcs without their reverse but data is not declared directed: set data.directed = "
            "True, or add them with torch_geometric.utils.to_undirected"
        )
    arcs = pairs if directed else data.directed_edge_index.numpy() if "directed_edge_index" in data else None
    arrays: dict[str, np.ndarray] = {"edge_index": undirected_pairs(pairs, nodes)}
    if arcs is not None:
        arrays["directed_edge_index"] = unique_arcs(arcs, nodes)
    arrays |= feature_arrays(scipy_features(data))
    if data.get("y") is not None:
        labels = data.y.numpy().astype(np.int64)
        arrays |= label_arrays(labels)
    if "num_classes" in data:
        arrays["num_classes"] = np.array(data.num_classes, dtype=np.int64)
    for name in MASKS:
        if data.get(name) is not None:
            arrays[name] = np.ascontiguousarray(data[name].numpy().T)
    for name in NAMES:
        if name in data:
            arrays[name] = np.array(data[name], dtype=np.str_)
    if directed:
        arrays["directed"] = np.array(True)
    if "notes" in data and len(data.notes):
        arrays["notes"] = np.array(data.notes, dtype=np.str_)
    return arrays


def feature_arrays(x: sp.csr_matrix) -> dict[str, np.ndarray]:
    """``x_*`` arrays of a canonical CSR matrix without stored zeros."""
    binary = bool((x.data == 1).all())
    arrays = {
        "x_indptr": x.indptr.astype(np.int64),
        "x_indices": x.indices.astype(np.int32),
        "x_shape": np.array(x.shape, dtype=np.int64),
        "x_binary": np.array(binary),
    }
    return arrays if binary else arrays | {"x_data": x.data.astype(np.float32)}


def label_arrays(labels: np.ndarray) -> dict[str, np.ndarray]:
    """``y`` with the placeholder 0 for unlabelled nodes, and their list."""
    missing = np.flatnonzero(labels == UNLABELLED)
    codes = np.maximum(labels, 0)
    arrays = {"y": codes.astype(np.int16 if codes.max(initial=0) < 2**15 else np.int32)}
    return arrays | {"unlabeled_nodes": missing.astype(np.int32)} if missing.size else arrays


def scipy_features(data: Data) -> sp.csr_matrix:
    """``data.x`` as canonical CSR without stored zeros."""
    if data.x is None:
        return sp.csr_matrix((int(data.num_nodes), 0), dtype=np.float32)
    x = sp.csr_matrix(data.x.numpy()) if data.x.layout == torch.strided else to_scipy(data.x).copy()
    x.eliminate_zeros()
    return x


def both_directions(edges: np.ndarray, nodes: int) -> np.ndarray:
    """Arcs (u, v) and (v, u) of every edge, sorted, as int64 ``(2, arcs)``. Repeated edges stay repeated."""
    u, v = edges.astype(np.int64)
    other = u != v
    keys = np.concatenate([u * nodes + v, v[other] * nodes + u[other]])
    keys.sort()
    return np.stack(np.divmod(keys, max(nodes, 1)))


def undirected_pairs(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """Every unordered pair once as (u, v), u < v, sorted; self-loops dropped. int32 ``(2, E)``."""
    u, v = pairs[:, pairs[0] != pairs[1]]
    return unique_arcs((np.minimum(u, v), np.maximum(u, v)), nodes)


def unique_arcs(pairs: np.ndarray | tuple[np.ndarray, np.ndarray], nodes: int) -> np.ndarray:
    """The distinct columns of ``pairs``, sorted. int32 ``(2, A)``."""
    keys = sorted_unique(pairs[0].astype(np.int64) * nodes + pairs[1])
    return np.stack(np.divmod(keys, max(nodes, 1))).astype(np.int32)


def sorted_unique(keys: np.ndarray) -> np.ndarray:
    """The distinct values in order; sorts ``keys`` in place (several times faster than hashing millions of keys)."""
    keys.sort()
    kept = np.ones(keys.size, dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=kept[1:])
    return keys[kept]


def csr_tensor(x: sp.csr_matrix) -> torch.Tensor:
    """A float32 torch sparse CSR tensor of ``x``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(x.indptr.astype(np.int64)),
            torch.from_numpy(x.indices.astype(np.int64)),
            torch.from_numpy(x.data.astype(np.float32)),
            size=x.shape,
            check_invariants=True,
        )


def features_tensor(x: sp.csr_matrix) -> torch.Tensor:
    """``x`` as float32 tensor, sparse CSR if its share of non-zeros is below :data:`DENSE_FROM`."""
    if 0 < x.nnz < DENSE_FROM * x.shape[0] * x.shape[1]:
        return csr_tensor(x)
    return torch.from_numpy(x.toarray().astype(np.float32, copy=False))


def _features(arrays: Arrays) -> torch.Tensor:
    indices = arrays["x_indices"]
    values = np.ones(indices.size, dtype=np.float32) if arrays["x_binary"] else arrays["x_data"].astype(np.float32)
    return features_tensor(sp.csr_matrix((values, indices, arrays["x_indptr"]), shape=tuple(arrays["x_shape"])))
