"""One run: the tail bound is the theorem's, canaries are far apart, and memorised canaries are found."""

import math

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.one_run import CROWD, canary_graph, one_run_audit, refuted_epsilon, tail_probability
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.gap import Gap


def test_without_delta_the_tail_is_binomial():
    """20 guesses, all right, at epsilon 0: 2^-20; abstentions do not matter."""
    assert tail_probability(20, 20, 20, 0.0, 0.0) == pytest.approx(2.0**-20)
    assert tail_probability(500, 20, 20, 0.0, 0.0) == pytest.approx(2.0**-20)


def test_the_delta_term_is_the_largest_average_of_probabilities_below():
    """r = 2, v = 2, epsilon = log 3 (chance 3/4): P(B = 2) = 9/16; i = 1: 6/16, i = 2: 7/32; so 6/16."""
    found = tail_probability(10, 2, 2, math.log(3), 1e-3)
    assert found == pytest.approx(9 / 16 + 2 * 10 * 1e-3 * 6 / 16)


def test_refuted_epsilons_grow_with_correct_guesses_and_shrink_with_confidence():
    few, many = (refuted_epsilon(200, 100, v, 1e-9, 0.95) for v in (70, 95))
    assert 0 < few < many
    assert refuted_epsilon(200, 100, 95, 1e-9, 0.9999) < many
    assert refuted_epsilon(200, 100, 50, 1e-9, 0.95) == 0.0
    assert tail_probability(200, 100, 95, many * 1.001, 1e-9) > 0.05


@pytest.mark.parametrize("promise", [gv.NodeLevel(4.0, 1e-7), gv.EdgeLevel(4.0, 1e-7)], ids=["node", "edge"])
def test_canaries_lie_in_components_of_their_own(promise):
    import scipy.sparse as sp

    graph, whole, inside = canary_graph(promise, 40, 3)
    arcs = whole.edge_index.numpy()
    matrix = sp.coo_matrix((np.ones(arcs.shape[1]), arcs), shape=(whole.num_nodes, whole.num_nodes))
    component = sp.csgraph.connected_components(matrix, directed=False)[1][CROWD : CROWD + 40]
    assert len(np.unique(component)) == 40 and 5 < inside.sum() < 35
    out = CROWD + np.flatnonzero(~inside)
    touching = np.isin(graph.edge_index.numpy(), out).any()
    assert not touching
    if promise.level == "node":
        assert not graph.x[out].any() and (graph.y[out] == -1).all()


def test_almost_no_noise_is_refuted_at_small_epsilons_and_real_noise_is_not():
    loud = one_run_audit(DpMlp(), gv.NodeLevel(1000.0, 1e-7), seed=1)
    assert loud.epsilon > 1.0
    quiet = one_run_audit(DpMlp(), gv.NodeLevel(0.5, 1e-7), seed=1)
    assert quiet.epsilon <= 0.5 and quiet.correct < loud.correct


def test_edge_canaries_are_seen_without_noise():
    loud = one_run_audit(Gap(epochs=60), gv.EdgeLevel(1000.0, 1e-7), seed=0)
    assert loud.epsilon > 0.2
