"""Both ways round of DPDGC's matrix: what one change touches, by brute force, and what it costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.central.conformance import ConformanceError, check_private_method
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError, PrivacyError
from graphveil.graph import Lists
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.dpdgc.bounds import AdjacencyRows, group_of, table_bound

LISTED_BY, OWN_LIST = AdjacencyRows.LISTED_BY, AdjacencyRows.OWN_LIST
SMALL = {"steps": 3, "code_steps": 3, "width": 4, "epochs": 2}
NODES = 9


def matrix_of(own: np.ndarray, rows: AdjacencyRows) -> np.ndarray:
    """A for lists ``own[r, i] = 1`` where r lists i, through the code that turns lists."""
    lists = Lists.from_edge_index(np.array(np.nonzero(own)), NODES)
    senders, receivers = (lists.turned() if rows is OWN_LIST else lists).edge_index()
    matrix = np.zeros((NODES, NODES), dtype=int)
    matrix[receivers, senders] = 1
    return matrix


def changed_lists(own: np.ndarray, promise, rng: np.random.Generator) -> np.ndarray:
    """The lists after node 0 changed as far as the promise reaches."""
    after, fresh = own.copy(), (rng.random(NODES) < 0.6).astype(int)
    replaced = promise.relation == "replace"
    if promise.adjacency == "record":
        after[0] = fresh if replaced else 0
    elif promise.level == "edge":
        other = int(rng.integers(1, NODES))
        after[0, other] = 1 - after[0, other]
        if promise.adjacency == "edge-undirected":
            after[other, 0] = after[0, other]
    else:
        friends = np.flatnonzero(own[0] | own[:, 0])
        lost = rng.permutation(friends)[: promise.k]
        after[0, lost] = after[lost, 0] = 0
        if replaced:
            gained = rng.permutation(np.setdiff1d(np.arange(1, NODES), friends))[: promise.k]
            after[0, gained] = after[gained, 0] = 1
    after[0, 0] = 0
    return after


PROMISES = [
    gv.EdgeLevel(1.0),
    gv.EdgeLevel(1.0, directed=True),
    *(gv.KNeighborLevel(k, 1.0, relation=relation) for k in (0, 1, 2) for relation in ("zero-out", "replace")),
    gv.NodeLevel(1.0),
    gv.NodeLevel(1.0, relation="replace"),
]


@pytest.mark.parametrize("rows", [LISTED_BY, OWN_LIST])
@pytest.mark.parametrize("promise", PROMISES, ids=lambda p: f"{p.adjacency}-{p.relation}-{p.k}")
def test_rows_touched_and_table_moved_are_within_the_bounds_and_attain_them(promise, rows):
    """Random graphs, symmetric where the adjacency is; with listed-by rows under record every list has at most D entries."""
    rng, cap, codes = np.random.default_rng(7), 3, np.eye(NODES)
    facts = gv.PublicFacts(NODES, 3, 2)
    capped = promise.adjacency == "record" and rows is LISTED_BY
    most, furthest = 0, 0.0
    for _ in range(300):
        own = (rng.random((NODES, NODES)) < 0.5).astype(int)
        np.fill_diagonal(own, 0)
        if promise.adjacency in ("edge-undirected", "k-neighbor"):
            own = np.triu(own) + np.triu(own).T
        after = changed_lists(own, promise, rng)
        if capped:  # the cut reads the own list alone; which entries it keeps does not matter here
            own, after = (np.where(np.cumsum(m, axis=1) <= cap, m, 0) for m in (own, after))
        before, later = matrix_of(own, rows), matrix_of(after, rows)
        touched = set(np.flatnonzero((before != later).any(axis=1))) | ({0} if promise.level != "edge" else set())
        most = max(most, len(touched))
        if not capped:
            moved = (before - later) @ codes
            shown = moved if promise.level == "edge" else moved[1:]  # row 0 is node 0's own matter
            furthest = max(furthest, float(np.linalg.norm(shown)))
    a, b = group_of(promise, cap, rows)
    own_vanishes = promise.level != "edge" and promise.relation == "zero-out"
    assert most == a and b == a - own_vanishes
    if not capped:
        assert furthest == pytest.approx(table_bound(facts, promise, 3, True, rows))


def test_label_codes_have_no_bound_on_own_lists():
    """Everybody who lists a person has that person's label in their row."""
    with pytest.raises(PrivacyError, match="no bound is proved"):
        table_bound(gv.PublicFacts(9, 3, 2), gv.NodeLevel(1.0), 3, False, OWN_LIST)
    with pytest.raises(InputError, match="listed-by"):
        Dpdgc(codes="labels", rows="own-list").fit(worst_case_graph()[0], gv.NodeLevel(1.0))


def test_own_rows_under_record_need_no_noise_on_the_table_and_are_for_their_owner_alone():
    data = worst_case_graph(seed=5)[0]
    certificate = Dpdgc(**SMALL).fit(data, gv.NodeLevel(2.0), seed=0).certificate
    table = next(release for release in certificate.releases if release.name == "table")
    assert certificate.holds and 1.99 < certificate.epsilon <= 2.0
    assert table.own_row_excluded and set(table.sensitivity.values()) == {0.0}
    assert any("stay with the curator" in line for line in certificate.assumptions)


@pytest.mark.long
@pytest.mark.parametrize("codes", ["learned", "rr-labels"])
@pytest.mark.parametrize("rows", ["listed-by", "own-list"])
def test_both_ways_round_conform(codes, rows):
    check_private_method(Dpdgc(**SMALL, codes=codes, rows=rows))


def test_a_table_that_takes_the_wrong_way_round_is_caught(monkeypatch):
    """Noiseless sums over those who list i, sold as own lists: the suite sees other people's rows move."""
    monkeypatch.setattr(Lists, "turned", lambda self: self)
    with pytest.raises(ConformanceError) as report:
        check_private_method(Dpdgc(**SMALL, codes="random", rows="own-list"), [gv.NodeLevel(4.0, 1e-4)])
    assert "table" in str(report.value)


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_without_protected_edges_the_table_is_free_and_features_still_cost(relation):
    data = worst_case_graph(seed=5)[0]
    promise = gv.KNeighborLevel(0, 2.0, relation=relation)
    certificate = Dpdgc(**SMALL).fit(data, promise, seed=0).certificate
    assert certificate.holds and math.isclose(certificate.epsilon, 2.0, rel_tol=5e-3)
    with pytest.raises(InputError, match="at least 1"):
        gv.Ballot().plan(gv.PublicFacts.of(data), promise)
