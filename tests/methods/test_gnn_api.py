"""The GNN API of local models: a network that scores whatever reports and edges it is handed, new vertices included."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.attacks.target import as_graph, dense, with_rows
from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.graph.layout import scipy_features
from graphveil.methods.registry import build

NODES, CLASSES = 200, 3
NETWORKS = {
    "ldp-gnn": {},
    "lga-pgnn": {"augment": True},
    "lap-gnn": {},
    "lpgnn": {"feature_steps": 2},
    "ldp-gnn published": {},
    "lga-pgnn published": {},
    "lpgnn published": {"feature_steps": 2},
    "graph-privatizer published": {"feature_steps": 2},
    "rr-edges published": {"feature_steps": 2, "reading": "text"},
}


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(5, nodes=NODES, features=8, classes=CLASSES, homophily=0.9)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, 0)


def trained(graph, name):
    method, _, mode = name.partition(" ")
    options = {"epochs": 5} | NETWORKS[name] | ({"mode": mode} if mode else {})
    edges = 1.0 if method in ("graph-privatizer", "rr-edges") else "raw"
    return build(method, options).fit(graph, gv.Local(4, 4, edges), seed=0)


def rows_of(data):
    return dense(scipy_features(data))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_scores_the_reports_and_edges_it_is_asked_with(graph, tmp_path, name):
    model = trained(graph, name)
    model.save(tmp_path / "run")
    for found in (model, gv.load_model(tmp_path / "run")):
        api = found.gnn_api()
        own = api.predict_proba(api.data)
        assert torch.allclose(own, model.predict_proba(), atol=1e-5)

    bare, changed = api.data, rows_of(api.data)
    bare.edge_index = bare.edge_index[:, :0]
    assert (api.predict_proba(bare) - own).abs().max() > 1e-3
    hub = int(torch.bincount(api.data.edge_index[0], minlength=NODES).argmax())
    changed[hub] = changed.mean(axis=0) + 1
    moved = (api.predict_proba(with_rows(api.data, changed)) - own).abs().max(dim=1).values > 1e-6
    heard_by = api.data.edge_index[1, api.data.edge_index[0] == hub]
    assert moved[heard_by].any()

    more = with_rows(api.data, np.concatenate([rows_of(api.data), rows_of(api.data)[:2]]))
    alone = api.predict_proba(more)
    friends = torch.arange(20, 40)
    arcs = torch.stack([friends, torch.full((20,), NODES)])  # the first newcomer hears twenty people
    more.edge_index = torch.cat([more.edge_index, arcs, arcs.flip(0)], dim=1)
    joined = api.predict_proba(more)
    assert joined.shape == (NODES + 2, CLASSES) and (joined[NODES] - alone[NODES]).abs().max() > 1e-4


@pytest.mark.parametrize("name", ["ldp-gnn", "lpgnn", "lpgnn published"])
def test_features_in_the_clear_are_asked_with_as_they_are(graph, name):
    method, _, mode = name.partition(" ")
    options = {"epochs": 5} | NETWORKS[name] | ({"mode": mode} if mode else {})
    model = build(method, options).fit(graph, gv.Local("raw", 4, "raw"), seed=0)
    api = model.gnn_api()
    assert torch.allclose(api.predict_proba(api.data), model.predict_proba(), atol=1e-5)
    assert np.allclose(rows_of(api.data), graph.x)
    assert np.allclose(rows_of(api.reported(as_graph(graph), 1, np.arange(NODES) < 9)), graph.x)


@pytest.mark.parametrize("name", ["lga-pgnn published", "lpgnn"])
def test_predictions_of_the_model_itself_read_nothing_of_the_data(graph, name):
    """Clean features and edges of ``data`` are no query: own-row predictions come from reports, or newcomers' reports."""
    model, other = trained(graph, name), graph.clone()
    other.x, other.edge_index = 1 - graph.x, graph.edge_index[:, :0]
    assert torch.equal(model.predict_proba(graph), model.predict_proba(other))


def test_an_answer_reads_what_is_handed_in_and_not_the_stored_reports(graph):
    model = trained(graph, "ldp-gnn")
    api = model.gnn_api()
    asked = api.data
    before = api.predict_proba(asked)
    model.predictor.rows, model.predictor.edges = 0 * model.predictor.rows, model.predictor.edges[:, :0]
    assert torch.equal(api.predict_proba(asked), before)


@pytest.mark.parametrize("name", ["graph-privatizer published", "rr-edges published"])
def test_private_lists_are_asked_over_as_reported(graph, name):
    """What the API hands out are the arcs that the server heard, and about another graph those it would hear."""
    api = trained(graph, name).gnn_api()
    truth = {*map(tuple, graph.edge_index.T.tolist())}
    for data in (api.data, api.reported(as_graph(graph), 7)):
        heard = {*map(tuple, data.edge_index.T.tolist())}
        assert len(heard - truth) > 20 and len(truth - heard) > 20


def test_reports_on_another_graph_are_made_by_the_same_client(graph):
    """Known people keep the one report they have sent; the others send what their own records say under the same noise."""
    model = trained(graph, "ldp-gnn")
    api, known = model.gnn_api(), np.arange(NODES) < 100
    other = graph.clone()
    other.edge_index = graph.edge_index[:, :50]
    asked = api.reported(as_graph(other), 3, known)
    stored, rows = rows_of(api.data), rows_of(asked)
    assert np.array_equal(rows[known], stored[known]) and not np.array_equal(rows[~known], stored[~known])
    assert asked.edge_index.shape[1] == as_graph(other).lists.arcs
    sent, said = (np.count_nonzero(one, axis=1).max() for one in (stored, rows[~known]))
    assert said == sent < rows.shape[1] and np.abs(rows).max() == pytest.approx(np.abs(stored).max(), rel=0.5)


def test_what_the_network_does_not_read_is_refused(graph):
    api = trained(graph, "ldp-gnn").gnn_api()
    with pytest.raises(InputError, match="8 attributes"):
        api.predict_proba(with_rows(api.data, np.zeros((NODES, 5))))
    outside = api.data
    outside.edge_index = torch.tensor([[0], [NODES]])
    with pytest.raises(InputError, match="not among"):
        api.predict_proba(outside)
    for method, promise in (
        (gv.DpMlp(steps=2), gv.NodeLevel(1)),
        (gv.LocalRecipe(epochs=2), gv.Local("withheld", 4, "raw")),
    ):
        with pytest.raises(InputError, match="keeps no network"):
            method.fit(graph, promise, seed=0).gnn_api()


@pytest.mark.parametrize("name", ["graph-privatizer published", "rr-edges published"])
def test_contacts_in_the_clear_are_no_way_into_a_model_of_private_lists(graph, name):
    with pytest.raises(InputError, match="learned from private lists"):
        trained(graph, name).predictor.newcomers(None, False)
