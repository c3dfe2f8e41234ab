"""GraphPrivatizer's attacks: they query the network of a published model, on the arcs and reports it learned from."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.attacks import has_published_api, published_api, published_link_teller, published_lsa2, sample_pairs
from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, random_split


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(nodes=200, classes=3, features=20, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


def attacked(graph, method, edges, backbone="gcn"):
    model = method(mode="published", backbone=backbone, epochs=5, feature_steps=2).fit(
        graph, gv.Local(3, 3, edges), seed=1
    )
    found = published_link_teller(model, sample_pairs(graph, "balanced", 60, 1), seed=1)
    return [finding.figures["auc"] for finding in found.findings]


def test_raw_edges_are_found_by_influence_and_replaced_ones_less_often(graph):
    """With raw edges every edge moves a prediction and few others do; at epsilon 0.1 most contacts were replaced."""
    found = zip(attacked(graph, gv.Lpgnn, "raw"), attacked(graph, gv.GraphPrivatizer, 0.1), strict=True)
    for raw, replaced in found:
        assert raw > 0.75 and replaced < raw - 0.05


def test_a_certain_answer_does_not_move_in_single_precision(graph):
    """Logits that lie some 300 apart: as single numbers every probability is 0 or 1, and only double ones show the edges."""
    model = gv.Lpgnn(mode="published", epochs=5, feature_steps=2, backbone="gcn").fit(
        graph, gv.Local(3, 3, "raw"), seed=1
    )
    network, (_, asked) = model.predictor.network, published_api(model)
    with torch.no_grad():
        first, second = network(asked.x, asked.edge_index).topk(2, dim=1).values.T
        for parameter in network.second.parameters():
            parameter.mul_(300.0 / (first - second).median())
    single, double = (
        finding.figures["auc"]
        for finding in published_link_teller(model, sample_pairs(graph, "balanced", 60, 1), seed=1).findings
    )
    assert double > single + 0.1, (single, double)


def test_the_attacker_asks_with_reports_on_the_arcs_that_the_server_has(graph):
    model = gv.GraphPrivatizer(mode="published", epochs=1, feature_steps=1).fit(graph, gv.Local(3, 3, 0.1), seed=1)
    target, asked = published_api(model)
    assert target.hops == 2 and np.array_equal(asked.edge_index.numpy(), model.predictor.arcs)
    assert np.unique(np.abs(asked.x.numpy() - 0.5).round(3)).size == 2  # one rectified bit each, the middle elsewhere
    assert published_lsa2(model, sample_pairs(graph, "balanced", 30, 1)).findings


def test_saved_runs_and_sound_models_have_no_such_network(graph, tmp_path):
    model = gv.Lpgnn(mode="published", epochs=1, feature_steps=1).fit(graph, gv.Local(3, 3, "raw"), seed=1)
    model.save(tmp_path / "run")
    sound = gv.Lpgnn(epochs=1, feature_steps=1).fit(graph, gv.Local(3, 3, "raw"), seed=1)
    # a network on a released graph, and no reports
    released = gv.EdgeRand(mode="published").fit(graph, gv.EdgeLevel(4), seed=1)
    for other in (gv.load_model(tmp_path / "run"), sound, released):
        assert not has_published_api(other)
        with pytest.raises(InputError, match="in this process"):
            published_api(other)
