"""NetworkX and SciPy: the same graph comes back."""

from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph import from_networkx, from_scipy, read_npz, to_networkx, to_scipy_graph, write_npz
from graphveil.graph.formats.npz import read_arrays, write_arrays
from graphveil.graph.layout import arrays_from_data, data_from_arrays, is_dense


def equal(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Same arrays, same types, same values; only the reserved width of text may differ."""
    return first.keys() == second.keys() and all(
        (first[key].dtype == second[key].dtype or first[key].dtype.kind == second[key].dtype.kind == "U")
        and np.array_equal(first[key], second[key])
        for key in first
    )


def round_trip(arrays: dict[str, np.ndarray], folder: Path) -> None:
    """npz → PyG → npz → NetworkX → npz."""
    original = read_arrays(write_arrays(arrays, folder / "first.npz"))
    data = data_from_arrays(original)
    original["x_dense"] = np.array(is_dense(data))  # benchmark files do not say it
    write_npz(data, folder / "second.npz")
    assert equal(original, read_arrays(folder / "second.npz"))
    graph = to_networkx(read_npz(folder / "second.npz"))
    write_npz(from_networkx(graph), folder / "third.npz")
    assert equal(original, read_arrays(folder / "third.npz"))
    assert (folder / "third.npz").read_bytes() == (folder / "second.npz").read_bytes()


def test_a_small_graph_is_identical_after_the_round_trip(small: Data, tmp_path: Path) -> None:
    small.notes, small.class_names = ("note",), ["a", "b"]
    round_trip(arrays_from_data(small), tmp_path)


def test_a_directed_graph_is_identical_after_the_round_trip(small: Data, tmp_path: Path) -> None:
    small.directed, small.edge_index = True, small.edge_index[:, :6]
    round_trip(arrays_from_data(small), tmp_path)


@pytest.mark.parametrize(
    "name", ["cora", "citeseer", "chameleon", "cora-ml", "polblogs", "lastfm-asia", "facebook100-amherst"]
)
def test_real_files_are_identical_after_the_round_trip(name: str, shared_data: str, tmp_path: Path) -> None:
    round_trip(read_arrays(Path(shared_data) / f"{name}.npz"), tmp_path)


def test_a_foreign_networkx_graph_keeps_order_labels_and_named_features() -> None:
    graph = networkx.Graph()
    graph.add_node("ann", group=1, age=3, height=0.5)
    graph.add_node("bob", age=0, height=1.5)
    graph.add_node("cat", group=0, age=1, height=0.0)
    graph.add_edges_from([("ann", "cat"), ("cat", "bob"), ("bob", "bob")])
    data = from_networkx(graph, label="group", features=["age", "height"], classes=2)
    assert data.y.tolist() == [1, -1, 0] and data.x.tolist() == [[3, 0.5], [0, 1.5], [1, 0]]
    assert data.edge_index.tolist() == [[0, 1, 2, 2], [2, 2, 0, 1]] and not data.directed and data.num_classes == 2


def test_a_directed_multigraph_becomes_arcs() -> None:
    graph = networkx.MultiDiGraph([(0, 1), (0, 1), (2, 0)])
    data = from_networkx(graph)
    assert data.directed and data.x.shape == (3, 0)
    assert np.unique(arrays_from_data(data)["directed_edge_index"], axis=1).tolist() == [[0, 2], [1, 0]]


def test_unusable_networkx_attributes_are_named() -> None:
    graph = networkx.path_graph(2)
    networkx.set_node_attributes(graph, "red", "y")
    with pytest.raises(InputError, match="'red': number the classes"):
        from_networkx(graph)
    networkx.set_node_attributes(graph, 0, "y")
    networkx.set_node_attributes(graph, "tall", "size")
    with pytest.raises(InputError, match="no numeric features in size"):
        from_networkx(graph, features=["size"])


def test_scipy_matrices_round_trip(small: Data) -> None:
    adjacency, features, labels = to_scipy_graph(small)
    back = from_scipy(adjacency, features, labels, classes=2)
    assert equal(
        {key: value for key, value in arrays_from_data(small).items() if "mask" not in key},
        arrays_from_data(back) | {"x_dense": np.array(True)},
    )
    assert not is_dense(back)  # as the matrix was given
    assert (adjacency != adjacency.T).nnz == 0


def test_scipy_weights_and_stored_zeros_are_dropped_and_one_side_is_completed() -> None:
    matrix = sp.coo_matrix(([2.5, 0.0, 1.0], ([0, 0, 1], [1, 2, 2])), shape=(3, 3))
    assert from_scipy(matrix).edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert from_scipy(matrix, directed=True).edge_index.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(InputError, match="square"):
        from_scipy(sp.coo_matrix((2, 3)))
    with pytest.raises(InputError, match="2 feature rows for 3 nodes"):
        from_scipy(matrix, np.zeros((2, 1)))
