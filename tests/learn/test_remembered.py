"""What is computed from the same values is computed once, and only while somebody remembers."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

from graphveil.learn.remembered import Memory, notes_on, remembered, remembering


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> object:
        self.calls += 1
        return object()


def test_nothing_is_kept_unless_somebody_remembers() -> None:
    compute = Counted()
    assert remembered("a", compute) is not remembered("a", compute)
    with remembering(None):
        remembered("a", compute)
    assert compute.calls == 3


def test_equal_values_are_computed_once() -> None:
    memory, compute = Memory(10_000), Counted()
    with remembering(memory):
        found = [remembered((np.arange(3), {"a": 1}, np.random.default_rng(5)), compute) for _ in range(3)]
    assert found[0] is found[1] is found[2]
    assert (compute.calls, memory.reused) == (1, 2)


@pytest.mark.parametrize("other", [(np.arange(3.0), 1), (np.arange(4), 1), (np.arange(3)[::-1], 1), (np.arange(3), 2)])
def test_whatever_differs_is_computed_again(other: tuple) -> None:
    memory, compute = Memory(10_000), Counted()
    with remembering(memory):
        remembered((np.arange(3), 1), compute)
        remembered(other, compute)
    assert compute.calls == 2


def test_coins_that_were_drawn_from_are_other_coins() -> None:
    memory, compute, coins = Memory(10_000), Counted(), np.random.default_rng(5)
    with remembering(memory):
        remembered(coins, compute)
        coins.random()
        remembered(coins, compute)
    assert compute.calls == 2


def test_the_oldest_result_is_forgotten_first() -> None:
    memory, compute = Memory(2 * len(pickle.dumps(1))), Counted()
    with remembering(memory):
        for read in (1, 2, 1, 3, 1, 2):
            remembered(read, compute)
    assert compute.calls == 4  # 1, 2, 3, and 2 again


def test_notes_last_as_long_as_the_memory_of_what_they_are_on() -> None:
    memory, thing = Memory(10_000), Counted()
    with remembering(memory):
        notes_on(thing)["seen"] = 1
        assert notes_on(thing) == {"seen": 1}
    assert notes_on(thing) == {}
    del thing
    gc.collect()
    assert not memory.notes
