"""GAP in both modes: what it costs, what it reads, and what it is without noise."""

import math

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.audit.central.replay import Recorder, Replayer
from graphveil.errors import InputError
from graphveil.graph.blocks import whole
from graphveil.graph.unit import unit_array
from graphveil.graph.validate import validate

SMALL = {"steps": 4, "hidden": 4, "epochs": 2}


@pytest.fixture
def small():
    return worst_case_graph(seed=5)[0]


@pytest.mark.parametrize(
    "promise",
    [
        gv.NodeLevel(2.0),
        gv.NodeLevel(2.0, relation="replace"),
        gv.NodeLevel(2.0, adjacency="bounded-degree", max_degree=12),
        gv.KNeighborLevel(2, 2.0),
        gv.EdgeLevel(2.0),
        gv.EdgeLevel(2.0, directed=True),
    ],
    ids=lambda promise: f"{promise.adjacency}-{promise.relation}",
)
def test_epsilon_reaches_the_target_and_never_exceeds_it(small, promise):
    certificate = gv.Gap(**SMALL).fit(small, promise).certificate
    assert certificate.holds and 1.999 < certificate.epsilon <= 2.0


def test_without_noise_the_hop_tables_are_the_plain_aggregates(small):
    model = gv.Gap(**SMALL).fit(small, gv.NonPrivate(), seed=0)
    graph = validate(small)
    rows = model.predictor.embedding(whole(graph)) * graph.present[:, None]
    adjacency = np.zeros((graph.nodes, graph.nodes))
    adjacency[small.edge_index[1], small.edge_index[0]] = 1.0
    np.fill_diagonal(adjacency, 0.0)
    for table in model.predictor.hops:
        rows = unit_array(adjacency @ rows)
        assert np.allclose(table, rows, atol=1e-5)


def test_only_training_records_pay_for_gradients(small):
    certificate = gv.Gap(**SMALL).fit(small, gv.NodeLevel(4.0)).certificate
    paid = certificate.costs
    assert paid["query"] < 0.6 * paid["train"]
    assert paid["train"] == pytest.approx(certificate.epsilon)


def test_published_edge_level_prints_claim_and_truth(small):
    certificate = gv.Gap(mode="published", hidden=4, epochs=2).fit(small, gv.EdgeLevel(1.0, 1e-6)).certificate
    assert certificate.epsilon_claimed == 1.0
    assert certificate.epsilon == pytest.approx(1.455, abs=2e-3)
    assert not certificate.holds and [gap.code for gap in certificate.gaps] == ["A1"]


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_published_node_level_has_a_claim_but_no_proof(small, relation):
    promise = gv.NodeLevel(8.0, adjacency="node", relation=relation)
    certificate = gv.Gap(mode="published", hidden=4, epochs=2).fit(small, promise).certificate
    assert certificate.epsilon is None and certificate.epsilon_claimed == 8.0
    assert {gap.code for gap in certificate.gaps} == {"D3", "D8"}


def test_replacing_doubles_the_claimed_bounds_and_the_noise_on_them():
    """DPDGC's Table 2: 2 sqrt(D) per hop and 2C per gradient sum, one multiplier for all."""
    facts = gv.PublicFacts(nodes=2708, features=1433, classes=7)
    promise = gv.NodeLevel(16.0, adjacency="node", relation="replace")
    encoder, first, _, classifier = gv.Gap(mode="published").plan(facts, promise).steps
    scale = first.mechanism.sigma / 20.0
    assert first.sensitivity["train"] == 20.0 and 1.8 < scale < 2.1
    assert encoder.mechanism.sigma == pytest.approx(2 * scale) == classifier.mechanism.sigma
    assert encoder.mechanism.rows == (1, 1)


def test_published_mode_reads_features_as_they_are_and_survives_saving(small, tmp_path):
    model = gv.Gap(mode="published", hidden=4, epochs=2).fit(small, gv.NodeLevel(8.0, adjacency="node"), seed=1)
    doubled = small.clone()
    doubled.x = 2 * small.x
    assert not torch.equal(model.predict_proba(small), model.predict_proba(doubled))
    model.save(tmp_path / "run")
    assert torch.equal(gv.load_model(tmp_path / "run").predict_proba(small), model.predict_proba(small))


def test_a_promise_that_is_not_proved_is_refused(small):
    for promise in (gv.NodeLevel(1.0, adjacency="node"), gv.KNeighborLevel(1, 1.0, relation="replace")):
        with pytest.raises(InputError, match="does not cover"):
            gv.Gap(**SMALL).fit(small, promise)


def test_bounded_degree_prints_its_promise(small):
    promise = gv.NodeLevel(1.0, adjacency="bounded-degree", max_degree=12)
    text = str(gv.Gap(**SMALL).fit(small, promise).certificate)
    assert "nobody has more than 12 contacts" in text and "own row excluded" in text


@pytest.mark.parametrize(
    "options", [{"hops": 0}, {"hidden": 0, "mode": "published"}, {"encoder_share": 0.8, "classifier_share": 0.2}]
)
def test_unusable_options_are_refused(small, options):
    with pytest.raises(InputError):
        gv.Gap(**options).fit(small, gv.NodeLevel(1.0))


@pytest.mark.parametrize("method", [gv.Gap, gv.Dpdgc, gv.DpMlp], ids=lambda method: method.card.name)
def test_each_mode_is_a_class_with_its_own_options(method):
    sound, published = method(), method(mode="published")
    assert type(published).__name__ == f"Published{method.__name__}" and published.card is sound.card
    assert published.gaps and not sound.gaps
    assert "steps" in sound.get_params() and "steps" not in published.get_params()
    with pytest.raises(InputError, match="has no option 'steps'"):
        method(mode="published", steps=3)


def test_planning_a_million_nodes_needs_no_data():
    facts = gv.PublicFacts(nodes=10**6, features=128, classes=10)
    plan = gv.Gap().plan(facts, gv.NodeLevel(2.0).with_default_delta(10**6))
    assert plan.epsilon() <= 2.0 and math.isfinite(plan.epsilon())
    assert [step.name for step in plan.steps] == ["mean", "encoder", "hop 1", "hop 2", "classifier"]


def test_an_absent_node_that_kept_its_list_sends_nothing(small):
    """A blanked record with edges left, as under k-neighbor: its own list must not matter to the first hop."""
    listed = small.clone()
    listed.x[0], listed.y[0] = 0.0, -1
    alone = listed.clone()
    alone.edge_index = listed.edge_index[:, listed.edge_index[0] != 0]
    recorder = Recorder()
    gv.Gap(**SMALL).fit(listed, gv.NodeLevel(2.0), seed=0, tape=recorder)
    replayer = Replayer(recorder.events, 0)
    gv.Gap(**SMALL).fit(alone, gv.NodeLevel(2.0), seed=0, tape=replayer)
    assert {m.distance for m in replayer.measured if m.release.name == "hop 1"} == {0.0}


def test_another_graph_is_refused_at_prediction(small):
    model = gv.Gap(**SMALL).fit(small, gv.NodeLevel(2.0))
    bigger = worst_case_graph(clique=9)[0]
    with pytest.raises(InputError, match="releases of one graph say nothing about another"):
        model.predict(bigger)


def test_predictions_read_only_the_own_row(small):
    model = gv.Gap(**SMALL).fit(small, gv.NodeLevel(2.0))
    changed = small.clone()
    changed.x[3] = 7.0
    before, after = model.predict_proba(small), model.predict_proba(changed)
    moved = (before != after).any(dim=1)
    assert not torch.equal(before[3], after[3]) and moved.sum() == 1
