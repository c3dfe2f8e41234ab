"""DP-MLP: without noise it is plain training; with noise it reads features and labels only."""

import math

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError
from graphveil.graph.unit import unit_array, unit_rows
from graphveil.graph.validate import validate
from graphveil.learn import MLP
from graphveil.privacy.facts import PUBLIC_COINS


@pytest.fixture
def small():
    return worst_case_graph(seed=3)[0]


def test_without_noise_the_own_network_is_ordinary_softmax_regression(small):
    """Against an independent loop in plain autograd: same centring, same momentum with one global second moment."""
    model = gv.DpMlp(steps=20).fit(small, gv.NodeLevel(math.inf, 1e-3), seed=0)
    x = unit_array(small.x.numpy())
    centre = (np.trunc(x * 2**24) / 2**24).sum(axis=0) / len(x)
    differences = x - centre
    differences /= np.maximum(np.linalg.norm(differences, axis=1, keepdims=True), 0.01)
    differences[np.linalg.norm(x, axis=1) == 0] = 0.0
    rows = torch.from_numpy(np.hstack([differences, np.full((len(x), 1), 0.1)]))[small.train_mask]
    weight = torch.zeros(3, rows.shape[1], dtype=torch.float64, requires_grad=True)
    first, second = torch.zeros_like(weight), 0.0
    for step in range(1, 21):
        loss = torch.nn.functional.cross_entropy(rows @ weight.T, small.y[small.train_mask])
        (gradient,) = torch.autograd.grad(loss, weight)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * float(gradient.square().mean())
        step_size = 0.1 / math.sqrt(second / (1 - 0.999**step))
        weight = (weight - step_size * first / (1 - 0.9**step)).detach().requires_grad_()
    assert np.allclose(model.predictor.weights, weight.detach().numpy(), atol=1e-8)


def test_without_noise_the_paper_network_is_ordinary_adam(small):
    """Against torch.optim.Adam on an independent torch module started from the same weights."""
    method = gv.DpMlp(network="paper", hidden=8, epochs=6, batch_size=4)
    model = method.fit(small, gv.NodeLevel(math.inf, 1e-3), seed=1)
    start = MLP((7, 8, 8, 3)).initialise(np.random.default_rng([PUBLIC_COINS, 1]))
    layers = [torch.nn.Linear(layer.inputs, layer.outputs, dtype=torch.float64) for layer in start.layers]
    for ours, theirs in zip(start.layers, layers, strict=True):
        theirs.weight.data, theirs.bias.data = ours.weight.clone(), ours.bias.clone()
    network = torch.nn.Sequential(layers[0], torch.nn.SELU(), layers[1], torch.nn.SELU(), layers[2])
    inputs = torch.from_numpy(np.hstack([unit_array(small.x.numpy()), np.ones((small.num_nodes, 1))]))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    train = small.train_mask
    for _ in range(6 * int(train.sum()) // 4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(inputs[train]), small.y[train]).backward()
        optimizer.step()
    expected = torch.softmax(network(inputs), dim=1).detach()
    assert torch.allclose(model.predict_proba(small), expected, atol=1e-7)
    assert model.certificate.epsilon is None and not model.certificate.holds


def test_edges_are_never_read(small):
    other = small.clone()
    other.edge_index = torch.stack([torch.arange(20), torch.arange(20) + 1])
    promise = gv.NodeLevel(2.0)
    first, second = (gv.DpMlp(steps=5).fit(data, promise, seed=4) for data in (small, other))
    assert torch.equal(first.predict_proba(small), second.predict_proba(small))


def test_edge_level_costs_nothing_and_says_that_features_are_public(small):
    certificate = gv.DpMlp(epochs=2).fit(small, gv.EdgeLevel(1.0)).certificate
    assert certificate.epsilon == 0.0 and certificate.holds and certificate.releases == ()
    assert any("features and labels" in line for line in certificate.public)


@pytest.mark.parametrize("network", ["own", "paper"])
def test_epsilon_stays_within_the_target(small, network):
    for epsilon in (0.5, 3.0, 20.0):
        certificate = (
            gv.DpMlp(network=network, steps=4, epochs=2, hidden=4).fit(small, gv.NodeLevel(epsilon)).certificate
        )
        assert 0.97 * epsilon < certificate.epsilon <= epsilon


def test_replacement_is_paid_for_with_twice_the_noise(small):
    releases = {
        relation: gv.DpMlp(steps=4).fit(small, gv.NodeLevel(2.0, relation=relation)).certificate.releases
        for relation in ("zero-out", "replace")
    }
    for once, twice in zip(*releases.values(), strict=True):
        assert twice.mechanism.sigma == pytest.approx(2 * once.mechanism.sigma, rel=1e-3)


def test_a_graph_without_features_still_trains(small):
    bare = small.clone()
    bare.x = torch.zeros((small.num_nodes, 0))
    model = gv.DpMlp(steps=4).fit(bare, gv.NodeLevel(2.0))
    assert [release.name for release in model.certificate.releases] == ["own"]
    assert model.predict(bare).shape == (small.num_nodes,)


@pytest.mark.parametrize(
    "options", [{"network": "deep"}, {"centring": 1.0}, {"steps": "many"}, {"clip": math.nan}, {"steps": 0}]
)
def test_unusable_options_are_refused(small, options):
    with pytest.raises(gv.GraphveilError):
        gv.DpMlp(**options).fit(small, gv.NodeLevel(2.0))


def test_tiny_huge_and_empty_rows_become_unit_or_zero():
    """float32-style traps: entries around 3e-23 used to give rows of norm 26."""
    rows = np.array([[3e-23] * 4, [1e200, 0, 0, 1e200], [0, 0, 0, 0], [5e-324, 0, 0, 0]])
    norms = np.linalg.norm(unit_array(rows), axis=1)
    assert np.allclose(norms, [1, 1, 0, 0]) and (norms <= 1).all()
    data = worst_case_graph()[0]
    data.x = torch.from_numpy(np.tile(rows, (data.num_nodes // 4 + 1, 1))[: data.num_nodes])
    sparse = data.clone()
    sparse.x = data.x.to_sparse_csr()
    dense_rows, sparse_rows = (unit_rows(validate(graph).rows) for graph in (data, sparse))
    assert torch.allclose(dense_rows.squared_norms(), sparse_rows.squared_norms())


def test_seeded_runs_are_marked_and_unseeded_runs_are_not(small):
    assert "not for release" in str(gv.DpMlp(steps=2).fit(small, gv.NodeLevel(2.0), seed=0).certificate)
    assert "not for release" not in str(gv.DpMlp(steps=2).fit(small, gv.NodeLevel(2.0)).certificate)
    with pytest.raises(InputError, match="negative"):
        gv.DpMlp(steps=2).fit(small, gv.NodeLevel(2.0), seed=-1)


def test_the_best_epoch_is_kept_and_without_validation_nodes_the_last(monkeypatch):
    from graphveil.methods.common import block_training

    seen = []

    class Watched(block_training.BestEpoch):
        def __call__(self, network):
            super().__call__(network)
            seen.append((self._best, network.parameters.clone()))

    monkeypatch.setattr(block_training, "BestEpoch", Watched)
    data = worst_case_graph(seed=3)[0]
    model = gv.Mlp(hidden=4, epochs=30).fit(data, gv.NonPrivate(), seed=0)
    best = max(accuracy for accuracy, _ in seen)
    first = next(parameters for accuracy, parameters in seen if accuracy == best)
    assert torch.equal(model.predictor.network.parameters, first) and not torch.equal(first, seen[-1][1])
    seen.clear()
    data.val_mask[:] = False
    model = gv.Mlp(hidden=4, epochs=30).fit(data, gv.NonPrivate(), seed=0)
    assert torch.equal(model.predictor.network.parameters, seen[-1][1])
