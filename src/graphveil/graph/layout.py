"""Between a graph file (:mod:`graphveil.graph.formats.npz`) and PyG ``Data``: nothing is lost either way."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph.formats import npz
from graphveil.graph.graph import MASKS, UNLABELLED


def read_npz(path: str | Path, *, sha256: str | None = None, directed: bool | None = None) -> Data:
    """The graph in ``path`` as PyG ``Data``; see :func:`data_from_arrays`."""
    return data_from_arrays(npz.read_arrays(path, sha256=sha256), directed=directed)


def write_npz(data: Data, path: str | Path) -> Path:
    """Write ``data`` as a graph file. Equal graphs give equal bytes; the file appears complete or not at all."""
    return npz.write_arrays(arrays_from_data(data), path)


def data_from_arrays(arrays: npz.Arrays, *, directed: bool | None = None) -> Data:
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
    pairs = arcs if directed else npz.both_directions(arrays["edge_index"], nodes)
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
    for name in npz.NAMES:
        if name in arrays:
            data[name] = [str(value) for value in arrays[name]]
    if "ids" in arrays:
        ids = arrays["ids"]
        data.ids = ids.tolist() if ids.dtype.kind == "U" else torch.from_numpy(ids.astype(np.int64))
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
    if not directed and not np.array_equal(npz.unique_arcs(pairs, nodes), npz.unique_arcs(pairs[::-1], nodes)):
        raise InputError(
            "data.edge_index has arcs without their reverse but data is not declared directed: set data.directed = "
            "True, or add them with torch_geometric.utils.to_undirected"
        )
    arcs = pairs if directed else data.directed_edge_index.numpy() if "directed_edge_index" in data else None
    arrays: dict[str, np.ndarray] = {"edge_index": npz.undirected_pairs(pairs, nodes)}
    if arcs is not None:
        arrays["directed_edge_index"] = npz.unique_arcs(arcs, nodes)
    arrays |= npz.feature_arrays(scipy_features(data))
    if data.x is not None:
        arrays["x_dense"] = np.array(is_dense(data))
    if data.get("y") is not None:
        labels = data.y.numpy().astype(np.int64)
        arrays |= npz.label_arrays(labels)
    if "num_classes" in data:
        arrays["num_classes"] = np.array(data.num_classes, dtype=np.int64)
    for name in MASKS:
        if data.get(name) is not None:
            arrays[name] = np.ascontiguousarray(data[name].numpy().T)
    for name in npz.NAMES:
        if name in data:
            arrays[name] = np.array(data[name], dtype=np.str_)
    if data.get("ids") is not None:
        arrays["ids"] = np.asarray(data.ids)
    if directed:
        arrays["directed"] = np.array(True)
    if "notes" in data and len(data.notes):
        arrays["notes"] = np.array(data.notes, dtype=np.str_)
    return arrays


def scipy_features(data: Data) -> sp.csr_matrix:
    """``data.x`` as canonical CSR without stored zeros."""
    if data.x is None:
        return sp.csr_matrix((int(data.num_nodes), 0), dtype=np.float32)
    x = sp.csr_matrix(data.x.numpy()) if data.x.layout == torch.strided else to_scipy(data.x).copy()
    x.eliminate_zeros()
    return x


def to_scipy(x: torch.Tensor) -> sp.csr_matrix:
    """A torch sparse (COO or CSR) matrix as canonical SciPy CSR of the same values, sharing memory where possible."""
    if x.layout == torch.sparse_coo:
        x = x.coalesce().to_sparse_csr()
    if x.layout != torch.sparse_csr:
        raise InputError(f"data.x has the layout {x.layout}: give a dense, sparse COO or sparse CSR matrix")
    x = x.detach().cpu()
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    matrix = sp.csr_matrix(parts, shape=tuple(x.shape))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def csr_tensor(x: sp.csr_matrix, dtype: type[np.floating[Any]] = np.float32) -> torch.Tensor:
    """A torch sparse CSR tensor of ``x``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(x.indptr.astype(np.int64)),
            torch.from_numpy(x.indices.astype(np.int64)),
            torch.from_numpy(x.data.astype(dtype)),
            size=x.shape,
            check_invariants=True,
        )


def is_dense(data: Data) -> bool:
    """How the features of ``data`` are stored: a public fact, which what is made from them inherits."""
    return data.x is None or data.x.layout == torch.strided


def features_tensor(x: sp.csr_matrix, dense: bool | None = None) -> torch.Tensor:
    """``x`` as float32 tensor, dense or sparse CSR; if nothing says which, by its share of non-zeros (:data:`npz.DENSE_FROM`)."""
    if dense is None:
        dense = not 0 < x.nnz < npz.DENSE_FROM * x.shape[0] * x.shape[1]
    if not dense:
        return csr_tensor(x)
    return torch.from_numpy(x.toarray().astype(np.float32, copy=False))


def _features(arrays: npz.Arrays) -> torch.Tensor:
    indices = arrays["x_indices"]
    values = np.ones(indices.size, dtype=np.float32) if arrays["x_binary"] else arrays["x_data"].astype(np.float32)
    dense = bool(arrays["x_dense"]) if "x_dense" in arrays else None
    return features_tensor(sp.csr_matrix((values, indices, arrays["x_indptr"]), shape=tuple(arrays["x_shape"])), dense)
