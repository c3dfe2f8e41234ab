"""LPGNN: rounds and certificate, every backbone, nothing clean is used, and features that carry nothing."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.learn.backbones import NAMES
from graphveil.privacy.facts import PublicFacts
from graphveil.runs.verify import verify_run

PROMISE = gv.Local(3, 3, "raw")
QUICK = {"epochs": 25, "feature_steps": 4, "hidden": 16}


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(nodes=400, classes=3, features=6, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


@pytest.mark.parametrize("backbone", NAMES)
def test_every_backbone_learns_from_reports(graph, backbone):
    model = gv.Lpgnn(backbone=backbone, **QUICK).fit(graph, PROMISE, seed=1)
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    assert model.score(graph) > majority + 0.1
    assert model.certificate.epsilon == pytest.approx(6.0, abs=1e-6) and model.certificate.holds


def test_a_saved_run_predicts_the_same_and_verifies(graph, tmp_path):
    model = gv.Lpgnn(**QUICK).fit(graph, PROMISE, seed=2)
    model.save(tmp_path / "run")
    assert torch.equal(gv.load_model(tmp_path / "run").predict(graph), model.predict(graph))
    assert verify_run(tmp_path / "run")[0] == []


def test_clean_test_labels_are_never_used(graph):
    other = graph.clone()
    other.y = torch.where(other.test_mask, (other.y + 1) % 3, other.y)
    one, two = (gv.Lpgnn(**QUICK).fit(data, PROMISE, seed=3).predictor.scores for data in (graph, other))
    assert np.array_equal(one, two)


def test_raw_features_or_labels_have_no_epsilon_and_still_train(graph):
    for promise in (gv.Local("raw", 3, "raw"), gv.Local(3, "raw", "raw"), gv.Local("raw", "raw", "raw")):
        certificate = gv.Lpgnn(**QUICK | {"epochs": 2}).fit(graph, promise, seed=1).certificate
        assert certificate.epsilon is None and not certificate.holds


@pytest.mark.parametrize(
    ("options", "promise", "word"),
    [
        ({}, gv.Local(3, 3, 1.0), "raw"),
        ({}, gv.Local("withheld", 3, "raw"), "features and labels"),
        ({"backbone": "gin"}, PROMISE, "gin"),
        ({"loss": "hinge"}, PROMISE, "hinge"),
        ({"lower": 2.0}, PROMISE, "range"),
        ({"features": "some"}, PROMISE, "option features"),
        ({"features": "random"}, PROMISE, "withheld"),
        ({"label_steps": -1}, PROMISE, "label_steps"),
    ],
)
def test_impossible_requests_are_refused_before_anything_is_sent(graph, options, promise, word):
    with pytest.raises(InputError, match=word):
        gv.Lpgnn(**options).fit(graph, promise)


def test_auto_keeps_the_loss_that_does_better_on_released_labels_early_on(graph):
    trial = QUICK["epochs"] * 2 // 5
    early = {
        kind: gv.Lpgnn(loss=kind, **QUICK | {"epochs": trial}).fit(graph, PROMISE, seed=5).predictor.facts
        for kind in ("drop", "forward")
    }
    best = min(early, key=lambda kind: early[kind]["validation_loss"])
    found = {kind: gv.Lpgnn(loss=kind, **QUICK).fit(graph, PROMISE, seed=5).predictor for kind in (best, "auto")}
    assert found["auto"].facts["loss"] == best and np.array_equal(found["auto"].scores, found[best].scores)


def test_published_mode_is_drop_and_its_certificate_holds(graph, tmp_path):
    model = gv.Lpgnn(mode="published", **QUICK).fit(graph, PROMISE, seed=5)
    assert model.certificate.mode == "published" and model.certificate.holds and model.certificate.gaps == ()
    assert model.certificate.epsilon == model.certificate.epsilon_claimed == pytest.approx(6.0, abs=1e-6)
    drop = gv.Lpgnn(mode="published", loss="drop", **QUICK).fit(graph, PROMISE, seed=5)
    assert np.array_equal(model.predictor.scores, drop.predictor.scores)
    model.save(tmp_path / "run")
    assert verify_run(tmp_path / "run")[0] == []


def test_random_features_send_nothing_and_do_as_well_on_public_edges(graph):
    """local.md: on public edges propagated noise is what the network learns from; here within 10 points on 100 test nodes."""
    random = gv.Lpgnn(features="random", compress=64, **QUICK).fit(graph, gv.Local("withheld", 3, "raw"), seed=1)
    assert random.certificate.epsilon == pytest.approx(3.0, abs=1e-6) and len(random.certificate.releases) == 1
    reports = gv.Lpgnn(**QUICK).fit(graph, PROMISE, seed=1)
    assert random.score(graph) > reports.score(graph) - 0.10


def test_none_is_a_number_of_steps(graph):
    assert gv.Lpgnn(**QUICK | {"epochs": 2, "feature_steps": 0, "label_steps": 0}).fit(graph, PROMISE, seed=1)


def test_attributes_outside_the_public_range_are_clipped_and_said_without_a_number(graph):
    with pytest.warns(gv.DataWarning, match="^some attributes lay outside"):
        gv.Lpgnn(**QUICK | {"epochs": 1, "lower": 0.25, "upper": 0.75}).fit(graph, PROMISE, seed=1)


@pytest.mark.parametrize("method", [gv.Lpgnn, gv.RrEdges, gv.GraphPrivatizer, gv.LdpGnn, gv.LgaPgnn, gv.LapGnn])
@pytest.mark.parametrize("mode", ["sound", "published"])
def test_public_ranges_may_be_negative_but_not_empty(method, mode):
    if mode not in {card["name"]: card["modes"] for card in gv.methods()}[method().name]:
        pytest.skip("one mode only")
    facts, promise = PublicFacts(40, 6, 3), gv.Local(2.0, 2.0, "raw")
    ranged = method(mode=mode, lower=-3.0, upper=-1.0)
    (asked,) = [round.randomizer for round in ranged.rounds(facts, promise) if round.name == "features"]
    assert asked.lower <= -3.0 and asked.upper >= -1.0
    assert any("-3..-1" in statement for statement in ranged.public_statements(promise))
    for lower, upper in ((1.0, -1.0), (0.5, 0.5)):
        with pytest.raises(InputError, match="empty"):
            method(mode=mode, lower=lower, upper=upper)
