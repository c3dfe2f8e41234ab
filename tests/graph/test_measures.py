"""Figures and pictures of a graph, against independent computations."""

from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import homophily

from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, statistics
from graphveil.graph.data.measures import class_insensitive_homophily, degree_histogram, degree_sequence, edge_homophily
from graphveil.report.graph_glance import class_mixing, degree_survival, plot_graph


@pytest.fixture(scope="module")
def graph() -> Data:
    return powerlaw_sbm(1, nodes=600, classes=3, average_degree=3.0, homophily=0.6)


def test_sizes_degrees_and_components_agree_with_networkx(graph: Data) -> None:
    other = networkx.Graph(graph.edge_index.T.tolist())
    other.add_nodes_from(range(600))
    largest = other.subgraph(max(networkx.connected_components(other), key=len))
    figures = statistics(graph)
    assert (figures.nodes, figures.edges) == (600, other.number_of_edges())
    assert figures.isolated == networkx.number_of_isolates(other) > 0
    assert (figures.component_nodes, figures.component_edges) == (len(largest), largest.number_of_edges())
    assert figures.max_degree == max(degree for _, degree in other.degree())
    assert degree_sequence(graph).tolist() == [other.degree(node) for node in range(600)]


def test_both_homophilies_agree_with_pyg(graph: Data) -> None:
    arcs, labels = graph.edge_index.numpy(), graph.y.numpy()
    assert edge_homophily(arcs, labels) == pytest.approx(homophily(graph.edge_index, graph.y, method="edge"))
    wanted = homophily(graph.edge_index, graph.y, method="edge_insensitive")
    assert class_insensitive_homophily(arcs, labels) == pytest.approx(wanted, abs=1e-6)


def test_unlabelled_nodes_and_self_loops_do_not_count_as_similar() -> None:
    arcs, labels = np.array([[0, 1, 2, 2], [1, 2, 2, 0]]), np.array([0, 0, -1])
    assert edge_homophily(arcs, labels) == 1.0
    assert edge_homophily(arcs, np.full(3, -1)) is None and class_insensitive_homophily(arcs, labels) is None


def test_a_graph_without_labels_or_edges_has_figures() -> None:
    data = Data(x=None, edge_index=torch.zeros((2, 0), dtype=torch.long))
    data.num_nodes = 3
    figures = statistics(data)
    assert (figures.edges, figures.isolated, figures.classes, figures.homophily) == (0, 3, 0, None)


def test_the_degree_histogram_counts_everybody_once(graph: Data) -> None:
    rows = degree_histogram(graph)
    degrees = degree_sequence(graph)
    assert sum(row["nodes"] for row in rows) == 600
    for row in rows:
        assert row["nodes"] == int(((degrees >= row["from"]) & (degrees <= row["to"])).sum())


def test_the_survival_curve_starts_with_everybody_who_has_a_neighbour(graph: Data) -> None:
    degrees = degree_sequence(graph)
    values, survival = degree_survival(degrees)
    assert survival[0] == (degrees > 0).mean() and (np.diff(survival) < 0).all()
    assert survival[values == 5][0] == (degrees >= 5).mean()


def test_class_mixing_rows_are_shares(graph: Data) -> None:
    mixing = class_mixing(graph)
    assert mixing.shape == (3, 3) and np.allclose(mixing.sum(axis=1), 1)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_is_written(graph: Data, tmp_path: Path, suffix: str) -> None:
    path = plot_graph(graph, tmp_path / f"graph{suffix}", title="t")
    head = path.read_bytes()[:200]
    assert head.startswith(b"\x89PNG") if suffix == ".png" else b"<?xml" in head


def test_a_picture_needs_a_known_format_and_a_folder(graph: Data, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.pdf or \.svg"):
        plot_graph(graph, tmp_path / "graph.txt")
    with pytest.raises(InputError, match="cannot be written"):
        plot_graph(graph, tmp_path / "missing" / "graph.png")
