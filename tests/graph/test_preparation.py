"""Preparations: each does what its name says, leaves the original alone and leaves a note."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph import Lists, load_dataset, powerlaw_sbm, prepare
from graphveil.graph.data.preparation import STEPS, cut_lists
from graphveil.graph.validate import validate


def test_the_largest_component_is_renumbered_in_order(small: Data) -> None:
    part = prepare(small, ["largest-component"])
    assert part.num_nodes == 5 and part.num_edges == 10 and torch.equal(part.x, small.x[:5])
    assert part.notes == ("prepared: largest connected component only (reads the edges)",)
    assert small.num_nodes == 7 and "notes" not in small


def test_a_self_loop_does_not_save_an_isolated_node(small: Data) -> None:
    small.edge_index = torch.cat([small.edge_index, torch.tensor([[5], [5]])], dim=1)
    assert prepare(small, ["drop-isolated"]).num_nodes == 5


def test_the_top_classes_are_renumbered_and_named(small: Data) -> None:
    small.y = torch.tensor([2, 2, 0, 1, 0, -1, 0])
    small.num_classes, small.class_names = 3, ["a", "b", "c"]
    part = prepare(small, ["top-classes:2"])
    assert part.y.tolist() == [1, 1, 0, 0, 0] and part.num_classes == 2 and part.class_names == ["a", "c"]
    assert prepare(small, ["min-class-size:3"]).y.tolist() == [0, 0, 0]
    assert validate(part).classes == 2


def test_arcs_give_the_directed_source_without_self_loops(small: Data) -> None:
    small.directed_edge_index = torch.tensor([[0, 1, 2], [1, 1, 0]])
    part = prepare(small, ["arcs"])
    assert part.directed and part.edge_index.tolist() == [[0, 2], [1, 0]]
    del small.directed_edge_index
    with pytest.raises(InputError, match="no directed version"):
        prepare(small, ["arcs"])


def test_counts_are_clipped_to_one(small: Data) -> None:
    assert prepare(small, ["clip-counts"]).x.max() == 1 and small.x.max() == 3


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_rows_and_columns_are_divided_by_their_largest_value(small: Data, sparse: bool) -> None:
    x = torch.tensor([[0.2, 0.1], [0.0, 0.0], [-0.4, 0.1], [0.1, 0.0], [0.0, 0.05], [0.2, 0.2], [0.3, 0.1]])
    small.x = x.to_sparse_csr() if sparse else x
    rows, columns = (prepare(small, [step]).x for step in ("scale-rows", "scale-columns"))
    assert torch.allclose(rows.to_dense()[:3], torch.tensor([[1.0, 0.5], [0.0, 0.0], [-1.0, 0.25]]))
    assert torch.allclose(columns.to_dense(), x / torch.tensor([0.4, 0.2]))


def test_a_feature_column_becomes_the_label(small: Data) -> None:
    small.genre_names = ["pop", "jazz"]
    part = prepare(small, ["label-column:jazz"])
    assert part.y.tolist() == [0, 1, 1, 0, 0, 1, 0] and part.feature_names == ["pop"] and part.x.shape == (7, 1)
    with pytest.raises(InputError, match="did you mean jazz"):
        prepare(small, ["label-column:jaz"])


def test_a_degree_bound_cuts_own_lists_and_is_recorded_as_an_assumption() -> None:
    data = powerlaw_sbm(0, nodes=500)
    part = prepare(data, ["max-degree:4"])
    assert np.bincount(part.edge_index[0]).max() == 4
    assert "cut to 4 entries" in part.notes[0] and "guarantee is for the cut graph" in part.notes[0]
    assert torch.equal(part.edge_index, prepare(data, ["max-degree:4"]).edge_index)


def test_steps_are_applied_in_order(small: Data) -> None:
    part = prepare(small, ["top-classes:1", "drop-isolated"])
    assert part.num_nodes == 2 and len(part.notes) == 2


@pytest.mark.parametrize("step", ["largest-componnt", "top-classes", "top-classes:none", "max-degree:0", "nonsense"])
def test_unknown_or_incomplete_steps_are_explained(small: Data, step: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(small, [step])
    assert (
        "did you mean" in str(caught.value)
        or "known are" in str(caught.value)
        or "positive number" in str(caught.value)
    )


def test_a_degree_bound_must_be_positive(small: Data) -> None:
    with pytest.raises(InputError, match="positive integer"):
        cut_lists(small, 0)


def test_every_step_leaves_a_note_that_names_its_argument() -> None:
    assert all(
        "{}" in note for name, (_, note) in STEPS.items() if name in ("top-classes", "min-class-size", "max-degree")
    )


def test_cut_and_mutual_lists_bound_both_directions() -> None:
    data = prepare(powerlaw_sbm(seed=1, nodes=400, average_degree=30.0), ["max-degree:8", "mutual"])
    lists = Lists.from_edge_index(data.edge_index.numpy(), 400)
    assert 0 < lists.out_degrees.max() <= 8 and np.array_equal(lists.out_degrees, lists.in_degrees)


def test_lists_cut_and_kept_where_mutual_keep_a_degree_promise():
    senders, receivers = prepare(load_dataset("powerlaw-sbm", seed=0, max_degree=7), ["mutual"]).edge_index.numpy()
    degrees = np.bincount(senders), np.bincount(receivers)
    assert max(map(max, degrees)) == 7 and len(senders) > 1000
