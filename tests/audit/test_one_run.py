"""One run: the tail bound is the theorem's, canaries are far apart, and memorised canaries are found."""

import math

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.central.one_run import CROWD, canary_graph, one_run_audit, refuted_epsilon, tail_probability
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


PROMISES = {
    "record": gv.NodeLevel(4.0, 1e-7),
    "record, replace": gv.NodeLevel(4.0, 1e-7, relation="replace"),
    "node": gv.NodeLevel(4.0, 1e-7, adjacency="node"),
    "bounded degree": gv.NodeLevel(4.0, 1e-7, adjacency="bounded-degree", max_degree=3),
    "k-neighbor": gv.KNeighborLevel(1, 4.0, 1e-7),
    "edge": gv.EdgeLevel(4.0, 1e-7),
    "directed edge": gv.EdgeLevel(4.0, 1e-7, directed=True),
}


@pytest.mark.parametrize("name", PROMISES)
def test_canaries_lie_in_components_of_their_own(name):
    import scipy.sparse as sp

    _, whole, inside = canary_graph(PROMISES[name], 40, 3)
    arcs = whole.edge_index.numpy()
    matrix = sp.coo_matrix((np.ones(arcs.shape[1]), arcs), shape=(whole.num_nodes, whole.num_nodes))
    component = sp.csgraph.connected_components(matrix, directed=False)[1][CROWD : CROWD + 40]
    assert len(np.unique(component)) == 40 and 5 < inside.sum() < 35


@pytest.mark.parametrize("name", PROMISES)
def test_a_canary_that_is_out_is_one_step_to_a_neighbour(name):
    """What an absent canary takes with it: its own record, or one edge, or one entry; never somebody else's besides."""
    promise, canaries = PROMISES[name], 40
    graph, whole, inside = canary_graph(promise, canaries, 3)
    here, there = ({tuple(arc) for arc in data.edge_index.numpy().T.tolist()} for data in (graph, whole))
    assert here <= there
    out = (CROWD + np.flatnonzero(~inside)).tolist()
    sent, received = {(r, r + canaries) for r in out}, {(r + canaries, r) for r in out}
    gone = {"record": sent, "record, replace": set(), "directed edge": received}.get(name, sent | received)
    assert there - here == gone
    changed = np.flatnonzero((graph.x != whole.x).any(dim=1) | (graph.y != whole.y)).tolist()
    assert changed == ([] if promise.level == "edge" else out)
    if promise.level != "edge" and promise.relation == "zero-out":
        assert not graph.x[out].any() and (graph.y[out] == -1).all()
    if promise.relation == "replace":
        assert (graph.y[out] >= 0).all() and (graph.y[out] != whole.y[out]).all()


def test_all_of_74_right_guesses_refute_about_two():
    """The most that 300 canaries can say at confidence 1 - 1e-4: a quarter of them is guessed."""
    assert 2.0 < refuted_epsilon(300, 74, 74, 0.0) < 2.1
    assert 1.9 < refuted_epsilon(300, 74, 74, 1e-7) <= refuted_epsilon(300, 74, 74, 0.0)


def test_almost_no_noise_is_refuted_at_small_epsilons_and_real_noise_is_not():
    loud = one_run_audit(DpMlp(), gv.NodeLevel(1000.0, 1e-7), seed=1)
    assert loud.epsilon > 1.0
    quiet = one_run_audit(DpMlp(), gv.NodeLevel(0.5, 1e-7), seed=1)
    assert quiet.epsilon <= 0.5 and quiet.details["correct"] < loud.details["correct"]


def test_edge_canaries_are_seen_without_noise():
    loud = one_run_audit(Gap(epochs=60), gv.EdgeLevel(1000.0, 1e-7), seed=0)
    assert loud.epsilon > 0.2


def test_one_entry_of_a_directed_edge_is_seen_without_noise():
    loud = one_run_audit(Gap(epochs=60), gv.EdgeLevel(1000.0, 1e-7, directed=True), seed=0)
    assert loud.epsilon > 0.2


@pytest.mark.parametrize(("epsilon", "silent"), [(1.0, False), (4.0, True)])
def test_the_one_run_audit_prints_its_ceiling_beside_the_result(epsilon, silent):
    found = one_run_audit(DpMlp(steps=2), gv.NodeLevel(epsilon, 1e-7))
    assert found.details["ceiling"] == refuted_epsilon(300, 74, 74, 1e-7) >= found.epsilon
    assert "would refute 2.0" in found.how and ("silent about" in found.how) == silent
