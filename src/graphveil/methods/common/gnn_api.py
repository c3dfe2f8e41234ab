"""The GNN API of a local model: its network, asked with any reports on any edges, new vertices included.

    api = model.gnn_api()
    api.predict_proba(api.data)   # the reports and edges that the server has: what model.predict_proba() says
    api.predict_proba(other)      # other.x: rows as people report them, other.edge_index: senders and receivers

``model.predict(data)`` answers from the reports that were sent and reads no feature of ``data``. Here rows are scored as they
come: nothing randomises them, so whoever asks about people hands in their reports.

Formal guarantee: an answer is a function of the rows and edges handed in and of what training kept (weights, and the scale of
inputs), which is post-processing of reports; the reports the model learned from are read through ``data`` alone, and the edges
there are those the server was sent: raw where the promise says so, else reported lists (in published modes of no epsilon).
Tests: ``tests/methods/test_gnn_api.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph import Graph
from graphveil.graph.layout import csr_tensor, to_scipy
from graphveil.methods.common.network_predictor import GraphPredictor

if TYPE_CHECKING:
    from graphveil.exchange.server import Server
    from graphveil.methods.model import Model


class GnnApi:
    """The network of a local model, asked as ``predict_proba(data)``: ``data.x`` has reports, ``data.edge_index`` arcs."""

    def __init__(self, model: Model) -> None:
        if not has_gnn_api(model):
            raise InputError(f"{model.method.name} keeps no network that could be asked with other reports or edges")
        assert isinstance(model.predictor, GraphPredictor)
        self.model, self.predictor, self.certificate = model, model.predictor, model.certificate

    @property
    def hops(self) -> int | None:
        """How far from a vertex its score reads, if that is near."""
        return self.predictor.hops

    @property
    def data(self) -> Data:
        """The reports and edges that the server has."""
        return self._data(self.predictor.rows, self.predictor.edges)

    def predict_proba(self, data: Data) -> Tensor:
        """Class probabilities of everybody in ``data``."""
        width, edges = self.predictor.rows.shape[1], data.edge_index.numpy(force=True)
        if data.x is None or data.x.dim() != 2 or data.x.shape[1] != width:
            raise InputError(f"this network is asked with reports of {width} attributes, one row of data.x each")
        if edges.size and not 0 <= edges.min() <= edges.max() < data.x.shape[0]:
            raise InputError(f"data.edge_index names a vertex that is not among the {data.x.shape[0]} rows of data.x")
        rows: Any = data.x.numpy(force=True) if data.x.layout is torch.strided else to_scipy(data.x)
        return self.model.probabilities(self.predictor.forward(rows, edges))

    def reported(self, graph: Graph, seed: int | None, known: np.ndarray | None = None) -> Data:
        """Everybody of ``graph`` as their clients would report them, and the edges or lists that the server would be sent.

        For research: clients are simulated. Whoever is under the mask ``known`` has reported features already: one report each,
        that which the model learned from.
        """
        promise, own = self.certificate.promise, self.predictor.rows
        method: Any = self.model.method  # a local one that hears rows, and arcs where edges are not raw
        plan = method.plan(method.facts_for(graph, promise), promise)
        server: Server = method.in_process(graph, plan, seed)
        rows = own if self.predictor.random else method.heard_rows(server)
        rows = rows if known is None else _chosen(known, own, rows)
        edges = method.arcs(server, rows) if server.raw_edges is None else server.raw_edges
        return self._data(rows, edges)

    def _data(self, rows: Any, edges: np.ndarray) -> Data:
        rows = csr_tensor(rows.tocsr().sorted_indices(), np.float64) if sp.issparse(rows) else torch.as_tensor(rows)
        arcs, classes = torch.from_numpy(np.array(edges)), int(self.predictor.facts["classes"])
        return Data(x=rows, edge_index=arcs, num_nodes=rows.shape[0], num_classes=classes, directed=True)


def has_gnn_api(model: Any) -> bool:
    """Whether this is a model that has a network over reports and edges."""
    return hasattr(model, "gnn_api") and isinstance(model.predictor, GraphPredictor)


def _chosen(mask: np.ndarray, these: Any, others: Any) -> Any:
    """Rows of ``these`` under the mask, else of ``others``; SciPy rows stay so."""
    if not sp.issparse(these):
        return np.where(mask[:, None], np.asarray(these), np.asarray(others))
    return (sp.diags(mask.astype(np.float64)) @ these + sp.diags((~mask).astype(np.float64)) @ others).tocsr()
