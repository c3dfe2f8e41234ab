"""Figures that describe a graph: sizes, degrees, components, homophily. Exact: for public data or the data's owner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch_geometric.data import Data

from graphveil.graph.data.preparation import largest_component_mask
from graphveil.graph.formats.npz import undirected_pairs
from graphveil.graph.graph import UNLABELLED
from graphveil.graph.layout import scipy_features
from graphveil.notebook import table


@dataclass(frozen=True)
class Statistics:
    """``edges`` counts pairs without self-loops, ``arcs`` what ``edge_index`` holds; degrees are undirected."""

    nodes: int
    edges: int
    arcs: int
    features: int
    nonzeros_per_node: float
    classes: int
    mean_degree: float
    max_degree: int
    isolated: int
    component_nodes: int
    component_edges: int
    homophily: float | None
    class_homophily: float | None
    unlabelled: int
    degree_quantiles: dict[str, int]
    class_sizes: tuple[int, ...]

    def _repr_html_(self) -> str:
        rows = (
            (name.replace("_", " "), round(value, 3) if isinstance(value, float) else value)
            for name, value in vars(self).items()
        )
        return table("exact figures: for public data, or for the data's owner", rows)


def statistics(data: Data) -> Statistics:
    """All figures of ``data``, linear in its size."""
    nodes = int(data.num_nodes)
    arcs = data.edge_index.numpy()
    edges = undirected_pairs(arcs, nodes)
    degrees = degree_sequence(data)
    component = largest_component_mask(data)
    x = scipy_features(data)
    labels = data.y.numpy() if data.get("y") is not None else np.full(nodes, UNLABELLED)
    known = labels[labels != UNLABELLED]
    classes = int(data.get("num_classes") or known.max(initial=-1) + 1)
    quantiles = {"50%": 0.5, "90%": 0.9, "99%": 0.99}
    return Statistics(
        nodes=nodes,
        edges=edges.shape[1],
        arcs=arcs.shape[1],
        features=x.shape[1],
        nonzeros_per_node=x.nnz / max(nodes, 1),
        classes=classes,
        mean_degree=2 * edges.shape[1] / max(nodes, 1),
        max_degree=int(degrees.max(initial=0)),
        isolated=int((degrees == 0).sum()),
        component_nodes=int(component.sum()),
        component_edges=int(component[edges[0]].sum()),
        homophily=edge_homophily(arcs, labels),
        class_homophily=class_insensitive_homophily(arcs, labels),
        unlabelled=int((labels == UNLABELLED).sum()),
        degree_quantiles={name: int(np.quantile(degrees, q, method="lower")) for name, q in quantiles.items() if nodes},
        class_sizes=tuple(int(size) for size in np.bincount(known, minlength=classes)),
    )


def degree_sequence(data: Data) -> np.ndarray:
    """Number of distinct neighbours of every node, directions ignored."""
    edges = undirected_pairs(data.edge_index.numpy(), int(data.num_nodes))
    return np.bincount(edges.ravel(), minlength=int(data.num_nodes))


def edge_homophily(arcs: np.ndarray, labels: np.ndarray) -> float | None:
    """Share of the arcs between labelled nodes (self-loops ignored) that join two nodes of one class."""
    u, v = _labelled(arcs, labels)
    return float((labels[u] == labels[v]).mean()) if u.size else None


def class_insensitive_homophily(arcs: np.ndarray, labels: np.ndarray) -> float | None:
    r"""Homophily that does not grow with class imbalance (Lim et al., NeurIPS 2021; printed by DPDGC):

    .. math:: \hat h = \frac{1}{C-1} \sum_c \max\Bigl(0,\; h_c - \frac{|\{i: y_i = c\}|}{n}\Bigr)

    with :math:`h_c` the share of the arcs that leave class ``c`` and stay in it. ``torch_geometric.utils.homophily`` agrees
    where every label is known, stops at a node without one, and rounds to float32.
    """
    u, v = _labelled(arcs, labels)
    known = labels[labels != UNLABELLED]
    classes = int(known.max(initial=-1)) + 1
    if not u.size or classes < 2:
        return None
    leaving = np.bincount(labels[u], minlength=classes)
    staying = np.bincount(labels[u][labels[u] == labels[v]], minlength=classes)
    shares = np.bincount(known, minlength=classes) / known.size
    own = np.divide(staying, leaving, out=np.zeros(classes), where=leaving > 0)
    return float(np.maximum(own - shares, 0).sum() / (classes - 1))


def _labelled(arcs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    u, v = arcs
    return arcs[:, (u != v) & (labels[u] != UNLABELLED) & (labels[v] != UNLABELLED)]


def degree_histogram(data: Data) -> list[dict[str, int]]:
    """How many nodes have a degree in 0, 1, 2-3, 4-7, 8-15, ...: bins that double, as heavy tails need."""
    degrees = degree_sequence(data)
    bins = np.where(degrees > 0, np.floor(np.log2(np.maximum(degrees, 1))).astype(int) + 1, 0)
    counts = np.bincount(bins)
    edges = [(0, 0)] + [(2**power, 2 ** (power + 1) - 1) for power in range(counts.size - 1)]
    return [{"from": low, "to": high, "nodes": int(n)} for (low, high), n in zip(edges, counts, strict=True)]
