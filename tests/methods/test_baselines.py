"""The baselines of LGA-PGNN: every backbone, what they send, and what they cannot know."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.learn.backbones import NAMES, twice_as_deep, with_dense_end
from graphveil.methods.lga_pgnn.baselines import SMALL
from graphveil.runs.verify import verify_run

WITHOUT = gv.Local("withheld", 3, "raw")
WITH = gv.Local(10, 3, "raw")
QUICK = {"epochs": 15, "hidden": 16, "width": 32}
BLIND = (gv.RandGnn, gv.RandomFeaturesGnn, gv.DegreeGnn)


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(nodes=300, classes=3, features=4, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


@pytest.mark.parametrize("backbone", NAMES)
@pytest.mark.parametrize("method", [gv.LdpGnn, gv.LapGnn, *BLIND], ids=lambda cls: cls.card.name)
def test_every_baseline_trains_with_every_backbone(graph, method, backbone):
    promise = WITHOUT if method in BLIND else WITH
    model = method(backbone=backbone, **QUICK | {"epochs": 2}).fit(graph, promise, seed=1)
    assert model.predictor.scores.shape == (300, 3) and np.isfinite(model.predictor.scores).all()
    assert model.certificate.epsilon == pytest.approx(3.0 if method in BLIND else 13.0, abs=1e-5)
    assert model.certificate.holds and "CONTACT LIST OF EVERY VERTEX" in str(model.certificate)


@pytest.mark.parametrize("method", BLIND, ids=lambda cls: cls.card.name)
def test_baselines_without_features_never_read_them(graph, method):
    other = graph.clone()
    other.x = torch.rand_like(graph.x)
    other.y = torch.where(other.test_mask, (other.y + 1) % 3, other.y)
    one, two = (method(**QUICK | {"epochs": 3}).fit(data, WITHOUT, seed=3).predictor.scores for data in (graph, other))
    assert np.array_equal(one, two)
    with pytest.raises(InputError, match="withheld"):
        method().fit(graph, WITH)


def test_laplace_reports_cost_the_feature_epsilon_whatever_the_width(graph):
    model = gv.LapGnn(**QUICK).fit(graph, WITH, seed=1)
    release = model.certificate.releases[0]
    assert release.mechanism.kind == "laplace-rows" and release.mechanism.epsilon == pytest.approx(10.0, abs=1e-9)
    with pytest.raises(InputError, match="features"):
        gv.LapGnn().fit(graph, WITHOUT)
    with pytest.raises(InputError, match="range"):
        gv.LapGnn(lower=1.0).fit(graph, WITH)


def session_of(graph, method):
    """The inputs of the network, as seen by training."""
    seen = []
    original = type(method).inputs

    class Spy(type(method)):
        def inputs(self, *told):
            seen.append(original(self, *told))
            return seen[-1]

    Spy(**method.get_params()).fit(graph, WITHOUT, seed=1)
    return seen[0]


def test_degrees_are_one_hot_with_a_common_last_column(graph):
    inputs = session_of(graph, gv.DegreeGnn(width=5, epochs=1))
    degrees = np.bincount(graph.edge_index[0].numpy(), minlength=300)
    assert np.array_equal(inputs.argmax(axis=1), np.minimum(degrees, 4)) and np.all(inputs.sum(axis=1) == 1)


def test_random_inputs_have_the_stated_spread(graph):
    """6 standard errors of the standard deviation of 300 x 64 normal numbers."""
    tolerance = 6 / np.sqrt(2 * 300 * 64)
    assert session_of(graph, gv.RandGnn(width=64, epochs=1)).std() / SMALL == pytest.approx(1.0, abs=tolerance)
    assert session_of(graph, gv.RandomFeaturesGnn(width=64, epochs=1)).std() == pytest.approx(1.0, abs=tolerance)


def test_the_deeper_networks_reach_as_far_as_they_should():
    """On a path, four graph layers carry a change four steps, two graph layers with a dense end carry it two."""
    path = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]])
    x = torch.zeros(6, 2)
    moved = x.clone()
    moved[0] = 1.0
    for build, reach in ((twice_as_deep, 4), (with_dense_end, 2)):
        network = build("sage", 2, 8, 3, 0.0, 0).eval()
        change = (network(moved, path) - network(x, path)).abs().sum(dim=1)
        assert torch.all(change[: reach + 1] > 1e-8) and torch.all(change[reach + 1 :] == 0)


def test_a_saved_run_of_each_verifies(graph, tmp_path):
    for method in (gv.LapGnn, gv.LdpGnn, *BLIND):
        model = method(**QUICK | {"epochs": 1}).fit(graph, WITHOUT if method in BLIND else WITH, seed=2)
        run = tmp_path / method.card.name
        model.save(run)
        assert verify_run(run) == ([], model.certificate.epsilon)
        assert torch.equal(gv.load_model(run).predict(graph), model.predict(graph))
