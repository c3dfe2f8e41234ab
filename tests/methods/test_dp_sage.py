"""DP-SAGE: groups that are counted right, a table that matches training, predictions from the own row."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError
from graphveil.graph.validate import validate
from graphveil.methods.dp_sage import DpSage, neighbour_rows

SMALL = {"steps": 4, "hidden": 4, "max_degree": 3}


@pytest.fixture
def small():
    return worst_case_graph(seed=5)[0]


@pytest.mark.parametrize(
    "promise",
    [
        gv.NodeLevel(2.0),
        gv.NodeLevel(2.0, relation="replace"),
        gv.NodeLevel(2.0, adjacency="bounded-degree", max_degree=12),
    ],
    ids=lambda promise: f"{promise.adjacency}-{promise.relation}",
)
def test_epsilon_comes_close_to_the_target_and_never_exceeds_it(small, promise):
    certificate = DpSage(**SMALL).fit(small, promise).certificate
    assert certificate.holds and 1.99 < certificate.epsilon <= 2.0


def test_groups_count_the_rows_of_old_and_new_contacts():
    method = DpSage(max_degree=7)
    assert method.group(gv.NodeLevel(1.0)) == (8, 7)
    assert method.group(gv.NodeLevel(1.0, relation="replace")) == (15, 15)
    assert method.group(gv.NodeLevel(1.0, adjacency="bounded-degree", max_degree=2)) == (3, 2)


def test_blanking_a_hub_moves_only_the_rows_on_its_own_cut_list(small):
    method, promise = DpSage(**SMALL), gv.NodeLevel(1.0)
    graph = validate(small)
    blank = small.clone()
    blank.x[0], blank.y[0] = 0.0, -1
    blank.edge_index = small.edge_index[:, small.edge_index[0] != 0]
    rows = [
        neighbour_rows(method._lists(g, promise, 9), g, promise).matmul(torch.eye(6, dtype=torch.float64)).numpy()
        for g in (graph, validate(blank, on_bad_rows="zero"))
    ]
    assert np.count_nonzero((rows[0] != rows[1]).any(axis=1)) <= 3


def test_without_noise_and_clipping_inference_computes_what_training_saw(small):
    """Lists longer than everybody's are not cut; messages are then V times what training aggregated."""
    promise, graph = gv.NodeLevel(float("inf")), validate(small)
    predictor = DpSage(steps=4, hidden=4, max_degree=100, message_clip=1e3).fit(small, promise, seed=0).predictor
    (near,) = predictor.networks[""].branches[1]
    seen = neighbour_rows(graph.lists, graph, promise).matmul(near.weight.T.contiguous())
    assert np.allclose(predictor.tables["table"], seen.numpy(), atol=1e-3)


def test_predictions_read_only_the_own_row_and_survive_saving(small, tmp_path):
    model = DpSage(**SMALL).fit(small, gv.NodeLevel(2.0), seed=3)
    changed = small.clone()
    changed.x[3] = 7.0
    moved = (model.predict_proba(small) != model.predict_proba(changed)).any(dim=1)
    assert moved[3] and moved.sum() == 1
    model.save(tmp_path / "run")
    assert torch.equal(gv.load_model(tmp_path / "run").predict_proba(small), model.predict_proba(small))


@pytest.mark.parametrize("options", [{"max_degree": 0}, {"batch_rate": 0.0}, {"table_share": 1.0}])
def test_unusable_options_are_refused(small, options):
    with pytest.raises(InputError):
        DpSage(**options).fit(small, gv.NodeLevel(1.0))
