"""Brute force: nothing moves an aggregation by more than the table in ``aggregation.py`` says, and the table is attained."""

import itertools
import math

import numpy as np
import pytest

from graphveil.graph import Lists
from graphveil.graph.lists import GRID
from graphveil.graph.unit import unit_array
from graphveil.methods.common.aggregation import (
    aggregate,
    hop_sensitivity,
    k_neighbor_sensitivity,
    truncation,
)
from graphveil.privacy.promise import EdgeLevel, KNeighborLevel, NodeLevel

RECORD, REPLACE = NodeLevel(1.0), NodeLevel(1.0, relation="replace")


def undirected(rng, nodes, density):
    upper = np.triu(rng.random((nodes, nodes)) < density, 1)
    if rng.random() < 0.5:
        upper[0, 1:] = True  # a hub
    return (upper | upper.T).astype(int)


def rows(rng, nodes, width=3):
    """Unit rows, often opposite ones: sign alignment is where bounds have failed before."""
    codes = np.eye(width)[rng.integers(0, width, nodes)] * rng.choice([-1.0, 1.0], (nodes, 1))
    return unit_array(codes if rng.random() < 0.5 else rng.normal(size=(nodes, width)))


def moved(promise, pairs):
    """How each (matrix [sender, receiver] before, after, rows before, after) moves the sum.

    All pairs are aggregated at once as components of one graph, which cannot see each other."""
    starts = np.cumsum([0, *(len(before) for before, *_ in pairs)])

    def total(matrices, h):
        arcs = [np.array(np.nonzero(matrix)) + start for matrix, start in zip(matrices, starts, strict=False)]
        return aggregate(Lists.from_edge_index(np.concatenate(arcs, axis=1), starts[-1]), np.concatenate(h), promise)

    before, after, h_before, h_after = zip(*pairs, strict=True)
    return np.split(total(after, h_after) - total(before, h_before), starts[1:-1])


def worst(promise, pairs):
    return max(np.linalg.norm(change) for change in moved(promise, pairs))


def test_blanking_a_record_moves_the_sum_by_at_most_one_and_hubs_attain_it():
    rng, pairs = np.random.default_rng(0), []
    for _ in range(1500):
        nodes = int(rng.integers(2, 9))
        before = (rng.random((nodes, nodes)) < rng.random()).astype(int)
        np.fill_diagonal(before, 0)
        h, r = rows(rng, nodes), int(rng.integers(nodes))
        after, blank = before.copy(), h.copy()
        after[r], blank[r] = 0, 0.0
        pairs.append((before, after, h, blank))
    assert 0.999 < worst(RECORD, pairs) <= hop_sensitivity(RECORD, 1, 9, 4) + 1e-12


@pytest.mark.parametrize("hop", [1, 2])
def test_replacing_a_record_moves_the_sum_by_at_most_two_then_sqrt_two(hop):
    rng, pairs = np.random.default_rng(hop), []
    for _ in range(1500):
        nodes = int(rng.integers(2, 9))
        before = (rng.random((nodes, nodes)) < rng.random()).astype(int)
        np.fill_diagonal(before, 0)
        h, r = rows(rng, nodes), int(rng.integers(nodes))
        after, other = before.copy(), h.copy()
        if rng.random() < 0.5:
            after[r] = rng.random(nodes) < rng.random()
            after[r, r] = 0
        if hop == 1:
            other[r] = -h[r] if rng.random() < 0.5 else rows(rng, 1)[0]
        pairs.append((before, after, h, other))
    assert (
        0.99 * hop_sensitivity(REPLACE, hop, 9, 4)
        < worst(REPLACE, pairs)
        <= hop_sensitivity(REPLACE, hop, 9, 4) + 1e-12
    )


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("hop", [1, 2])
def test_k_neighbor_changes_stay_within_s_k(k, hop):
    promise, rng, pairs = KNeighborLevel(k, 1.0), np.random.default_rng(10 * k + hop), []
    for _ in range(2500):
        nodes = int(rng.integers(3, 9))
        before = undirected(rng, nodes, rng.random())
        h, r = rows(rng, nodes), int(rng.integers(nodes))
        friends = rng.permutation(np.flatnonzero(before[r]))[:k]
        after, other = before.copy(), h.copy()
        after[r, friends] = after[friends, r] = 0
        if hop == 1:
            other[r] = 0.0
        pairs.append((before, after, h, other))
    largest = worst(promise, pairs)
    assert largest <= k_neighbor_sensitivity(k, 8, 3)
    if k == 1 and hop == 1:
        assert largest > 0.93 * k_neighbor_sensitivity(k, 8, 3)


def test_s_k_is_the_reviewed_constant_and_its_witness_attains_it():
    """r and k friends, each friend with k further contacts shared by all, votes aligned with the growth of the weights."""
    assert [round(k_neighbor_sensitivity(k, 2 * k, 1), 4) for k in (1, 2, 5, 25)] == [1.4736, 1.7894, 2.4955, 5.1230]
    for k in (1, 2, 3):
        friends, shared = range(1, k + 1), range(k + 1, 2 * k + 1)
        nodes = 2 * k + 1
        before = np.zeros((nodes, nodes), int)
        for f in friends:
            before[0, f] = before[f, 0] = 1
            for s in shared:
                before[f, s] = before[s, f] = 1
        for s in shared:
            before[0, s] = before[s, 0] = 1  # r keeps these edges but sends nothing along them once absent
        pairs = []
        for sign_r, sign_f in itertools.product((-1.0, 1.0), repeat=2):
            h = np.zeros((nodes, 1))
            h[0], h[1 : k + 1] = sign_r, sign_f
            after, other = before.copy(), h.copy()
            after[0, 1 : k + 1] = after[1 : k + 1, 0] = 0
            other[0] = 0.0
            pairs.append((before, after, h, other))
        best = worst(KNeighborLevel(k, 1.0), pairs)
        assert best <= k_neighbor_sensitivity(k, nodes, 1)
        assert best > 0.85 * k_neighbor_sensitivity(k, nodes, 1)


@pytest.mark.parametrize(("k", "entries"), [(1, 2), (3, 4), (3, 60), (25, 26)])
def test_truncation_to_the_message_grid_is_charged(k, entries):
    """k friends of r lose it from lists of ``entries`` people; every coordinate steps over a multiple of 2^-24."""
    width, nodes = 40, k + 1 + k * (entries - 1)
    before = np.zeros((nodes, nodes), int)
    for friend in range(1, k + 1):
        first = k + 1 + (friend - 1) * (entries - 1)
        before[friend, first : first + entries - 1] = before[friend, 0] = 1
    after = before.copy()
    after[:, 0] = 0
    steps = np.random.default_rng(0).integers(1 << 17, 1 << 18, width)
    h = np.tile(steps * GRID * math.sqrt(entries - 1) * (1 + 2.0**-40), (nodes, 1))  # just above at the larger weight
    assert np.linalg.norm(h[1]) < 1
    (change,) = moved(KNeighborLevel(k, 1.0), [(before, after, h, h)])
    grown = np.linalg.norm(change[1:])  # rows other than r
    ideal = k**0.5 * (1 - math.sqrt((entries - 1) / entries)) * np.linalg.norm(h[1])
    assert grown > ideal + 1e-9, "more than the formula without truncation"
    assert grown <= k * (1 - math.sqrt(k / (k + 1))) * np.linalg.norm(h[1]) + truncation(k, k, nodes, width)


def test_one_friendship_moves_two_rows_and_one_link_moves_one():
    both, one = EdgeLevel(1.0), EdgeLevel(1.0, directed=True)
    rng, pairs = np.random.default_rng(3), {both: [], one: []}
    for _ in range(500):
        nodes = int(rng.integers(2, 8))
        before, h = undirected(rng, nodes, 0.5), rows(rng, nodes)
        i, j = rng.choice(nodes, 2, replace=False)
        after = before.copy()
        after[i, j] = after[j, i] = 1 - before[i, j]
        pairs[both].append((before, after.copy(), h, h))
        after[j, i] = before[j, i]
        pairs[one].append((before, after, h, h))
    assert math.sqrt(2) * 0.999 < worst(both, pairs[both]) <= math.sqrt(2) + 1e-12
    assert 0.999 < worst(one, pairs[one]) <= 1 + 1e-12


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_bounded_degree_excludes_the_own_row_and_stays_within_sqrt_d(relation):
    bound = 3
    promise = NodeLevel(1.0, adjacency="bounded-degree", max_degree=bound, relation=relation)
    rng, pairs, records = np.random.default_rng(4), [], []
    for _ in range(3000):
        nodes = 8
        before = np.zeros((nodes, nodes), int)
        for i, j in rng.permutation(list(itertools.combinations(range(nodes), 2))):
            if max(before[i].sum(), before[j].sum()) < bound and rng.random() < 0.7:
                before[i, j] = before[j, i] = 1
        h, r = rows(rng, nodes), int(rng.integers(nodes))
        after, other = before.copy(), h.copy()
        if relation == "zero-out":
            after[r] = after[:, r] = 0
            other[r] = 0.0
        else:
            other[r] = -h[r]
        pairs.append((before, after, h, other))
        records.append(r)
    others = (np.delete(change, r, axis=0) for change, r in zip(moved(promise, pairs), records, strict=True))
    assert (
        0.999 * hop_sensitivity(promise, 1, 9, 4)
        < max(map(np.linalg.norm, others))
        <= hop_sensitivity(promise, 1, 9, 4) + 1e-12
    )


def test_repeated_edges_and_self_loops_do_not_weaken_the_bound():
    """The multi-edge trap: counted in the degree and in the sum at once, nine copies of an edge would move the sum by 3."""
    edges = np.array([[0] * 9 + [0, 1], [1] * 9 + [0, 0]])
    h = np.ones((2, 1))
    full = aggregate(Lists.from_edge_index(edges, 2), h, RECORD)
    blank = aggregate(Lists.from_edge_index(edges[:, -1:], 2), np.array([[0.0], [1.0]]), RECORD)
    assert np.linalg.norm(full - blank) <= 1.0


def test_sums_do_not_depend_on_order_even_for_a_quarter_million_messages():
    """The power-of-two trap of float32 sums: 2^18 unit votes and 200 small ones in one row."""
    votes = 2**18 + 200
    edges = np.stack([np.arange(1, votes + 1), np.zeros(votes, dtype=int)])
    h = np.ones((votes + 1, 1))
    promise = EdgeLevel(1.0, directed=True)
    with_all = aggregate(Lists.from_edge_index(edges, votes + 1), h, promise)[0, 0]
    without_first = aggregate(Lists.from_edge_index(edges[:, 1:], votes + 1), h, promise)[0, 0]
    assert with_all - without_first == 1.0
