"""Graph files: nothing is lost, nothing half-written, nothing damaged gets through."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph import read_npz, write_npz
from graphveil.graph.data.preparation import subgraph
from graphveil.graph.data.splits import restrict
from graphveil.graph.formats.npz import read_arrays, undirected_pairs, write_arrays
from graphveil.graph.layout import arrays_from_data, csr_tensor, data_from_arrays


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(
        first[key].dtype == second[key].dtype and np.array_equal(first[key], second[key]) for key in first
    )


def test_data_survive_a_round_trip_through_a_file(small: Data, tmp_path: Path) -> None:
    small.class_names, small.notes = ["a", "b"], ("an assumption",)
    back = read_npz(write_npz(small, tmp_path / "g.npz"))
    for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(back[key], small[key])
    assert back.num_classes == 2 and back.class_names == ["a", "b"] and back.notes == ("an assumption",)
    assert set(map(tuple, back.edge_index.T.tolist())) == set(map(tuple, small.edge_index.T.tolist()))


def test_directed_arcs_survive_a_round_trip(small: Data, tmp_path: Path) -> None:
    small.directed = True
    small.edge_index = torch.tensor([[0, 1, 1, 4], [1, 0, 2, 4]])
    back = read_npz(write_npz(small, tmp_path / "g.npz"))
    assert back.directed and back.edge_index.tolist() == small.edge_index.tolist()
    undirected = read_npz(tmp_path / "g.npz", directed=False)
    assert undirected.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]] and not undirected.directed


def test_equal_graphs_give_equal_bytes(small: Data, tmp_path: Path) -> None:
    first = write_npz(small, tmp_path / "a.npz").read_bytes()
    assert write_npz(read_npz(tmp_path / "a.npz"), tmp_path / "b.npz").read_bytes() == first


def test_an_asymmetric_graph_that_is_not_declared_directed_is_not_written(small: Data, tmp_path: Path) -> None:
    small.edge_index = small.edge_index[:, :4]
    with pytest.raises(InputError, match="not declared directed"):
        write_npz(small, tmp_path / "g.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_checksum_is_refused(small: Data, tmp_path: Path) -> None:
    path = write_npz(small, tmp_path / "g.npz")
    read_arrays(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(InputError, match=r"g\.npz is not the known file"):
        read_arrays(path, sha256="0" * 64)


def test_a_file_with_pickles_is_refused(small: Data, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    path = tmp_path / "g.npz"
    np.savez(path, **arrays_from_data(small), extra=np.array([Bomb()], dtype=object))
    with pytest.raises(InputError, match="damaged or no graph file"):
        read_arrays(path)
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match="damaged or no graph file"):
        read_arrays(path)
    assert not (tmp_path / "exploded").exists()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_truncated_or_tampered_file_gives_one_line_or_valid_arrays(
    small: Data, tmp_path: Path, data: st.DataObject
) -> None:
    path = write_npz(small, tmp_path / "g.npz")
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    try:
        data_from_arrays(read_arrays(path))
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error)


BROKEN = {
    "edge_index": (np.array([[0], [9]]), "edge_index names a node outside 0..6"),
    "directed_edge_index": (np.array([0, 1]), "directed_edge_index is not an integer array"),
    "x_indptr": (np.array([0, 1]), "x_indptr or x_indices has the wrong shape"),
    "x_indices": (np.array([9] * 7, dtype=np.int32), "x_indices names a column outside"),
    "x_shape": (np.array([7]), "x_shape is not two sizes"),
    "x_binary": (np.array([True]), "x_binary is not a boolean"),
    "x_data": (np.array([1.0]), "x_data is missing or has the wrong length or type"),
    "y": (np.array([0, 1]), "y is not one integer for each of 7 nodes"),
    "unlabeled_nodes": (np.array([7]), "unlabeled_nodes names a node outside"),
    "train_mask": (np.array([1, 2]), "train_mask is not a boolean mask"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_of_the_layout_is_checked(small: Data, tmp_path: Path, name: str) -> None:
    array, message = BROKEN[name]
    path = write_arrays(arrays_from_data(small) | {name: array}, tmp_path / "g.npz")
    with pytest.raises(InputError, match=re.escape(message)):
        read_arrays(path)


def test_row_starts_that_fall_are_refused_whatever_their_type(small: Data, tmp_path: Path) -> None:
    """The difference of unsigned numbers wraps, and a row of 2^64 entries was read."""
    arrays = arrays_from_data(small)
    falling = arrays["x_indptr"].astype(np.uint64)
    falling[1] = 10**9
    with pytest.raises(InputError, match="x_indptr does not fit"):
        read_arrays(write_arrays(arrays | {"x_indptr": falling}, tmp_path / "g.npz"))


def test_a_missing_array_is_named(small: Data, tmp_path: Path) -> None:
    arrays = arrays_from_data(small)
    del arrays["x_shape"]
    with pytest.raises(InputError, match="array x_shape is missing"):
        read_arrays(write_arrays(arrays, tmp_path / "g.npz"))


def test_an_unwritable_place_leaves_nothing_behind(small: Data, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_npz(small, tmp_path / "missing" / "g.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write_npz(small, tmp_path / "folder.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.npz"]


def test_repeated_pairs_in_a_file_stay_visible_for_validation(small: Data, tmp_path: Path) -> None:
    arrays = arrays_from_data(small) | {"edge_index": np.array([[0, 0, 2], [1, 1, 2]], dtype=np.int32)}
    data = read_npz(write_arrays(arrays, tmp_path / "g.npz"))
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2], [1, 1, 0, 0, 2]]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_undirected_pairs_are_sorted_unique_and_loop_free(pairs: list[tuple[int, int]]) -> None:
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    wanted = sorted({(min(u, v), max(u, v)) for u, v in pairs if u != v})
    assert list(map(tuple, undirected_pairs(array, 7).T.tolist())) == wanted


def test_arrays_of_plain_numpy_files_are_accepted(small: Data, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays_from_data(small))
    (tmp_path / "g.npz").write_bytes(buffer.getvalue())
    assert same(read_arrays(tmp_path / "g.npz"), arrays_from_data(small))


@pytest.mark.parametrize("dense", [False, True])
def test_how_features_are_stored_does_not_depend_on_one_record(tmp_path, dense):
    """At the share of non-zeros where benchmark files change their form, the form of a private file stays as it was said."""
    values = np.zeros((50, 40), dtype=np.float32)
    values[:, :4] = 1  # a tenth
    x = torch.from_numpy(values) if dense else csr_tensor(sp.csr_matrix(values))
    data = Data(x=x, edge_index=torch.zeros((2, 0), dtype=torch.long), y=torch.zeros(50, dtype=torch.long))
    data.num_nodes = 50
    for name in ("train_mask", "val_mask", "test_mask"):
        data[name] = torch.zeros(50, dtype=torch.bool)
    for blanked in (False, True):
        if blanked:
            values[7] = 0
            data.x = torch.from_numpy(values) if dense else csr_tensor(sp.csr_matrix(values))
        again = read_npz(write_npz(data, tmp_path / "g.npz"))
        assert (again.x.layout == torch.strided) is dense
        assert (subgraph(again, np.arange(50) != 3).x.layout == torch.strided) is dense
        assert (restrict(again, np.arange(50) > 10).x.layout == torch.strided) is dense
