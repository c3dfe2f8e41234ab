"""Attacks on local models query their network through the GNN API, in memory or saved."""

import numpy as np
import pytest

import graphveil as gv
from graphveil.attacks import LinkTeller, Lsa2, Membership, sample_pairs
from graphveil.attacks.link_teller import influence
from graphveil.attacks.membership import PUBLISHED, SAME_GRAPH, member_world, on_full_graph
from graphveil.attacks.target import REPORTS, as_graph, posteriors, queried
from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.methods.registry import build

RAW = gv.Local(4, "raw", "raw")
NETWORKS = {
    "lga-pgnn published": {},
    "ldp-gnn": {},
    "lpgnn": {"feature_steps": 3},
    "lpgnn published": {"feature_steps": 3},
}


@pytest.fixture(scope="module")
def local():
    data = powerlaw_sbm(1, nodes=300, features=12, classes=3, average_degree=5.0)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=0)


def trained(data, name, promise=RAW):
    method, _, mode = name.partition(" ")
    return build(method, {"epochs": 5} | NETWORKS[name] | ({"mode": mode} if mode else {})).fit(data, promise, seed=1)


@pytest.mark.parametrize("name", NETWORKS)
def test_raw_edges_of_a_local_network_are_found_by_influence_and_so_in_a_saved_run(local, tmp_path, name):
    model = trained(local, name)
    model.save(tmp_path / "run")
    pairs = sample_pairs(local, "degree-matched", 100, 0)
    found = [LinkTeller().run(one, local, pairs) for one in (model, gv.load_model(tmp_path / "run"))]
    assert found[0].auc == pytest.approx(found[1].auc) and found[0].auc > 0.85
    api = model.gnn_api()
    assert LinkTeller().run(api, api.data, pairs).auc == found[0].auc
    assert REPORTS in found[0].knowledge and "clean" not in found[0].knowledge
    assert {control.name for control in found[0].controls} == {"degree product", "label equality"}


@pytest.mark.parametrize("name", NETWORKS)
def test_quick_forms_give_what_one_query_per_node_gives(local, name):
    target, asked = queried(trained(local, name), local)
    pairs = sample_pairs(local, "balanced", 40, 0)
    for compare in ("logits", "probabilities"):
        quick, slow = (
            influence(target, asked, pairs.first, pairs.second, form=form, compare=compare)
            for form in ("auto", "queries")
        )
        assert quick.form in ("incremental", "grouped queries") and slow.queries == 1 + len(np.unique(pairs.second))
        assert quick.queries < slow.queries and slow.values.max() > 0
        np.testing.assert_allclose(quick.values, slow.values, atol=2e-3 * slow.values.max())


def test_lsa2_asks_the_network_and_compares_reports(local):
    model = trained(local, "ldp-gnn")
    pairs = sample_pairs(local, "balanced", 60, 0)
    found = Lsa2().run(model, local, pairs)
    assert REPORTS in found.knowledge
    np.testing.assert_allclose(posteriors(*queried(model, local)), model.predict_proba(), atol=1e-5)


@pytest.mark.parametrize("name", ["lga-pgnn published", "ldp-gnn", "lpgnn"])
def test_members_and_others_are_asked_on_both_graphs_with_their_reports(local, name):
    graph = as_graph(local)
    members = np.arange(150)
    world = member_world(graph, members, 0)
    model = trained(world, name)
    (home, at_home), (api, full) = queried(model, world), on_full_graph(model, graph, world, 0)
    assert at_home.edge_index.shape[1] == world.lists.arcs < full.edge_index.shape[1] == graph.lists.arcs
    assert np.abs(posteriors(home, at_home) - posteriors(api, full)).max() > 1e-3
    here, there = (data.x.to_dense().numpy() for data in (at_home, full))
    assert np.array_equal(here[members], there[members]) and not np.array_equal(here[150:], there[150:])


def test_the_membership_game_of_a_local_network_differs_between_the_two_graphs(local):
    method = build("ldp-gnn", {"epochs": 30})
    found = Membership("lr").run(method, RAW, local)
    assert found[SAME_GRAPH].figures["auc"] != found[PUBLISHED].figures["auc"]


def test_a_saved_local_run_is_asked_about_members_with_the_reports_it_holds(local, tmp_path):
    """Everybody took part in it, so that the full graph and the training graph are one: what its server has."""
    trained(local, "ldp-gnn").save(tmp_path / "run")
    model = gv.load_model(tmp_path / "run")
    graph = as_graph(local)
    full, own = (posteriors(*asked) for asked in (on_full_graph(model, graph, graph, 0), queried(model, graph)))
    np.testing.assert_allclose(full, own, atol=1e-5)
    assert Membership("lr").run_on(model, model.method, RAW, local).findings


def test_under_a_list_budget_the_api_stands_on_reported_arcs_and_gives_fewer_edges_away(local):
    pairs = sample_pairs(local, "degree-matched", 100, 0)
    method = build("graph-privatizer", {"mode": "published", "epochs": 5, "feature_steps": 3, "reading": "text"})
    lists = LinkTeller().run(method.fit(local, gv.Local(4, "raw", 0.1), seed=1), local, pairs).auc
    assert lists < LinkTeller().run(trained(local, "lpgnn published"), local, pairs).auc - 0.05


def test_networks_on_random_numbers_take_no_features_and_other_people_are_refused(local):
    method = build("random-features-gnn", {"epochs": 2, "width": 8})
    model = method.fit(local, gv.Local("withheld", "raw", "raw"), seed=1)
    assert LinkTeller().run(model, local, sample_pairs(local, "balanced", 30, 0)).facts["form"] == "own row"
    fewer = powerlaw_sbm(1, nodes=100, features=12, classes=3)
    with pytest.raises(InputError, match="its own 300 people"):
        LinkTeller().run(trained(local, "ldp-gnn"), fewer, sample_pairs(fewer, "balanced", 10, 0))


def test_data_in_another_order_are_refused(local):
    named = local.clone()
    named.ids = [f"p{v}" for v in range(300)]
    model = trained(named, "ldp-gnn")
    pairs = sample_pairs(named, "balanced", 10, 0)
    assert LinkTeller().run(model, named, pairs).facts["form"] == "grouped queries"
    turned = named.clone()
    turned.ids = named.ids[::-1]
    with pytest.raises(InputError, match="in the order of training"):
        LinkTeller().run(model, turned, pairs)
