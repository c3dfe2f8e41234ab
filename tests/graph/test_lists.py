"""Contact lists: counting, exact sums, mass splitting, caps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from graphveil.errors import InputError
from graphveil.graph import GRID, Lists


@st.composite
def arcs_of_some_graph(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    nodes = draw(st.integers(1, 12))
    count = draw(st.integers(0, 40))
    return draw(hnp.arrays(np.int64, (2, count), elements=st.integers(0, nodes - 1))), nodes


def random_lists(nodes: int, arcs: int, seed: int = 0) -> Lists:
    return Lists.from_edge_index(np.random.default_rng(seed).integers(0, nodes, (2, arcs)), nodes)


@given(arcs_of_some_graph())
def test_lists_are_the_set_of_arcs_without_self_loops(case: tuple[np.ndarray, int]) -> None:
    arcs, nodes = case
    lists = Lists.from_edge_index(arcs, nodes)
    wanted = {(k, i) for k, i in arcs.T.tolist() if k != i}
    assert set(map(tuple, lists.edge_index().T.tolist())) == wanted
    assert lists.arcs == len(wanted)
    assert lists.self_loops == sum(k == i for k, i in arcs.T.tolist())
    assert lists.duplicates == arcs.shape[1] - lists.self_loops - len(wanted)
    assert lists.out_degrees.tolist() == [sum(k == node for k, _ in wanted) for node in range(nodes)]
    assert lists.in_degrees.tolist() == [sum(i == node for _, i in wanted) for node in range(nodes)]


@given(arcs_of_some_graph(), st.integers(0, 2**32))
def test_aggregate_sums_what_senders_send_to_each_receiver(case: tuple[np.ndarray, int], seed: int) -> None:
    arcs, nodes = case
    lists = Lists.from_edge_index(arcs, nodes)
    messages = np.random.default_rng(seed).integers(-(2**24), 2**24, (nodes, 3)) * GRID
    dense = np.zeros((nodes, nodes))
    dense[tuple(lists.edge_index()[::-1])] = 1
    assert np.array_equal(lists.aggregate(messages), dense @ messages)


def test_a_list_that_names_nobody_is_not_symmetrised() -> None:
    lists = Lists.from_edge_index(np.array([[0], [1]]), 2)
    assert lists.out_degrees.tolist() == [1, 0]
    assert lists.aggregate(np.array([[1.0], [5.0]])).tolist() == [[0.0], [1.0]]


def test_sums_of_split_messages_do_not_depend_on_the_order_of_the_arcs() -> None:
    """2^18 unit messages and 200 short ones in one row: the case in which float32 sums move by 2 instead of 1."""
    senders = 2**18 + 200
    arcs = np.stack([np.arange(1, senders + 1), np.zeros(senders, dtype=np.int64)])
    values = np.ones((senders + 1, 1))
    values[-200:] = 4000**-0.5
    lists = Lists.from_edge_index(arcs, senders + 1)
    messages = lists.split_messages(values)
    total = lists.aggregate(messages)[0, 0]
    assert Fraction(total) == sum(Fraction(value) for value in messages[1:, 0].tolist())
    without = messages.copy()
    without[5] = 0
    assert total - lists.aggregate(without)[0, 0] == messages[5, 0] == 1.0


@given(st.integers(1, 10**12))
def test_mass_weights_never_exceed_the_inverse_root_of_the_degree(degree: int) -> None:
    lists = Lists.from_edge_index(np.zeros((2, 0), dtype=np.int64), 1)
    lists.out_degrees = np.array([degree])
    weight = Fraction(float(lists.mass_weights()[0]))
    assert weight**2 * degree <= 1
    assert float(weight) >= degree**-0.5 * (1 - 1e-14)


@given(hnp.arrays(np.float64, (4, 3), elements=st.floats(-1, 1)), st.integers(1, 5))
def test_split_messages_lie_on_the_grid_and_never_lengthen(values: np.ndarray, floor: int) -> None:
    lists = Lists.from_edge_index(np.array([[0, 0, 0, 1, 1, 2], [1, 2, 3, 0, 2, 3]]), 4)
    messages = lists.split_messages(values, floor)
    assert np.array_equal(np.rint(messages / GRID) * GRID, messages)
    for node, (row, sent) in enumerate(zip(values.tolist(), messages.tolist(), strict=True)):
        mass = max(int(lists.out_degrees[node]), floor)
        for value, message in zip(row, sent, strict=True):
            assert Fraction(message) ** 2 * mass <= Fraction(value) ** 2
            assert abs(message) >= abs(value) * mass**-0.5 - 2 * GRID


def test_blanking_any_record_moves_the_mass_split_sum_by_at_most_one() -> None:
    lists = random_lists(200, 3000)
    rng = np.random.default_rng(1)
    values = rng.standard_normal((200, 8))
    values /= np.linalg.norm(values, axis=1, keepdims=True) * (1 + 1e-12)
    before = lists.aggregate(lists.split_messages(values))
    arcs = lists.edge_index()
    for record in range(0, 200, 7):
        without = Lists.from_edge_index(arcs[:, arcs[0] != record], 200)
        blank = values.copy()
        blank[record] = 0
        change = before - without.aggregate(without.split_messages(blank))
        assert np.linalg.norm(change) <= 1.0


def test_a_cap_keeps_the_shorter_lists_and_cuts_the_others_to_the_bound() -> None:
    lists = random_lists(300, 6000)
    capped = lists.capped(5, np.random.default_rng(0))
    assert np.array_equal(capped.out_degrees, np.minimum(lists.out_degrees, 5))
    assert set(map(tuple, capped.edge_index().T.tolist())) <= set(map(tuple, lists.edge_index().T.tolist()))


def test_what_a_cap_keeps_of_one_list_does_not_depend_on_other_lists() -> None:
    lists = random_lists(100, 4000)
    arcs = lists.edge_index()
    fewer = Lists.from_edge_index(arcs[:, arcs[0] != 7], 100)
    kept, kept_fewer = (each.capped(6, np.random.default_rng(3)).edge_index() for each in (lists, fewer))
    assert np.array_equal(kept[:, kept[0] != 7], kept_fewer)


def test_a_cap_chooses_uniformly() -> None:
    """4000 caps of one list of 8 to 2: every entry is kept 1000 times, give or take 5 standard deviations (137)."""
    lists = Lists.from_edge_index(np.stack([np.zeros(8, dtype=np.int64), np.arange(1, 9)]), 9)
    rng = np.random.default_rng(0)
    counts = np.zeros(9)
    for _ in range(4000):
        counts[lists.capped(2, rng).edge_index()[1]] += 1
    assert np.abs(counts[1:] - 1000).max() < 137


def test_restricting_receivers_keeps_exactly_the_arcs_into_them() -> None:
    lists = random_lists(50, 400)
    mask = np.arange(50) % 3 == 0
    arcs = lists.edge_index()
    assert np.array_equal(lists.restricted_to(mask).edge_index(), arcs[:, mask[arcs[1]]])


def test_degrees_are_linear_work_on_a_million_arcs() -> None:
    lists = random_lists(200_000, 1_000_000)
    assert lists.out_degrees.sum() == lists.arcs == lists.in_degrees.sum()
    assert lists.aggregate(np.ones((200_000, 1))).ravel().tolist() == lists.in_degrees.tolist()


@settings(max_examples=5)
@given(st.sampled_from([(-1, 0), (0, 3)]))
def test_nodes_out_of_range_are_refused(arc: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=r"outside 0\.\.2"):
        Lists.from_edge_index(np.array([[arc[0]], [arc[1]]]), 3)
