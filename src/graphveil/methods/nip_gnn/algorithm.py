"""The algorithm of sound NIP-GNN up to the classifier: what everybody sends, and the tables that come out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from graphveil.methods.common.aggregation import aggregate
from graphveil.methods.common.branches import BranchShape, projected_rows
from graphveil.methods.common.labels import label_rows, one_hot
from graphveil.methods.nip_gnn.influence import receiver_scales, scaled_sum
from graphveil.privacy.curator import Curator

if TYPE_CHECKING:
    from graphveil.graph import Graph

    Messages = Callable[[Graph], np.ndarray]

PROJECTION_COINS = 0x0917  # public


def first_messages(kind: str, shape: BranchShape, labels: np.ndarray | None) -> Messages:
    """What everybody sends at the first aggregation: features, own labels, or ``labels`` already released."""
    if labels is not None:
        sent = one_hot(labels, shape.classes)
        return lambda private: sent
    if kind == "labels":
        return label_rows
    return lambda private: projected_rows(private, shape.width, PROJECTION_COINS) * private.present[:, None]


def release_tables(
    curator: Curator, messages: Messages, *, order: int, hops: int, spread: float | None, tau: float | None
) -> list[np.ndarray]:
    """H and the calibrated rows of every further hop, all unit rows of released sums.

    ``order``: 1 for Laplace noise, 2 for Gaussian; ``spread`` None: no receiver scales; ``tau`` None: no residual.
    """
    from graphveil.graph.unit import unit_array

    promise, nodes = curator.plan.promise, curator.facts.nodes
    scales = np.ones(nodes)

    def plain(private: Graph, rows: np.ndarray) -> np.ndarray:
        if order == 1:
            return scaled_sum(private.lists, rows, np.ones(nodes), order)
        return aggregate(private.lists, rows, promise)

    if spread is not None:
        scales = receiver_scales(
            curator.release("influence", lambda private: plain(private, messages(private))), spread
        )
    query = lambda private: scaled_sum(private.lists, messages(private), scales, order)
    start = unit_array(curator.release("aggregation", query) * scales[:, None])
    tables = [start]
    for hop in range(2, hops + 1):
        near = unit_array(curator.release(f"hop {hop}", partial(plain, rows=tables[-1])))
        distance = np.linalg.norm(near - start, axis=1, keepdims=True)
        gain = 1.0 if tau is None else np.maximum(1 - tau / np.maximum(distance, 1e-12), 0.0)
        tables.append(unit_array((1 - gain) * start + gain * near))
    return tables
