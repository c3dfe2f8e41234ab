"""Generated graphs: their parameters, their law, their speed."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from graphveil.errors import InputError
from graphveil.graph import csbm, load_dataset, powerlaw_sbm, statistics
from graphveil.graph.data.synthetic import _pairs_across, _pairs_inside
from graphveil.graph.validate import validate


@pytest.mark.parametrize("phi", [-1.0, -0.5, 0.0, 0.3, 1.0])
def test_csbm_lies_on_the_arc_of_the_paper(phi: float) -> None:
    data = csbm(0, nodes=400, features=20, phi=phi)
    strength, mu = data.parameters["strength"], data.parameters["mu"]
    assert strength**2 + mu**2 / (400 / 20) == pytest.approx(1 + 3.25)
    assert math.atan2(strength, mu / math.sqrt(20)) == pytest.approx(math.pi * phi / 2)


def test_csbm_defaults_are_those_of_the_paper() -> None:
    data = csbm(0)
    assert data.x.shape == (10_000, 200) and data.num_classes == 2 and data.parameters["phi"] == 0.5
    assert np.bincount(data.y).tolist() == [5000, 5000]


def test_csbm_edges_have_the_probabilities_of_the_formula() -> None:
    """Edge counts are binomial: within 5 standard deviations (false alarm below 1e-6)."""
    n, d, phi = 10_000, 10.0, 0.7
    data = csbm(3, phi=phi)
    strength = data.parameters["strength"]
    same = (data.y[data.edge_index[0]] == data.y[data.edge_index[1]]).numpy()
    half = n // 2
    for count, pairs, probability in (
        (same.sum() / 2, half * (half - 1), (d + strength * math.sqrt(d)) / n),
        ((~same).sum() / 2, half * half, (d - strength * math.sqrt(d)) / n),
    ):
        mean = pairs * probability
        assert abs(count - mean) < 5 * math.sqrt(mean * (1 - probability))


def test_csbm_features_have_the_mean_and_the_noise_of_the_formula() -> None:
    n, f = 10_000, 200
    data = csbm(1, phi=0.0)
    signs = (2 * data.y - 1).double()
    x = data.x.double()
    direction = (signs @ x) / n / math.sqrt(data.parameters["mu"] / n)
    assert abs(float(direction.norm()) - 1) < 0.25  # u ~ N(0, I/f) has norm near 1, plus estimation noise
    noise = x - math.sqrt(data.parameters["mu"] / n) * signs[:, None] * direction
    assert float(noise.var()) == pytest.approx(1 / f, rel=0.01)


def test_pairs_are_drawn_independently_and_uniformly() -> None:
    """Each of the 10 pairs of 5 things with probability 0.3, 4000 times: 5 standard deviations are 145."""
    rng = np.random.default_rng(0)
    counts = np.zeros((5, 5))
    for _ in range(4000):
        first, second = _pairs_inside(rng, 5, 0.3)
        assert (first < second).all()
        counts[first, second] += 1
    drawn = counts[np.triu_indices(5, 1)]
    assert np.abs(drawn - 1200).max() < 145 and counts.sum() == drawn.sum()
    members = [np.arange(2), np.arange(3)]
    across = np.zeros((2, 3))
    for _ in range(4000):
        across[tuple(_pairs_across(rng, members, 0.5))] += 1
    assert np.abs(across - 2000).max() < 160


def test_generated_graphs_are_valid_seeded_and_undirected() -> None:
    for draw in (csbm, powerlaw_sbm):
        first, again, other = draw(4, nodes=500), draw(4, nodes=500), draw(5, nodes=500)
        assert torch.equal(first.x, again.x) and torch.equal(first.edge_index, again.edge_index)
        assert not torch.equal(first.edge_index, other.edge_index)
        assert first.is_undirected() and not first.has_self_loops() and first.is_coalesced()
        graph = validate(first, need_training=False)
        assert graph.notes == () and graph.lists.duplicates == 0


def test_the_split_of_a_generated_graph_does_not_follow_its_labels() -> None:
    data = load_dataset("csbm", seed=2, nodes=4000, features=2)
    share = float(data.y[data.train_mask].float().mean())
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(3000)


def test_powerlaw_graphs_have_hubs_leaves_and_the_asked_homophily() -> None:
    data = powerlaw_sbm(0, nodes=20_000, average_degree=8.0, homophily=0.8, exponent=2.2)
    figures = statistics(data)
    assert figures.mean_degree == pytest.approx(8, rel=0.06) and figures.homophily == pytest.approx(0.8, abs=0.03)
    assert figures.max_degree > 50 * figures.degree_quantiles["50%"] and figures.isolated > 100


def test_a_million_nodes_take_seconds() -> None:
    start = time.process_time()
    data = load_dataset("powerlaw-sbm", nodes=1_000_000, features=4)
    assert data.num_nodes == 1_000_000 and data.num_edges > 9_000_000
    assert time.process_time() - start < 30


def accuracy(features: np.ndarray, data) -> float:
    train, test = data.train_mask.numpy(), data.test_mask.numpy()
    model = LogisticRegression(C=0.1, max_iter=200).fit(features[train], data.y.numpy()[train])
    return float(model.score(features[test], data.y.numpy()[test]))


def neighbour_votes(data) -> np.ndarray:
    """How many training neighbours of each class a node has: the simplest method that reads the graph."""
    lists = validate(data).lists
    votes = np.eye(2)[data.y.numpy()] * data.train_mask.numpy()[:, None]
    return lists.aggregate(votes)


def test_information_moves_from_features_to_edges_along_the_arc() -> None:
    """Figure 3d of DPDGC in outline: own features win at phi = 0, the graph at |phi| near 1; three seeds each."""
    own, graph = {}, {}
    for phi in (-1.0, -0.5, 0.0, 0.5, 1.0):
        runs = [load_dataset("csbm", seed=seed, nodes=4000, features=80, phi=phi) for seed in range(3)]
        own[phi] = np.mean([accuracy(data.x.numpy(), data) for data in runs])
        graph[phi] = np.mean([accuracy(neighbour_votes(data), data) for data in runs])
    assert own[0.0] > graph[0.0] + 0.1 and abs(graph[0.0] - 0.5) < 0.05
    for phi in (-1.0, 1.0):
        assert graph[phi] > 0.93 and abs(own[phi] - 0.5) < 0.05
    for phi in (-0.5, 0.5):
        assert graph[phi] > own[phi] + 0.1
    assert own[0.0] > own[0.5] > own[1.0] and graph[0.0] < graph[0.5] < graph[1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"phi": 1.5}, "phi is 1.5"),
        ({"nodes": 2}, "at least 4 nodes"),
        ({"phi": 1.0, "average_degree": 2.0}, "take an average degree between 4.25"),
        ({"nodes": 20, "average_degree": 30.0}, "take an average degree between"),
    ],
)
def test_impossible_csbm_parameters_are_explained(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        csbm(0, **options)


@pytest.mark.parametrize("options", [{"homophily": 2}, {"exponent": 1.5}, {"classes": 1}, {"nodes": 3}])
def test_impossible_powerlaw_parameters_are_explained(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="powerlaw-sbm"):
        powerlaw_sbm(0, **options)
