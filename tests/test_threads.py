"""Shares of work: each is done once, nothing comes back before all have ended, and failures do."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
import torch

from graphveil.learn import Adam
from graphveil.privacy.noise import Noise
from graphveil.threads import STRETCH, in_stretches, share_out


@pytest.mark.parametrize("shares", [1, 2, 5, 40])
def test_every_share_is_done_once_and_the_first_one_here(shares):
    done = []
    share_out(lambda share: done.append((share, threading.get_ident())), shares)
    assert sorted(share for share, _ in done) == list(range(shares))
    assert dict(done)[0] == threading.get_ident()


def test_a_failure_comes_back_when_all_have_ended():
    ended = []

    def work(share):
        if share == 0:
            raise KeyError("here")
        time.sleep(0.05)
        ended.append(share)
        if share == 2:
            raise MemoryError

    with pytest.raises(KeyError):
        share_out(work, 2)
    assert ended == [1]
    with pytest.raises(MemoryError):
        share_out(lambda share: work(share) if share else None, 3)
    assert sorted(ended) == [1, 1, 2]


@pytest.mark.parametrize("size", [0, 5, STRETCH, 2 * STRETCH, 3 * STRETCH + 7])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_stretches_cover_every_number_once(size, threads):
    seen = np.zeros(size, dtype=int)

    def work(part):
        seen[part] += 1

    in_stretches(work, size, threads)
    assert (seen == 1).all()


def test_a_fork_has_threads_of_its_own():
    share_out(lambda share: None, 2)
    child = os.fork()
    if child == 0:
        done = []
        try:
            share_out(done.append, 2)
        finally:
            os._exit(0 if sorted(done) == [0, 1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_sums_and_steps_are_the_same_in_any_number_of_threads():
    size, before = 3 * STRETCH + 11, torch.get_num_threads()
    value = np.random.default_rng(0).normal(size=size)
    released = [Noise(4, threads).add_gaussian(value, 0.5) for threads in (1, 3)]
    np.testing.assert_array_equal(*released)
    moved = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            adam, parameters = Adam(0.01), torch.zeros(size, dtype=torch.float64)
            for _ in range(3):
                adam.step(parameters, torch.from_numpy(value), 2.0)
            moved.append(parameters)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*moved)
