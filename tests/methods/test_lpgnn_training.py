"""LPGNN as its released code trains it: KProp along arcs, rectified rows, Drop, and which epoch is kept."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import graphveil as gv
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.learn.backbones import NAMES, as_lpgnn_builds
from graphveil.learn.propagated import PropagatedRows
from graphveil.methods.common.lpgnn_training import Epoch
from graphveil.methods.common.published_network import along_arcs, rectified

ARCS = np.array([[0, 1, 2, 2], [1, 2, 0, 0]])  # 2 -> 0 twice; nobody is heard by 3


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(nodes=400, classes=3, features=6, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


def test_the_matrix_follows_the_arcs_and_divides_by_the_receivers_degrees():
    """gcn_norm on the same arcs, as an independent computation; double arcs weigh double and somebody unheard hears nothing."""
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    matrix = along_arcs(ARCS, 4).toarray()
    edges, weights = gcn_norm(torch.as_tensor(ARCS), None, 4, add_self_loops=False)
    expected = np.zeros((4, 4))
    np.add.at(expected, (edges[1].numpy(), edges[0].numpy()), weights.numpy())
    assert np.allclose(matrix, expected, atol=1e-6)
    assert matrix[0, 2] == pytest.approx(2 / np.sqrt(2)) and not matrix[3].any()


def test_an_epoch_is_kept_only_if_everything_improved_and_nothing_beats_the_noise():
    best = Epoch(1.0, 0.5, 0.5, np.zeros(1), 1)
    assert Epoch(0.9, 0.6, 0.6, np.zeros(1), 2).beats(best, 0.8)
    for worse in ((1.1, 0.6, 0.6), (0.9, 0.5, 0.6), (0.9, 0.6, 0.5), (0.9, 0.81, 0.6), (0.9, 0.6, 0.85)):
        assert not Epoch(*worse, np.zeros(1), 2).beats(best, 0.8)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_dropped_and_attention_has_the_heads_of_the_released_code(name):
    network = as_lpgnn_builds(name, 5, 8, 3, 0.9, seed=0)
    x, edges = torch.ones(4, 5), torch.as_tensor(ARCS)
    network.train()
    hidden = [network.first(x, edges) for _ in range(2)]
    assert torch.equal(*hidden) and not network.drop_inputs
    assert network(x, edges).shape == (4, 3)
    if name != "sgc":
        assert hidden[0].shape[1] == (32 if name == "gat" else 8)


def test_sparse_reports_are_rectified_as_dense_ones_are():
    reports = sp.csr_matrix(np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]], dtype=np.int8))
    kept = {"rectifier": np.array([2.5, 0.5])}
    expected = np.array([[0.5, -2, 0.5], [3, 0.5, 0.5], [0.5, 0.5, 0.5]], dtype=np.float32)
    for rows in (reports, reports.tocsc(), reports.toarray(), torch.from_numpy(reports.toarray())):
        assert np.array_equal(rectified(rows, kept), expected)


@pytest.mark.parametrize("epsilon", [3, 9])  # one attribute each, and four
def test_wide_reports_train_as_factors_as_they_do_as_rows(graph, monkeypatch, epsilon):
    """The same seed, so the same reports and coins: every score agrees up to rounding."""
    wide = graph.clone()
    coins = torch.Generator().manual_seed(0)
    wide.x = (torch.rand(400, 3000, generator=coins) < 0.02).float()
    wide.edge_index = wide.edge_index[:, ::8].contiguous()
    wide.directed = True
    method = gv.GraphPrivatizer(mode="published", feature_steps=2, epochs=4)
    made, worth = [], PropagatedRows.worth

    def looked(*asked):
        made.append(worth(*asked))
        return made[-1]

    monkeypatch.setattr(PropagatedRows, "worth", looked)
    promise = gv.Local(features=epsilon, labels=3, edges=1)
    factors = method.fit(wide, promise, seed=5).predictor
    assert made == [True]
    monkeypatch.setattr(PropagatedRows, "worth", lambda *_: False)
    rows = method.fit(wide, promise, seed=5).predictor
    assert np.allclose(factors.scores, rows.scores, rtol=1e-3, atol=1e-3 * np.abs(rows.scores).max())
    assert np.array_equal(factors.reports, rows.reports)


@pytest.mark.parametrize("name", NAMES)
def test_every_backbone_trains(name, graph):
    model = gv.Lpgnn(mode="published", backbone=name, epochs=2, feature_steps=1).fit(
        graph, gv.Local(3, 3, "raw"), seed=1
    )
    assert np.isfinite(model.predictor.scores).all() and model.predictor.scores.any()


def test_graphconv_sums_where_sage_averages():
    """Two senders with equal rows: the sum is twice the mean."""
    arcs, x = torch.tensor([[0, 1], [2, 2]]), torch.ones(3, 5)
    one = as_lpgnn_builds("graphconv", 5, 2, 3, 0.0, seed=0).first
    heard = one(x, arcs)[2] - one(x, arcs)[0]
    assert torch.allclose(heard, 2 * one.lin_rel.weight.sum(dim=1), atol=1e-6)


def test_both_readings_learn_from_wide_reports():
    """Rows of 100 attributes, one of them reported: after propagation they say where in the graph one is."""
    data = powerlaw_sbm(nodes=400, classes=3, features=100, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    graph = random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    for reading in ("code", "text"):
        method = gv.GraphPrivatizer(mode="published", reading=reading, feature_steps=4, weight_decay=0.0)
        model = method.fit(graph, gv.Local(3, 3, 1.0), seed=1)
        assert model.score(graph) > majority + 0.08 and 1 <= model.predictor.facts["epoch"] <= 100


def test_a_text_reading_keeps_out_degrees_and_a_code_reading_writes_over(graph):
    heard = {}
    for reading in ("code", "text", "listening"):

        class Watched(type(gv.GraphPrivatizer(mode="published"))):
            def arcs(self, server, rows):
                heard[self.reading] = super().arcs(server, rows)
                return heard[self.reading]

        Watched(reading=reading, epochs=1, feature_steps=1).fit(graph, gv.Local(3, 3, 0.1), seed=1)
    degrees = np.bincount(graph.edge_index[0].numpy(), minlength=400)
    assert np.array_equal(np.bincount(heard["text"][1], minlength=400), degrees)
    owners = np.bincount(heard["code"][0], minlength=400)
    assert np.all(owners <= degrees) and owners.sum() < degrees.sum()
    assert np.array_equal(heard["listening"], np.unique(heard["code"][::-1], axis=1))


@pytest.mark.parametrize("keep", ["lpgnn", "loss"])
def test_epochs_that_cannot_be_kept_are_not_looked_at_and_nothing_else_changes(graph, keep, monkeypatch):
    """``rises`` always true looks at every epoch; the same epoch is kept, with the same scores."""
    from graphveil.methods.common import lpgnn_training

    def fitted():
        method = gv.Lpgnn(mode="published", backbone="gcn", feature_steps=2, epochs=30, keep=keep)
        return method.fit(graph, gv.Local(3, 3, "raw"), seed=1).predictor

    found, rises, looks = fitted(), lpgnn_training.rises, []

    def looked(*told):
        looks.append(rises(*told))
        return True

    monkeypatch.setattr(lpgnn_training, "rises", looked)
    monkeypatch.setattr(
        lpgnn_training.Epoch,
        "beats",
        lambda self, best, most: (
            rises(self.training, best.training, most)
            and self.loss < best.loss
            and best.validation < self.validation <= most
        ),
    )
    every = fitted()
    assert (False in looks) == (keep == "lpgnn")
    assert every.facts == found.facts
    assert all(np.array_equal(every.weights[name], found.weights[name]) for name in found.weights)
