"""Published GAP at k-neighbor level: what one person moves in sums over lists that the code cuts, against the stated 2 sqrt D."""

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.central.conformance import inspect_method
from graphveil.audit.central.neighbours import undirected
from graphveil.graph import Lists
from graphveil.methods.common.aggregation import plain_sum

PERSON, OTHER = 0, 1  # OTHER is on the lists of all contacts of PERSON


def both_ways(pairs):
    arcs = np.array(pairs).T
    return np.concatenate([arcs, arcs[::-1]], axis=1)


def without_contacts(arcs, person, contacts):
    """``person`` and ``contacts`` off each other's lists."""
    sender, receiver = arcs
    gone = ((sender == person) & np.isin(receiver, contacts)) | ((receiver == person) & np.isin(sender, contacts))
    return arcs[:, ~gone]


def squared_move(arcs, fewer, rows, after, person, cap, key):
    """Of the sums over cut lists, the person's own row aside."""
    worlds = ((arcs, rows), (fewer, after))
    cut = lambda edges: Lists.from_edge_index(edges, len(rows)).capped(cap, np.random.default_rng(key))
    first, second = (plain_sum(cut(edges), sent) for edges, sent in worlds)
    return float((np.delete(first - second, person, axis=0) ** 2).sum())


def worst_move(cap, k, end):
    """k contacts whose lists lose PERSON and take in OTHER, whom PERSON reaches too; PERSON's row goes from -1 to ``end``."""
    fillers, contacts = np.arange(2, cap + 1), np.arange(cap + 1, cap + 1 + 12 * (cap + 1))
    nodes = int(contacts[-1]) + 1
    pairs = [(PERSON, OTHER), *((PERSON, c) for c in contacts), *((OTHER, c) for c in contacts)]
    arcs = both_ways(pairs + [(f, c) for f in fillers for c in contacts])
    rows = np.ones((nodes, 1))
    rows[PERSON] = -1.0
    after = rows.copy()
    after[PERSON] = end
    for key in range(3000):
        kept = Lists.from_edge_index(arcs, nodes).capped(cap, np.random.default_rng(key)).edge_index()
        held = {tuple(arc) for arc in kept.T.tolist()}
        ready = [c for c in contacts if (c, OTHER) not in held and (PERSON, c) not in held]
        if (PERSON, OTHER) in held and len(ready) >= k:
            fewer = without_contacts(arcs, PERSON, ready[:k])
            return squared_move(arcs, fewer, rows, after, PERSON, cap, key)
    raise AssertionError("no key cuts the lists as the worst case needs it")


def codes(cap, k, relation):
    facts = gv.PublicFacts(nodes=2708, features=8, classes=7)
    promise = gv.KNeighborLevel(k, 8.0, 1e-4, relation=relation)
    return {gap.code for gap in gv.Gap(mode="published", max_degree=cap, epochs=1).plan(facts, promise).gaps}


@pytest.mark.parametrize(("relation", "end"), [("zero-out", 0.0), ("replace", 1.0)])
@pytest.mark.parametrize("cap", [1, 2, 3, 5])
def test_the_cap_is_a_gap_from_the_least_k_on_at_which_some_graph_exceeds_the_stated_bound(cap, relation, end):
    exceeded = {k: worst_move(cap, k, end) > 4 * cap + 1e-9 for k in range(6)}
    assert {k: "D3" in codes(cap, k, relation) for k in exceeded} == exceeded
    assert any(exceeded.values()) and not exceeded[0]


def test_no_graph_moves_more_than_the_worst_case_when_a_person_leaves():
    """Small random graphs, signs and keys: all of what decides."""
    rng, reached = np.random.default_rng(0), 0.0
    for _ in range(800):
        nodes, cap, k = int(rng.integers(4, 10)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
        upper = np.triu(rng.random((nodes, nodes)) < rng.uniform(0.3, 1.0), 1)
        arcs = both_ways(np.argwhere(upper).reshape(-1, 2))
        rows = rng.choice([-1.0, 1.0], size=(nodes, 1))
        after = rows.copy()
        after[PERSON] = 0.0
        lost = rng.permutation(arcs[1][arcs[0] == PERSON])[:k]
        fewer, key = without_contacts(arcs, PERSON, lost), int(rng.integers(2**32))
        share = squared_move(arcs, fewer, rows, after, PERSON, cap, key) / ((len(lost) + 1) ** 2 + cap - 1)
        reached = max(reached, share if len(lost) else 0.0)
        assert share <= 1 + 1e-9
    assert reached > 0.9


def test_a_hundred_entries_cover_sixteen_contacts_that_leave_and_none_that_are_replaced():
    with_cap, without = {"D3", "D8"}, {"D8"}
    assert all(codes(100, k, "zero-out") == without for k in (0, 10, 16)) and codes(100, 0, "replace") == without
    assert all(codes(100, k, "zero-out") == with_cap for k in (17, 25)) and codes(100, 1, "replace") == with_cap


@pytest.mark.parametrize(("k", "expected"), [(1, {"D8"}), (8, {"D3", "D8"})])
def test_conformance_finds_the_cap_where_it_is_declared(k, expected):
    """Lists cut to one entry: of twenty contacts with the same two people on their lists, about half then take in the other."""
    contacts = np.arange(2, 22)
    nodes = np.arange(24)
    x = np.where(np.isin(nodes, contacts)[:, None], [1.0, 0.5], np.random.default_rng(1).normal(size=(24, 2)))
    arcs = both_ways([pair for c in contacts for pair in ((PERSON, c), (OTHER, c))] + [(22, 23)])
    data = undirected(x, nodes % 2, arcs, 2, train=nodes % 4 < 2, val=nodes % 4 == 2, test=nodes % 4 == 3)
    method = gv.Gap(mode="published", max_degree=1, hidden=4, epochs=2)
    names = {"hub": PERSON, "second hub": OTHER, "contact": 5}
    found = inspect_method(method, [gv.KNeighborLevel(k, 4.0, 1e-4)], on=(data, names))
    assert found.codes == expected
