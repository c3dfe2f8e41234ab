"""Slots left blank: the zero-out world of several people at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
import torch

from graphveil.graph.graph import UNLABELLED, Graph
from graphveil.graph.lists import Lists
from graphveil.graph.rows import DenseRows, SparseRows


def blanked(graph: Graph, gone: np.ndarray) -> Graph:
    """The graph in which everybody under the mask ``gone`` has no features, no label and no contacts in either direction."""
    kept = ~np.asarray(gone, dtype=bool)
    if isinstance(graph.rows, SparseRows):
        rows: SparseRows | DenseRows = SparseRows(sp.diags(kept.astype(np.float64)) @ graph.rows.values)
    elif isinstance(graph.rows, DenseRows):
        rows = DenseRows(torch.where(torch.from_numpy(kept)[:, None], graph.rows.values, 0.0))
    else:
        raise TypeError(f"cannot blank rows of {type(graph.rows).__name__}")
    senders, receivers = graph.lists.edge_index()
    arcs = np.stack([senders, receivers])[:, kept[senders] & kept[receivers]]
    labels = np.where(kept, graph.labels, UNLABELLED)
    return replace(graph, rows=rows, labels=labels, lists=Lists.from_edge_index(arcs, graph.nodes))
