"""EdgeRand draws the right flips and nothing quadratic; the plain graph networks learn and say that they protect nothing."""

import math
import tracemalloc

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError
from graphveil.graph.validate import validate
from graphveil.methods.edge_rand import EdgeRand, pair_count, pair_numbers, pairs_of
from graphveil.methods.gnn import Gcn, Sage, Sgc
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import EdgeFlips
from graphveil.privacy.noise import Noise


@pytest.fixture
def small():
    return worst_case_graph(seed=5)[0]


@pytest.mark.parametrize("directed", [False, True])
def test_pair_numbers_are_a_bijection(directed):
    nodes = 9
    numbers = np.arange(pair_count(nodes, directed))
    arcs = pairs_of(numbers, nodes, directed)
    once = arcs if directed else arcs[:, : numbers.size]
    assert len({tuple(pair) for pair in once.T}) == numbers.size and np.all(once[0] != once[1])


def test_pair_numbers_survive_large_graphs():
    nodes = 3_000_000
    last = pair_count(nodes, False) - 1
    numbers = np.array([0, 1, 2, last // 2, last - 1, last])
    low, high = pairs_of(numbers, nodes, False)[:, : numbers.size]
    assert np.array_equal(high * (high - 1) // 2 + low, numbers) and high[-1] == nodes - 1


def test_the_graph_comes_back_from_its_pair_numbers(small):
    graph = validate(small)
    for directed in (False, True):
        arcs = pairs_of(pair_numbers(graph.lists, directed), graph.nodes, directed)
        assert {tuple(a) for a in arcs.T} == {tuple(a) for a in graph.lists.edge_index().T}


def test_every_pair_flips_with_the_stated_probability():
    """False-alarm rate below 1e-6 per assertion: five standard errors."""
    mechanism, joined = EdgeFlips(1.0, 400), np.arange(0, 400, 4)
    flips = np.zeros(400)
    rounds, noise = 4000, Noise(1)
    for _ in range(rounds):
        flips[np.setxor1d(joined, mechanism.apply(joined, noise))] += 1
    p = mechanism.flips.flip
    assert p == pytest.approx(1 / (math.e + 1))
    assert np.all(np.abs(flips / rounds - p) < 5 * math.sqrt(p * (1 - p) / rounds))
    assert abs(flips.sum() / (400 * rounds) - p) < 5 * math.sqrt(p * (1 - p) / (400 * rounds))


def test_flips_of_a_large_graph_take_memory_for_the_flips_alone():
    pairs = pair_count(200_000, False)
    mechanism = EdgeFlips(11.0, pairs)
    tracemalloc.start()
    noisy = mechanism.apply(np.arange(0, 10**9, 1000), Noise(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected = mechanism.flips.flip * pairs
    assert abs(noisy.size - 10**6 - expected) < 6 * math.sqrt(expected) and peak < 4e8


def test_too_many_noisy_edges_are_refused_by_name():
    facts = PublicFacts(nodes=100_000, features=3, classes=2)
    with pytest.raises(InputError, match="max_edges"):
        EdgeRand().plan(facts, gv.EdgeLevel(1.0))
    EdgeRand().plan(facts, gv.EdgeLevel(8.0))


def test_the_certificate_is_pure_and_the_model_predicts_on_the_noisy_graph(small):
    model = EdgeRand(epochs=3, hidden=4).fit(small, gv.EdgeLevel(2.0))
    assert model.certificate.holds and 1.99 < model.certificate.epsilon <= 2.0  # delta buys a little
    other = small.clone()
    other.edge_index = other.edge_index[:, :5]
    assert torch.equal(model.predict_proba(small), model.predict_proba(other))


@pytest.mark.parametrize("method", [Sage, Gcn, Sgc])
def test_plain_networks_learn_but_protect_nothing(cora, method):
    torch.set_num_threads(1)
    model = method(epochs=40, hidden=16, learning_rate=0.05).fit(cora, gv.NonPrivate(), seed=0)
    assert model.score(cora) > 0.8
    assert not model.certificate.holds and model.certificate.epsilon is None


def test_plain_networks_refuse_to_promise(small):
    with pytest.raises(InputError, match="not private"):
        Sage().fit(small, gv.EdgeLevel(1.0))


def test_saved_networks_predict_the_same(small, tmp_path):
    for number, (method, promise) in enumerate(
        [(Gcn(epochs=2, hidden=4), gv.NonPrivate()), (EdgeRand(epochs=2, hidden=4), gv.EdgeLevel(3.0))]
    ):
        model = method.fit(small, promise, seed=0)
        model.save(tmp_path / str(number))
        again = gv.load_model(tmp_path / str(number))
        assert torch.equal(model.predict_proba(small), again.predict_proba(small))


def test_the_published_graph_is_about_as_dense_as_the_true_one_and_an_edge_costs_twice(cora):
    model = EdgeRand(mode="published", epochs=1).fit(cora, gv.EdgeLevel(1.0), seed=0)
    assert abs(model.predictor.arcs.shape[1] / cora.num_edges - 1) < 0.1
    assert model.certificate.epsilon == pytest.approx(2.0, rel=1e-3) and [g.code for g in model.certificate.gaps] == [
        "A1"
    ]
    directed = EdgeRand(mode="published", epochs=1).plan(gv.PublicFacts.of(cora), gv.EdgeLevel(1.0, directed=True))
    assert directed.epsilon() == pytest.approx(1.0, rel=1e-3)
