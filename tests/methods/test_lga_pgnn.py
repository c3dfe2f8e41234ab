"""LGA-PGNN and LDP-GNN: readings and their certificates, augmentation, holders, and that only reports are used."""

import math
from functools import partial

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.errors import InputError
from graphveil.exchange.randomizers import Rest
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.learn.backbones import NAMES
from graphveil.methods.lga_pgnn import augmentation
from graphveil.methods.local_method import partition
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.noise import Noise
from graphveil.runs.verify import verify_run

PROMISE = gv.Local(10, 3, "raw")
AS_PUBLISHED = gv.Local(5, "raw", "raw")
QUICK = {"epochs": 25, "hidden": 16}


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(nodes=400, classes=3, features=6, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


@pytest.fixture(autouse=True)
def quick_generator(monkeypatch):
    """Neighbours from an auto-encoder of a few steps: how well it learns is seen in ``test_augmentation.py``."""
    quick = partial(augmentation.train_auto_encoder, steps=20)
    monkeypatch.setattr(augmentation, "train_auto_encoder", quick)


@pytest.mark.parametrize("backbone", NAMES)
def test_every_backbone_learns_from_reports(graph, backbone):
    model = gv.LgaPgnn(backbone=backbone, **QUICK).fit(graph, PROMISE, seed=1)
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    assert model.score(graph) > majority + 0.1
    assert model.certificate.epsilon == pytest.approx(13.0, abs=1e-6) and model.certificate.holds
    assert model.certificate.gaps == ()


@pytest.mark.parametrize("mode", ["sound", "published"])
def test_scores_of_training_are_those_of_the_network_that_is_kept(graph, mode):
    split = random_split(graph.clone(), seed=2, fractions=(0.05, 0.1, 0.85))  # training sees a part of the graph only
    model = gv.LgaPgnn(mode=mode, **QUICK).fit(split, AS_PUBLISHED, seed=1)
    again = model.predictor.slot_scores()
    assert np.allclose(model.predictor.scores, again, atol=1e-5) and np.ptp(again) > 0


def test_reports_on_which_no_epoch_is_finite_are_an_error_and_no_guess(graph):
    with pytest.raises(InputError, match="diverged on these reports"):
        gv.LdpGnn(mode="published", learning_rate=1e9, **QUICK).fit(graph, AS_PUBLISHED, seed=1)


def test_the_raw_reading_has_no_epsilon_and_the_certificate_says_why(graph):
    model = gv.LgaPgnn(mode="published", reading="raw", **QUICK).fit(graph, AS_PUBLISHED, seed=1)
    certificate = model.certificate
    assert certificate.epsilon is None and certificate.to_json()["epsilon"] is None and not certificate.holds
    assert certificate.epsilon_claimed == 5.0
    assert "4 of 6 attributes" in str(certificate) and "sent as they are" in str(certificate)
    assert "delta is at least 0.6667" in str(certificate)  # m* = floor(5/2.42) = 2 of 6
    assert {gap.code for gap in certificate.gaps} == {"L3", "L4", "L5"}
    for part in ("THE LABEL OF EVERY VERTEX", "THE CONTACT LIST OF EVERY VERTEX"):
        assert f"SENT IN THE CLEAR: {part}" in str(certificate)


def test_the_zero_reading_of_the_published_mode_still_costs_epsilon_for_the_features(graph):
    certificate = gv.LdpGnn(mode="published", reading="zero", **QUICK).fit(graph, AS_PUBLISHED, seed=1).certificate
    assert certificate.releases[0].mechanism.epsilon == pytest.approx(5.0, abs=1e-6)
    assert certificate.epsilon is None  # the labels are raw


def test_algorithm_1_as_printed_costs_epsilon_for_every_attribute_and_learns(graph):
    method = gv.LgaPgnn(mode="published", weight_decay=0.0, **QUICK | {"epochs": 60})
    model = method.fit(graph, AS_PUBLISHED, seed=1)
    certificate = model.certificate
    assert certificate.releases[0].mechanism.epsilon == pytest.approx(6 * 5.0, abs=1e-5)  # six attributes
    assert certificate.epsilon_claimed == 5.0 and certificate.epsilon is None and not certificate.holds
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    assert model.score(graph) > majority + 0.1


@pytest.mark.parametrize("backbone", NAMES)
def test_every_backbone_stands_behind_the_private_layer(graph, backbone):
    options = QUICK | {"epochs": 2, "hidden": 6, "backbone": backbone}
    scores = gv.LdpGnn(mode="published", **options).fit(graph, AS_PUBLISHED, seed=1).predictor.scores
    assert np.isfinite(scores).all() and np.ptp(scores) > 0


def test_giving_every_attribute_the_whole_budget_costs_m_times_as_much(graph):
    method = gv.LgaPgnn(mode="published", reading="zero", sampled=3, per_dimension="eps", **QUICK)
    assert method.randomizer(PublicFacts.of(graph), 2.0).epsilon == pytest.approx(6.0, abs=1e-6)


def test_both_modes_choose_their_own_number_of_attributes():
    facts = PublicFacts(100, 1433, 7)
    sound, published = gv.LgaPgnn().randomizer(facts, 10.0), gv.LgaPgnn(mode="published").randomizer(facts, 10.0)
    assert published.m == 1433 and (published.lower, published.upper) == (-1.0, 1.0)
    assert published.epsilon == pytest.approx(14330, rel=1e-6)
    raw = gv.LgaPgnn(mode="published", reading="raw").randomizer(facts, 10.0)
    assert raw.m == 4 and raw.rest is Rest.RAW and raw.law.epsilon == 2.5
    assert sound.rest is Rest.ZERO and sound.epsilon == pytest.approx(10.0, abs=1e-6)
    spread = lambda one: float(one.variance(np.zeros(1433)).sum())
    assert spread(sound) <= spread(gv.LgaPgnn(sampled="paper").randomizer(facts, 10.0))


def test_a_saved_run_predicts_the_same_and_verifies(graph, tmp_path):
    for number, (mode, promise) in enumerate((("sound", PROMISE), ("published", AS_PUBLISHED))):
        model = gv.LgaPgnn(mode=mode, **QUICK | {"epochs": 2}).fit(graph, promise, seed=2)
        run = tmp_path / str(number)
        model.save(run)
        assert torch.equal(gv.load_model(run).predict(graph), model.predict(graph))
        assert verify_run(run) == ([], model.certificate.epsilon)


@pytest.mark.parametrize("mode", ["sound", "published"])
def test_clean_test_labels_are_never_used(graph, mode):
    other = graph.clone()
    other.y = torch.where(other.test_mask, (other.y + 1) % 3, other.y)
    method = gv.LgaPgnn(mode=mode, **QUICK | {"epochs": 5})
    one, two = (method.fit(data, PROMISE, seed=3).predictor.scores for data in (graph, other))
    assert np.array_equal(one, two)


def test_clean_features_reach_nothing_but_the_randomizer(graph, monkeypatch):
    """With the reports held fixed, other features change nothing that is learnt."""
    from graphveil.exchange.randomizers import Piecewise

    drawn, original = {}, Piecewise.randomize

    def same(self, records, broadcast, rng):
        if not drawn:
            drawn["reports"] = original(self, records, broadcast, Noise(0))
        return drawn["reports"]

    monkeypatch.setattr(Piecewise, "randomize", same)
    other = graph.clone()
    other.x = 1 - graph.x
    method = gv.LgaPgnn(**QUICK | {"epochs": 3})
    one, two = (method.fit(data, PROMISE, seed=3).predictor.scores for data in (graph, other))
    assert np.array_equal(one, two)


def test_neighbours_are_generated_in_published_mode_and_zeros_taken_in_sound_mode(graph, monkeypatch):
    trained = []
    original = augmentation.train_auto_encoder
    monkeypatch.setattr(augmentation, "train_auto_encoder", lambda *given: trained.append(1) or original(*given))

    def generators(method, promise):
        before = len(trained)
        method.fit(graph, promise, seed=1)
        return len(trained) - before

    once = QUICK | {"epochs": 1}
    assert generators(gv.LgaPgnn(**once), PROMISE) == 0
    assert generators(gv.LgaPgnn(augment=True, samples=4, **once), PROMISE) == 1
    assert generators(gv.LgaPgnn(mode="published", **once), AS_PUBLISHED) == 1
    assert generators(gv.LgaPgnn(mode="published", augment=False, samples=3, **once), AS_PUBLISHED) == 0
    assert generators(gv.LdpGnn(mode="published", **once), AS_PUBLISHED) == 0


def test_several_holders_report_every_vertex_once_and_pay_for_all_of_theirs(graph):
    names = partition(400, 3)
    assert sorted(np.unique(names, return_counts=True)[1]) == [133, 133, 134]
    model = gv.LgaPgnn(**QUICK).fit(graph, PROMISE, seed=1, holders=names)
    certificate = model.certificate
    assert certificate.per_vertex == pytest.approx(13.0, abs=1e-6) and certificate.per_edge is None
    assert certificate.per_holder == {
        name: pytest.approx(13.0 * count, rel=1e-6)
        for name, count in zip(*np.unique(names, return_counts=True), strict=True)
    }
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    assert model.score(graph) > majority + 0.1
    for wrong in (0, 401):
        with pytest.raises(InputError, match="from 1 to 400"):
            partition(400, wrong)


@pytest.mark.parametrize(
    ("options", "promise", "word"),
    [
        ({"reading": "raw"}, PROMISE, "no option 'reading'"),
        ({"per_dimension": "eps"}, PROMISE, "no option 'per_dimension'"),
        ({"mode": "published", "reading": "half"}, PROMISE, "half"),
        ({"mode": "published", "per_dimension": "some"}, PROMISE, "some"),
        ({"mode": "published", "generate": "dreams"}, PROMISE, "dreams"),
        ({"sampled": "best"}, PROMISE, "best"),
        ({"sampled": 0}, PROMISE, "at least 1"),
        ({"samples": 0}, PROMISE, "at least 1"),
        ({"backbone": "gin"}, PROMISE, "gin"),
        ({"loss": "drop"}, PROMISE, "drop"),
        ({"lower": 2.0}, PROMISE, "range"),
        ({"filled": 0.0}, PROMISE, "filled"),
        ({}, gv.Local(1, 1, 1), "edges"),
        ({}, gv.Local(1, "withheld", "raw"), "labels"),
        ({}, gv.Local("withheld", 1, "raw"), "features"),
        ({}, gv.NodeLevel(1.0), "local"),
    ],
)
def test_impossible_requests_are_refused_before_anything_is_sent(graph, options, promise, word):
    with pytest.raises(InputError, match=word):
        gv.LgaPgnn(**options).fit(graph, promise)


def test_raw_features_are_the_papers_non_private_line(graph):
    certificate = gv.LgaPgnn(**QUICK | {"epochs": 1}).fit(graph, gv.Local("raw", "raw", "raw"), seed=1).certificate
    assert certificate.epsilon is None and not math.isfinite(certificate.promise.epsilon)
