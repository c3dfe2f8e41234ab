"""Exact influence in two-layer graph networks without a forward pass per node.

Changing the input row of v by d_v changes the first layer only at v and at whoever reads v, and the output only at whoever
reads those: with B the operator's matrix and H = B X U + b (+ X V),

    change of h_w   = act(H_w + B_wv d_v U + [w = v] d_v V) - act(H_w)           for w in N[v],
    change of out_u = sum_{w in N[u]} B_uw (change of h_w) U' + (change of h_u) V'.

So a pair (u, v) costs the degree of u and a probe the degree of v, and pairs without a common reader are exactly 0. The
numbers are those of a full forward pass with the changed row (no linearisation), in float64.
Test: ``tests/attacks/test_link_teller.py`` compares them with one forward pass per node.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from graphveil.attacks.changed_arcs import found
from graphveil.attacks.target import Perturbation, as_rows, rows_of
from graphveil.graph import Graph
from graphveil.graph.layout import to_scipy
from graphveil.learn.graph_training import features, gcn_matrix, mean_matrix
from graphveil.methods.gnn import GnnPredictor

BLOCK = 200_000  # changed hidden rows that are held at once


class ChangedNetwork:
    """A graph network on one graph, and how its logits move when single rows change."""

    def __init__(self, predictor: GnnPredictor, graph: Graph) -> None:
        mean = predictor.shape.backbone == "sage"
        matrix = (mean_matrix if mean else gcn_matrix)(predictor.arcs_on(graph), graph.nodes)
        self.graph = graph
        self.near = to_scipy(matrix).astype(np.float64)
        self.columns = self.near.tocsc()
        self.weights = w = _weights(predictor.network)
        self.hidden: np.ndarray | None = None  # first-layer sums of everybody, where there are two layers
        if "near2" in w:
            x = _inputs(graph.rows)
            found = self.near @ (x @ w["near"]) + w["bias"]
            self.hidden = np.asarray(found + x @ w["own"] if "own" in w else found)

    def influence(
        self, receivers: np.ndarray, probes: np.ndarray, numbers: np.ndarray, change: Perturbation
    ) -> np.ndarray:
        """How far the centred logits of ``receivers[i]`` move when the row of ``probes[numbers[i]]`` is changed."""
        far = np.zeros(len(receivers))
        costs = np.diff(self.columns.indptr)[probes] + 1
        blocks = np.cumsum(costs) // BLOCK
        order = np.argsort(numbers, kind="stable")
        edges = np.searchsorted(blocks, np.arange(blocks[-1] + 2 if len(probes) else 0))
        for begin, end in pairwise(edges):
            first, last = np.searchsorted(numbers[order], [begin, end])
            chosen = order[first:last]
            moved = self._moved(receivers[chosen], probes[begin:end], numbers[chosen] - begin, change)
            far[chosen] = np.linalg.norm(moved - moved.mean(axis=1, keepdims=True), axis=1)
        return far

    def _moved(
        self, receivers: np.ndarray, probes: np.ndarray, numbers: np.ndarray, change: Perturbation
    ) -> np.ndarray:
        """The change of the logits of every (receiver, probe)."""
        changed = as_rows(change.changed(rows_of(self.graph), probes))
        shifts = _inputs(changed) - _inputs(self.graph.rows.take(probes))
        readers, which, strength = self._readers(probes)
        near, own = self._messages(shifts, readers, which, strength, probes)
        keys = which * self.graph.nodes + readers  # increasing: columns are sorted
        lengths = np.diff(self.near.indptr)[receivers]
        rows = np.repeat(np.arange(len(receivers)), lengths)
        places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        places += np.repeat(self.near.indptr[receivers], lengths)
        entry, hit = found(keys, numbers[rows] * self.graph.nodes + self.near.indices[places])
        shape = (len(receivers), len(keys))
        moved = sp.csr_matrix((self.near.data[places][hit], (rows[hit], entry[hit])), shape) @ near
        if own is not None:
            entry, hit = found(keys, numbers * self.graph.nodes + receivers)
            moved[hit] += own[entry[hit]]
        return np.asarray(moved)

    def _readers(self, probes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whoever reads a probe in one layer, itself included: (reader, number of the probe, weight), sorted."""
        block = self.columns[:, probes].tocoo()
        own = sp.coo_matrix((np.zeros(len(probes)), (probes, np.arange(len(probes)))), block.shape)
        both = [np.concatenate(parts) for parts in ((block.row, own.row), (block.col, own.col), (block.data, own.data))]
        keys, inverse = np.unique(both[1].astype(np.int64) * self.graph.nodes + both[0], return_inverse=True)
        which, readers = np.divmod(keys, self.graph.nodes)
        return readers, which, np.bincount(inverse, weights=both[2], minlength=len(keys))

    def _messages(
        self, shifts: Any, readers: np.ndarray, which: np.ndarray, strength: np.ndarray, probes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """What every changed hidden row sends to its readers, and adds to its own logits (GraphSAGE)."""
        w = self.weights
        moved = strength[:, None] * np.asarray(shifts @ w["near"])[which]
        if self.hidden is None:
            return moved, None
        if "own" in w:
            itself = readers == probes[which]
            moved[itself] += np.asarray(shifts @ w["own"])[which[itself]]
        before = self.hidden[readers]
        change = _selu(before + moved) - _selu(before)
        return change @ w["near2"], change @ w["own2"] if "own2" in w else None


def _selu(values: np.ndarray) -> np.ndarray:
    return torch.nn.functional.selu(torch.from_numpy(values)).numpy()


def _weights(network: Any) -> dict[str, np.ndarray]:
    """What a layer (the second with a 2) sends to readers and to itself, and what the first one adds."""
    found = {}
    for suffix, layer in (("", network.first), ("2", network.second)):
        for name, attribute in (("near", "lin"), ("near", "lin_l"), ("own", "lin_r")):
            if hasattr(layer, attribute):
                found[name + suffix] = getattr(layer, attribute).weight.detach().double().numpy().T
    bias = network.first.lin_l.bias if "own" in found else network.first.bias if "near2" in found else None
    return found if bias is None else found | {"bias": bias.detach().double().numpy()}


def _inputs(rows: Any) -> Any:
    """What the networks read (unit rows and a constant) as SciPy or NumPy, in float64 of the stored float32."""
    matrix = features(rows)
    return matrix.double().numpy() if matrix.layout is torch.strided else to_scipy(matrix).astype(np.float64)
