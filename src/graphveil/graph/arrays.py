"""A graph as plain arrays: arcs, features and labels in the layout of :mod:`graphveil.graph.formats.npz`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import scipy.sparse as sp

from graphveil.graph.graph import UNLABELLED

Arrays = Mapping[str, np.ndarray]


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
