"""Validation: every defect has one precise line, and nothing private decides a public fact."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphveil.errors import DataWarning, InputError
from graphveil.graph import DenseRows, SparseRows
from graphveil.graph.layout import csr_tensor, scipy_features
from graphveil.graph.validate import validate


def quietly(data: Data, **options: object):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return validate(data, **options)


def test_a_valid_graph_keeps_rows_labels_masks_and_declared_facts(small: Data) -> None:
    graph = quietly(small)
    assert graph.rows.shape == (7, 2) and isinstance(graph.rows, DenseRows)
    assert graph.labels.tolist() == [0, 1, 0, 1, 0, -1, 1]
    assert graph.lists.arcs == 10 and graph.classes == 2 and not graph.directed and graph.notes == ()
    assert [int(graph.masks[kind].sum()) for kind in ("train", "calibration", "query")] == [3, 1, 2]


def test_present_reads_features_and_the_labels_of_learning_nodes_only(small: Data) -> None:
    small.x[0] = 0  # labelled training node without features
    small.x[6] = 0  # labelled query node without features
    small.x[4] = torch.tensor([1e-200, 0.0])  # its square vanishes in float64
    small.x = small.x.double()
    small.x[4] = torch.tensor([1e-200, 0.0], dtype=torch.float64)
    assert quietly(small).present.tolist() == [True, True, True, True, True, True, False]


def test_sparse_features_stay_sparse_and_equal_the_dense_ones(small: Data) -> None:
    dense = quietly(small)
    small.x = csr_tensor(scipy_features(small))
    sparse = quietly(small)
    assert isinstance(sparse.rows, SparseRows)
    assert np.array_equal(sparse.rows.values.toarray(), dense.rows.values.numpy())
    assert np.array_equal(sparse.present, dense.present)
    small.x = small.x.to_dense().to_sparse_coo()
    assert np.array_equal(quietly(small).rows.values.toarray(), dense.rows.values.numpy())


DEFECTS: dict[str, tuple[Callable[[Data], None], str]] = {
    "nan": (lambda d: d.x.__setitem__((3, 1), float("nan")), r"NaN or infinite values in 1 rows, first in row 3"),
    "flat x": (lambda d: setattr(d, "x", d.x[:, 0]), r"data.x has shape \(7,\)"),
    "complex x": (lambda d: setattr(d, "x", d.x.to(torch.complex64)), r"data.x is complex"),
    "edge too high": (
        lambda d: d.edge_index.__setitem__((1, 4), 7),
        r"1 arcs with nodes outside 0..6, first arc 4 \(3, 7\)",
    ),
    "edge negative": (lambda d: d.edge_index.__setitem__((0, 2), -1), r"1 arcs with nodes outside 0..6, first arc 2"),
    "edges transposed": (lambda d: setattr(d, "edge_index", d.edge_index.T), r"shape \(10, 2\): give \(2, arcs\)"),
    "edges float": (
        lambda d: setattr(d, "edge_index", d.edge_index.float()),
        r"type float32: give integer node numbers",
    ),
    "edges missing": (lambda d: setattr(d, "edge_index", None), r"edge_index is missing"),
    "label too high": (lambda d: d.y.__setitem__(4, 2), r"data.y\[4\] is 2, outside 0..1"),
    "label too low": (lambda d: d.y.__setitem__(4, -2), r"data.y\[4\] is -2"),
    "labels float": (lambda d: setattr(d, "y", d.y.float()), r"type float32: give integer class numbers"),
    "labels short": (lambda d: setattr(d, "y", d.y[:5]), r"5 labels for 7 nodes"),
    "labels multi": (lambda d: setattr(d, "y", torch.zeros((7, 2), dtype=torch.long)), r"no multi-label"),
    "no labels": (lambda d: (delattr(d, "y"), delattr(d, "num_classes")), r"data has no labels"),
    "classes zero": (lambda d: setattr(d, "num_classes", 0), r"num_classes is 0"),
    "masks overlap": (
        lambda d: d.val_mask.__setitem__(2, True),
        r"share 1 nodes, first node 2: masks must be disjoint",
    ),
    "mask short": (lambda d: setattr(d, "test_mask", d.test_mask[:6]), r"test_mask has shape \(6,\) for 7 nodes"),
    "mask numbers": (lambda d: setattr(d, "train_mask", d.train_mask.long()), r"type int64: give a boolean mask"),
    "mask of splits": (lambda d: setattr(d, "val_mask", torch.zeros((7, 3), dtype=torch.bool)), r"holds 3 splits"),
    "no training": (lambda d: d.train_mask.fill_(False), r"no training nodes"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_defect_has_one_precise_line(small: Data, defect: str) -> None:
    spoil, message = DEFECTS[defect]
    spoil(small)
    with pytest.raises(InputError) as caught:
        quietly(small)
    assert re.search(message, str(caught.value)) and "\n" not in str(caught.value)


@pytest.mark.parametrize("sparse", [False, True])
def test_bad_rows_can_be_blanked_and_count_as_absent(small: Data, sparse: bool) -> None:
    small.x[1, 0] = float("inf")
    small.x[4, 1] = float("nan")
    if sparse:
        small.x = csr_tensor(scipy_features(small))
    graph = quietly(small, on_bad_rows="zero")
    assert graph.labels[[1, 4]].tolist() == [-1, -1]
    assert not graph.present[[1, 4]].any() and torch.isfinite(graph.rows.squared_norms()).all()
    assert any("blanked" in note for note in graph.notes)
    assert not any(re.search(r"\d", note) for note in graph.notes)  # their number is not published


def test_the_note_about_bad_rows_does_not_depend_on_whether_there_are_any(small: Data) -> None:
    clean = quietly(small, on_bad_rows="zero").notes
    small.x[1, 0] = float("inf")
    assert quietly(small, on_bad_rows="zero").notes == clean


def test_an_undeclared_number_of_classes_is_inferred_and_noted(small: Data) -> None:
    del small.num_classes
    graph = quietly(small)
    assert graph.classes == 2 and "inferred" in graph.notes[0]


def test_a_graph_without_features_has_rows_of_width_zero(small: Data) -> None:
    for x in (None, torch.zeros((7, 0))):
        small.x = x
        graph = quietly(small)
        assert graph.rows.shape == (7, 0) and graph.present.tolist() == [True] * 4 + [False] * 3


def test_other_containers_are_refused() -> None:
    with pytest.raises(InputError, match="data is a dict: give a torch_geometric"):
        validate({"x": 1})


def test_prediction_does_not_need_training_nodes(small: Data) -> None:
    small.train_mask.fill_(False)
    assert quietly(small, need_training=False).nodes == 7


def test_duplicate_arcs_and_self_loops_are_removed_with_a_warning(small: Data) -> None:
    small.edge_index = torch.cat([small.edge_index, torch.tensor([[0, 3], [1, 3]])], dim=1)
    with pytest.warns(DataWarning, match=r"removed duplicate arcs and self-loops \(for the operator only"):
        assert validate(small).lists.arcs == 10


def test_unlabelled_nodes_in_masks_are_warned_about_and_masks_stay_public(small: Data) -> None:
    small.test_mask[5] = True
    with pytest.warns(DataWarning, match=r"masks \(query\)"):
        assert validate(small).masks["query"].sum() == 3


def test_directed_is_taken_as_declared_and_never_measured(small: Data) -> None:
    small.edge_index = small.edge_index[:, :5]
    assert quietly(small).directed is False
    small.directed = True
    assert quietly(small).directed is True


@given(st.data())
def test_any_combination_of_shapes_gives_a_graph_or_one_line(data: st.DataObject) -> None:
    shape = st.lists(st.integers(0, 4), min_size=0, max_size=3)
    kinds = st.sampled_from([torch.float32, torch.int64, torch.bool, torch.float64, torch.int8])

    def tensor() -> torch.Tensor | None:
        return data.draw(st.none() | st.builds(lambda s, k: torch.ones(s, dtype=k), shape, kinds))

    candidate = Data(x=tensor(), y=tensor(), edge_index=tensor())
    candidate.train_mask, candidate.num_nodes = tensor(), data.draw(st.integers(0, 4))
    try:
        graph = quietly(candidate)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert graph.rows.shape[0] == graph.labels.size == graph.lists.nodes
