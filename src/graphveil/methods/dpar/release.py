"""DPAR's private rows: PageRank among the training slots, clipped, released, and turned into a sparse matrix Pi."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.dpar.rows import MixedRows, top_entries, unit_sum
from graphveil.privacy.curator import Curator

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.methods.dpar import Dpar


def release_rows(method: Dpar, curator: Curator, sources: np.ndarray, coins: np.random.Generator) -> MixedRows:
    """The sparse matrix Pi: released choices, then post-processing."""
    m, picks = len(sources), method.picks_of(curator.facts)
    slots = np.flatnonzero(training_graph(method, curator.masks))
    if method.rows == "identity":
        found = MixedRows(sources[:, None], np.ones((m, 1)))
    elif method.rows == "random":
        found = MixedRows(coins.integers(slots.size, size=(m, picks)), np.full((m, picks), 1 / picks))
    elif method.select == "gm":
        noisy = curator.release("pagerank", lambda private: clipped_rows(method, private, sources))
        found = top_entries(noisy, picks)
    else:
        chosen = np.asarray(curator.release("pagerank", lambda private: _clipped_entries(method, private, sources)))
        if not curator.plan.promise.private:  # the scores themselves
            chosen = np.argsort(-chosen, axis=1, kind="stable")[:, :picks]
        weights = np.full((m, picks), 1 / picks)
        if method.select == "em1":
            at_picks = lambda private: np.take_along_axis(_clipped_entries(method, private, sources), chosen, axis=1)
            weights = unit_sum(np.maximum(curator.release("weights", at_picks), 0.0))
        found = MixedRows(chosen, weights)
    if method.rows != "identity":
        found = MixedRows(slots[found.columns], found.weights)
    if method.mode == "published":
        return found.clipped_columns(method.column_norm, order=1)
    found = found.with_self(sources, method.self_weight if method.rows != "identity" else 0.0)
    if method.aggregated:
        return found.clipped_columns(method.column_norm, order=2)
    return found.capped_columns(method.column_rows, sources)


def _vectors(method: Dpar, private: Graph, sources: np.ndarray) -> np.ndarray:
    from graphveil.graph import Lists
    from graphveil.graph.kernels.pagerank import ista_rows, push_rows

    arcs, inside = private.lists.edge_index(), training_graph(method, private.masks)
    lists = Lists.from_edge_index(arcs[:, inside[arcs[0]] & inside[arcs[1]]], private.nodes)
    if method.pagerank == "push":
        return push_rows(lists, sources, method.teleport, method.rho)[:, np.flatnonzero(inside)].toarray()
    return ista_rows(lists, sources, method.teleport, method.rho)[:, inside]


def training_graph(method: Dpar, masks: Any) -> np.ndarray:
    """The public slots among which PageRank runs."""
    return masks["train"] | masks["calibration"] if method.inductive else np.ones_like(masks["train"])


def clipped_rows(method: Dpar, private: Graph, sources: np.ndarray) -> np.ndarray:
    """PageRank rows of l2 norm at most C1."""
    vectors = _vectors(method, private, sources)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1.0, method.row_clip * (1 - 1e-12) / np.maximum(norms, 1e-300))


def _clipped_entries(method: Dpar, private: Graph, sources: np.ndarray) -> np.ndarray:
    return np.minimum(_vectors(method, private, sources), method.entry_clip)
