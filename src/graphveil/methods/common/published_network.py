"""The network that LPGNN's released code trains, on public edges or reported lists: its weights and what it is asked over.

    logits = GNN(KProp(scale x' + shift)), KProp along the arcs; wide reports times a public random matrix

Tests: ``tests/methods/test_lpgnn.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from graphveil.exchange.server import Server
from graphveil.methods.common.network_predictor import PropagatingPredictor, logits_of
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from torch import nn

KIND = "published-network"


class PublishedNetwork(PropagatingPredictor):
    """``network`` (in memory only) is what the papers' attacks query: that of the last epoch, on ``reports`` and ``arcs``."""

    kind = KIND
    network: nn.Module | None = None

    @property
    def reports(self) -> Array:
        return rectified(self.rows, self.kept)

    @property
    def arcs(self) -> np.ndarray:
        return self.edges

    def columns(self, rows: Any) -> Array:
        return rectified(rows, self.kept)

    def spread(self, columns: Array, edges: np.ndarray) -> Array:
        from graphveil.methods.common.denoise import kprop

        return kprop(along_arcs(edges, len(columns)), columns, self.options.feature_steps)

    def scored(self, columns: Array, edges: np.ndarray) -> np.ndarray:
        import torch

        from graphveil.learn.backbones import as_lpgnn_builds

        told, classes = self.options, int(self.facts["classes"])
        network = as_lpgnn_builds(told.backbone, columns.shape[1], told.hidden, classes, told.dropout, 0)
        return logits_of(network, self.weights, columns, torch.from_numpy(np.ascontiguousarray(edges)))


def along_arcs(edge_index: np.ndarray, nodes: int) -> sp.csr_matrix:
    """D^-1/2 A D^-1/2 of the arcs sender -> receiver, D the receivers' degrees, as ``gcn_norm`` does it; arcs may be double."""
    senders, receivers = edge_index
    matrix = sp.coo_matrix((np.ones(len(senders)), (receivers, senders)), (nodes, nodes)).tocsr()
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    root = sp.diags(np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1.0)), 0.0))
    return sp.csr_matrix(root @ matrix @ root).astype(np.float32)


def rectifier(server: Server, width: int, most: int) -> dict[str, np.ndarray]:
    """How reports become unbiased rows of at most ``most`` columns; raw features stay as they are."""
    response: Any = server.rounds["features"].randomizer if "features" in server.rounds else None
    found = np.array([1.0, 0.0] if response is None else [response.scale, response.middle], dtype=np.float64)
    if width <= most:
        return {"rectifier": found}
    mixing = server.coins.standard_normal((width, most)).astype(np.float32) / np.float32(np.sqrt(most))
    return {"rectifier": found, "mixing": mixing}


def rectified(rows: Any, kept: Mapping[str, np.ndarray]) -> Array:
    """Unbiased rows of feature reports."""
    values: Any = rows.numpy(force=True) if hasattr(rows, "numpy") else rows
    scale, shift = map(float, kept["rectifier"])
    mixing = kept.get("mixing")
    if mixing is not None:
        return np.asarray(scale * (values.astype(np.float32) @ mixing) + shift * mixing.sum(axis=0), dtype=np.float32)
    if sp.issparse(values):
        values = sp.csr_matrix(values)
        found = np.full(values.shape, np.float32(shift))
        owners = np.repeat(np.arange(len(found)), np.diff(values.indptr))
        np.add.at(found, (owners, values.indices), np.float32(scale) * values.data.astype(np.float32))
        return found
    return np.asarray(np.float32(scale) * np.asarray(values, dtype=np.float32) + np.float32(shift))
