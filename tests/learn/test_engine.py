"""Answers by block: whatever an engine delivers, in which order and how often, a query has one result."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import graphveil as gv
from graphveil.errors import GraphveilError, InputError
from graphveil.graph import powerlaw_sbm
from graphveil.graph.blocks import Block
from graphveil.graph.data.splits import random_split
from graphveil.graph.validate import validate
from graphveil.learn import engine
from graphveil.learn.engine.local import Local
from graphveil.learn.engine.messages import Sent, added_up


@pytest.fixture(scope="module")
def graph():
    return validate(random_split(powerlaw_sbm(3, nodes=400, features=6, classes=4), 1, (0.5, 0.2, 0.3)))


@dataclass(frozen=True)
class Stuttering(Local):
    """Every answer comes twice, the last block first, and one of them (if asked) not at all."""

    missing: int = -1

    def answers(self, private, query):
        found = list(super().answers(private, query))
        for number, answer in [*reversed(found), *found]:
            if number != self.missing:
                yield number, answer


@pytest.mark.parametrize(
    "method, promise",
    [
        (gv.DpMlp(steps=3), gv.NodeLevel(8.0)),
        (gv.Ballot(steps=3, combiner_steps=3), gv.NodeLevel(8.0)),
        (gv.Gap(steps=3), gv.NodeLevel(8.0)),
        (gv.Gap(steps=3, hidden=20), gv.KNeighborLevel(2, 8.0)),
        (gv.Gap(steps=3), gv.NodeLevel(8.0, adjacency="bounded-degree", max_degree=50)),
        (gv.Gap(epochs=3), gv.EdgeLevel(8.0)),
        (gv.Gap(epochs=3, hidden=0), gv.NonPrivate()),
        (gv.Mlp(epochs=3), gv.EdgeLevel(8.0)),
        (gv.DpMlp(epochs=3), gv.EdgeLevel(8.0)),
    ],
    ids=lambda one: repr(one) if hasattr(one, "name") else one.adjacency,
)
def test_answers_that_come_twice_or_late_change_no_release(graph, method, promise):
    expected = method.fit(graph, promise, seed=1).predictor.arrays()
    for where in (Local(1, 64), Local(3, 7), Stuttering(2, 64)):
        with engine.using(where):
            found = method.fit(graph, promise, seed=1).predictor.arrays()
        assert all(np.array_equal(found[name], expected[name]) for name in expected), where


def test_an_answer_that_does_not_come_stops_the_query(graph):
    with engine.using(Stuttering(2, 64, missing=3)), pytest.raises(GraphveilError, match="block 3 of 7"):
        engine.total(graph, lambda block: np.ones(1))


def test_an_engine_counts_inside_its_context_only(graph):
    blocks = lambda: int(engine.total(graph, lambda block: np.ones(1))[0])
    assert blocks() == 1 and engine.chosen() is None
    with engine.using(Local(1, 100)):
        assert blocks() == 4
        with engine.using(Local(1, 10)):
            assert blocks() == 40
        assert blocks() == 4
    assert blocks() == 1


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
@pytest.mark.parametrize("floor", [None, 3])
def test_messages_by_range_add_up_to_the_same_sums(graph, size, floor):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(graph.nodes, 3)) / 4
    rows[rng.random(graph.nodes) < 0.3] = 0.0  # some send nothing
    receivers = graph.masks["query"]
    sent = Sent.to(receivers, lambda block: rows[block.slots], floor)
    expected = engine.spread(graph, sent.messages, receivers, floor)
    firsts = range(0, sent.rows, size)
    sums = [None] * len(firsts)
    for slots in Local(1, 100).spans(graph):
        for number, part in enumerate(sent.by_range(Block(graph, slots), size)):
            starts, places, values = part
            assert len(starts) == len(values) + 1 and (np.diff(starts) > 0).all() and values.any(axis=1).all()
            assert not len(places) or (places.min() >= 0 and places.max() < size)
            sums[number] = added_up(min(size, sent.rows - firsts[number]), [part], sums[number])
    assert np.array_equal(np.concatenate(sums), expected) and expected.any()


def test_ranges_without_a_receiver_are_empty(graph):
    nobody = Sent.to(np.zeros(graph.nodes, dtype=bool), lambda block: np.ones((len(block), 2)), None)
    (part,) = nobody.by_range(Block(graph, slice(0, graph.nodes)), 10)
    assert nobody.rows == 0 and added_up(0, [part]).shape == (0, 2)


class Elsewhere(Local):
    """Counts as an engine in other processes."""

    elsewhere = True


@pytest.mark.parametrize(
    "method, promise",
    [
        (gv.Dpdgc(), gv.NodeLevel(4.0)),
        (gv.Ballot(), gv.EdgeLevel(4.0)),
        (gv.DpMlp(network="paper"), gv.NodeLevel(4.0)),
        (gv.Gap(mode="published"), gv.EdgeLevel(4.0)),
        (gv.LocalRecipe(), gv.Local("withheld", 1.0, 1.0)),
    ],
    ids=str,
)
def test_what_does_not_run_in_blocks_is_not_sent_to_workers(graph, method, promise):
    with engine.using(Elsewhere()), pytest.raises(InputError, match="does not run in blocks"):
        method.fit(graph, promise)


def test_total_writes_to_no_answer(graph):
    """An answer may be shared memory, or a table that the query still needs."""
    kept = np.ones(2)
    with engine.using(Local(1, 100)):
        assert engine.total(graph, lambda block: kept).tolist() == [4.0, 4.0]
    assert kept.tolist() == [1.0, 1.0]
    private = replace(graph, labels=np.full(graph.nodes, -1))
    assert (engine.gathered(private, lambda block: block.labels, np.ones(graph.nodes, dtype=bool)) == -1).all()
