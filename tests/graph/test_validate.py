"""Validation: every defect has one precise line, and nothing private decides a public fact."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphveil.errors import DataWarning, InputError
from graphveil.graph import DenseRows, Graph, SparseRows
from graphveil.graph.layout import csr_tensor, scipy_features
from graphveil.graph.lists import Lists
from graphveil.graph.validate import check_graph, validate
from graphveil.methods.base import PrivateMethod
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.gap import Gap
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.promise import NodeLevel


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


def test_a_row_whose_sum_overflows_is_not_a_bad_row(small: Data) -> None:
    small.x = small.x.double()
    small.x[1, :2] = 1.7e308
    small.x[2, 0] = float("-inf")
    with pytest.raises(InputError, match=r"in 1 rows, first in row 2"):
        quietly(small)


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


def csr(rows: list[list[int]], values: list[list[float]], columns: int) -> sp.csr_matrix:
    """Entries as they stand, doubles and all."""
    starts = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix((np.concatenate(values), np.concatenate(rows).astype(np.int32), starts), (len(rows), columns))


TWICE = csr([[0, 0], [1], [0, 1], [], [0], [1], [0]], [[1, 1], [2], [1, 1], [], [3], [1], [1]], 2)


def test_features_that_data_store_twice_are_added_up(small: Data) -> None:
    """To the norm as well: of two squares it would be less than what products add."""
    small.x = torch.sparse_csr_tensor(
        torch.from_numpy(TWICE.indptr), torch.from_numpy(TWICE.indices), torch.from_numpy(TWICE.data), (7, 2)
    )
    for x in (small.x, torch.sparse_coo_tensor([[0, 0, 1], [0, 0, 1]], [1.0, 1.0, 2.0], (7, 2))):
        small.x = x
        rows = quietly(small).rows
        assert rows.squared_norms()[:2].tolist() == [4.0, 4.0] and rows.values.has_canonical_format


LISTS = [[1, 2], [0, 2], [0, 1, 3], [2, 4], [3], [], []]
BY_HAND: dict[str, tuple[Callable[[Graph], Graph], str]] = {
    "a contact twice": (
        lambda graph: replace(graph, lists=hand_made([[1, 2], [0, 2, 2], *LISTS[2:]])),
        r"graph.lists has node 1 twice in the list of node 2: make",
    ),
    "a contact twice, not in a row": (
        lambda graph: replace(graph, lists=hand_made([*LISTS[:3], [2, 4, 2], *LISTS[4:]])),
        r"node 3 twice in the list of node 2",
    ),
    "oneself": (
        lambda graph: replace(graph, lists=hand_made([*LISTS[:5], [5], []])),
        r"graph.lists has node 5 in its own list",
    ),
    "a stranger": (lambda graph: replace(graph, lists=hand_made([*LISTS[:6], [9]])), r"no valid CSR matrix"),
    "too few lists": (lambda graph: replace(graph, lists=Lists(sp.csr_matrix((6, 6), dtype=bool))), r"7 rows, 6 lists"),
    "a feature twice": (
        lambda graph: replace(graph, rows=SparseRows(TWICE)),
        r"graph.rows has column 0 of row 0 twice: merge",
    ),
    "no finite feature": (lambda graph: replace(graph, rows=with_infinity(graph, sparse=False)), r"that is not finite"),
    "no finite sparse feature": (
        lambda graph: replace(graph, rows=with_infinity(graph, sparse=True)),
        r"that is not finite",
    ),
}


def with_infinity(graph: Graph, sparse: bool) -> DenseRows | SparseRows:
    x = graph.rows.values.numpy().copy()  # type: ignore[attr-defined]
    x[0, 0] = np.inf
    return SparseRows(sp.csr_matrix(x)) if sparse else DenseRows(torch.from_numpy(x))


def hand_made(rows: list[list[int]]) -> Lists:
    return Lists(csr(rows, [[True] * len(row) for row in rows], len(rows)))


@pytest.mark.parametrize("defect", BY_HAND)
@pytest.mark.parametrize("method", [DpMlp(), Gap()], ids=lambda method: method.name)
def test_a_graph_made_by_hand_in_which_somebody_counts_twice_is_refused_before_anything_is_spent(
    small: Data, defect: str, method: PrivateMethod
) -> None:
    spoil, message = BY_HAND[defect]
    graph, ledger = quietly(small), Ledger()
    with pytest.raises(InputError) as caught:
        method.fit(spoil(graph), NodeLevel(4.0, 1e-4), ledger=ledger)
    assert re.search(message, str(caught.value)) and "\n" not in str(caught.value)
    assert not ledger.entries


def test_graphs_made_by_hand_are_taken_where_everybody_counts_once(small: Data) -> None:
    graph, unsorted = quietly(small), sp.csr_matrix(quietly(small).rows.values.numpy())
    for row in range(7):
        span = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[span], unsorted.data[span] = unsorted.indices[span][::-1], unsorted.data[span][::-1]
    for fine in (graph, replace(graph, lists=hand_made(LISTS)), replace(graph, rows=SparseRows(unsorted))):
        assert check_graph(fine) is fine


def test_a_contact_that_is_listed_twice_would_move_sums_by_more_than_their_sensitivity() -> None:
    """Lemma M has 1; node 0 lists node 1 twice and has weight 2^(-1/2)."""
    lists = hand_made([[], [0, 0]])
    assert np.linalg.norm(lists.aggregate(lists.split_messages(np.array([[1.0], [0.0]])))) > 1.4


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
