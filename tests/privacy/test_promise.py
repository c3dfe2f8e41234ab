"""Promises: what may be asked for, and the default delta."""

import math

import pytest

from graphveil.errors import InputError
from graphveil.privacy.promise import EdgeLevel, KNeighborLevel, NodeLevel, NonPrivate, Promise


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_epsilon_must_be_positive(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        NodeLevel(epsilon)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan, 2.0])
def test_delta_must_lie_strictly_between_zero_and_one(delta):
    with pytest.raises(InputError, match="delta"):
        EdgeLevel(1.0, delta)


@pytest.mark.parametrize(
    "broken",
    [
        lambda: KNeighborLevel(-1, 1.0),
        lambda: NodeLevel(1.0, adjacency="bounded-degree"),
        lambda: NodeLevel(1.0, max_degree=5),
        lambda: NodeLevel(1.0, adjacency="bounded-degree", max_degree=0),
        lambda: NodeLevel(1.0, adjacency="edge-undirected"),
        lambda: NodeLevel(1.0, adjacency="everything"),
        lambda: NodeLevel(1.0, relation="sometimes"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(broken):
    with pytest.raises(InputError):
        broken()


@pytest.mark.parametrize(("nodes", "delta"), [(1000, 1e-3), (1001, 1e-4), (2708, 1e-4), (10**6, 1e-6)])
def test_the_default_delta_reads_the_public_number_of_nodes_only(nodes, delta):
    assert NodeLevel(1.0).with_default_delta(nodes).delta == pytest.approx(delta)
    assert EdgeLevel(1.0).with_default_delta(nodes).delta == pytest.approx(delta / 10)
    assert NodeLevel(1.0, 0.01).with_default_delta(nodes).delta == 0.01


@pytest.mark.parametrize(
    "promise",
    [
        NodeLevel(4.0, 1e-4, relation="replace"),
        NodeLevel(4.0, adjacency="bounded-degree", max_degree=7),
        KNeighborLevel(3, 2.0),
        EdgeLevel(1.0, directed=True),
        NodeLevel(math.inf),
        NonPrivate(),
    ],
)
def test_json_round_trip(promise):
    assert Promise.from_json(promise.to_json()) == promise


def test_names_in_plain_text_are_the_same_promise_and_plan():
    import graphveil as gv

    plain = gv.Promise("node", "record", "replace", 2.0, 1e-4)
    assert plain == gv.NodeLevel(2.0, 1e-4, relation="replace")
    facts = gv.PublicFacts(nodes=100, features=8, classes=3, kinds={"train": 50, "calibration": 10, "query": 40})
    whole = gv.Gap().plan(facts, gv.NodeLevel(2.0, 1e-4, relation="replace")).to_json()
    assert gv.Gap().plan(facts, plain).to_json() == whole
    with pytest.raises(gv.GraphveilError, match="unknown relation"):
        gv.Promise("node", "record", "swap", 2.0)
