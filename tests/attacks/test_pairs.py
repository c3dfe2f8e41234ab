"""The games: positives are edges, negatives are not, nothing twice, and matched degrees are matched."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphveil.attacks.metrics import measure
from graphveil.attacks.pairs import Edges, Sampling, controls, sample_pairs
from graphveil.attacks.target import as_graph
from graphveil.errors import InputError


def adjacency(graph):
    senders, receivers = graph.lists.edge_index()
    return {(min(a, b), max(a, b)) for a, b in zip(senders.tolist(), receivers.tolist(), strict=True)}


@pytest.mark.parametrize("sampling", list(Sampling))
@pytest.mark.parametrize("seed", [0, 1])
def test_answers_are_true_and_no_pair_occurs_twice(graph, sampling, seed):
    pairs = sample_pairs(graph, sampling, 200, seed)
    edges = adjacency(graph)
    found = [(min(a, b), max(a, b)) for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)]
    assert len(set(found)) == len(found) and all(a != b for a, b in found)
    assert [pair in edges for pair in found] == pairs.joined.tolist()
    if sampling is not Sampling.DENSITY:
        assert pairs.joined.sum() == (~pairs.joined).sum() == 200
    else:
        assert len(pairs) == 200 * 199 // 2


def test_matched_non_edges_have_the_degrees_of_the_edges(graph):
    pairs = sample_pairs(graph, "degree-matched", 300, 0)
    degrees = Edges(graph).degrees
    ends = np.sort(np.stack([degrees[pairs.first], degrees[pairs.second]]), axis=0)
    distance = np.abs(ends[:, :300] - ends[:, 300:]).max(axis=0)
    assert np.mean(distance == 0) > 0.9 and distance.max() <= 0.25 * degrees.max()


def test_degree_alone_wins_on_uniform_non_edges_and_is_chance_on_matched_ones(graph):
    auc = {}
    for sampling in ("balanced", "degree-matched"):
        pairs = sample_pairs(graph, sampling, 400, 0)
        auc[sampling] = measure(pairs.joined, controls(graph, pairs)["degree product"], resamples=0)["auc"]
    assert auc["balanced"] > 0.7 and abs(auc["degree-matched"] - 0.5) < 0.03


def test_the_order_of_a_pair_carries_nothing(graph):
    """Without the swap, edges have low < high; a coin decides: 300 of 600 +- 5 deviations."""
    pairs = sample_pairs(graph, "balanced", 600, 0)
    assert abs(np.sum((pairs.first < pairs.second)[pairs.joined]) - 300) < 62


def test_label_equality_is_left_out_where_there_are_no_labels(graph):
    from dataclasses import replace

    pairs = sample_pairs(graph, "balanced", 50, 0)
    assert set(controls(graph, pairs)) == {"degree product", "label equality"}
    bare = replace(graph, labels=np.full(graph.nodes, -1))
    assert set(controls(bare, pairs)) == {"degree product"}


def test_pairs_can_be_limited_to_the_nodes_of_the_attacker(graph):
    among = np.arange(graph.nodes) < 300
    for sampling in Sampling:
        assert sample_pairs(graph, sampling, 60, 0, among).nodes.max() < 300


def small(edges, nodes):
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
    data = Data(x=torch.ones(nodes, 2), edge_index=torch.cat([index, index.flip(0)], 1), y=torch.zeros(nodes).long())
    data.num_classes = 1
    return as_graph(data)


@pytest.mark.parametrize(
    ("graph", "sampling", "count", "word"),
    [
        (small([], 5), "balanced", 1, "no edges"),
        (small([(0, 1)], 5), "balanced", 2, "fewer than the 2"),
        (small([(0, 1)], 5), "density", 9, "5 nodes"),
        (small([(0, 1)], 500), "density", 3, "no edge among"),
        (small([(0, 1), (0, 2), (1, 2)], 3), "balanced", 2, "not joined"),
        (small([(0, 1), (0, 2), (1, 2)], 3), "degree-matched", 1, "too dense"),
        (small([(0, 1)], 5), "sideways", 1, "unknown kind"),
        (small([(0, 1)], 5), "balanced", 0, "at least 1"),
    ],
)
def test_games_that_cannot_be_drawn_are_refused(graph, sampling, count, word):
    with pytest.raises(InputError, match=word):
        sample_pairs(graph, sampling, count, 0)
