"""Push and ISTA agree with the exact solution, also with isolated nodes and directed edges."""

import numpy as np
import pytest

from graphveil.errors import InputError
from graphveil.graph import Lists
from graphveil.graph.kernels.pagerank import ista_rows, push_rows, walk_matrix


def random_lists(seed, nodes=30, directed=False):
    rng = np.random.default_rng(seed)
    dense = rng.random((nodes, nodes)) < 0.12
    dense[0] = dense[:, 0] = False  # an isolated node
    if not directed:
        dense |= dense.T
    np.fill_diagonal(dense, False)
    return Lists.from_edge_index(np.array(np.nonzero(dense)), nodes)


def exact(lists, teleport):
    walk = walk_matrix(lists).toarray()
    return teleport * np.linalg.inv(np.eye(lists.nodes) - (1 - teleport) * walk)


@pytest.mark.parametrize("directed", [False, True])
def test_push_reaches_the_exact_vectors(directed):
    lists = random_lists(1, directed=directed)
    sources, truth = np.arange(lists.nodes), exact(lists, 0.25)
    assert np.allclose(push_rows(lists, sources, 0.25, 1e-9).toarray(), truth, atol=1e-6)


@pytest.mark.parametrize("threshold", [1e-2, 1e-3, 1e-4])
def test_push_never_exceeds_the_truth_and_keeps_its_residual_bound(threshold):
    lists = random_lists(2)
    pushed, truth = push_rows(lists, np.arange(lists.nodes), 0.25, threshold).toarray(), exact(lists, 0.25)
    missing = truth - pushed
    assert missing.min() > -1e-12
    assert missing.sum(axis=1).max() <= threshold * np.maximum(lists.out_degrees, 1).sum()


def test_an_isolated_node_keeps_all_its_mass():
    lists = random_lists(3)
    rows = push_rows(lists, np.array([0])).toarray()
    assert rows[0, 0] == pytest.approx(1.0, abs=1e-6) and np.count_nonzero(rows[0] > 1e-6) == 1


def test_ista_is_ordinary_pagerank_with_twice_alpha_over_one_plus_alpha():
    lists = random_lists(4)
    senders, receivers = lists.edge_index()
    loops = np.zeros((lists.nodes, lists.nodes))
    loops[senders, receivers] = 1
    loops += np.eye(lists.nodes)
    walk = loops / loops.sum(axis=1, keepdims=True)
    teleport = 2 * 0.25 / 1.25
    truth = teleport * np.linalg.inv(np.eye(lists.nodes) - (1 - teleport) * walk)
    rows = ista_rows(lists, np.arange(lists.nodes), 0.25, rho=1e-9, tolerance=1e-3, iterations=500)
    assert np.allclose(rows, truth, atol=1e-5)


def test_regularised_ista_is_sparse_and_non_negative():
    rows = ista_rows(random_lists(5, nodes=60), np.arange(10), rho=2e-2)
    assert rows.min() >= 0 and np.count_nonzero(rows) < 0.7 * rows.size


def test_rows_come_in_the_order_of_the_sources():
    lists = random_lists(6)
    rows = push_rows(lists, np.array([7, 0, 3])).toarray()
    assert rows.argmax(axis=1).tolist() == [7, 0, 3]


def test_bad_teleport_and_sources_are_refused():
    with pytest.raises(InputError):
        push_rows(random_lists(0), np.array([0]), teleport=1.0)
    with pytest.raises(InputError):
        push_rows(random_lists(0), np.array([99]))
