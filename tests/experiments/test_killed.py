"""A sweep that is killed in the middle, five times, and resumed: nothing is lost, nothing is done twice."""

import multiprocessing
import os
import random
import signal
import time

from graphveil.experiments import Store, expand, sweep
from graphveil.experiments.engines.serial import Serial
from graphveil.experiments.read import experiment_from

KILLS = 5
TIMING = ("seconds", "cpu_seconds", "finished")


def drive(body, path):
    """What ``graphveil sweep --resume`` does, in a process of its own."""
    runs = expand(experiment_from(body, "s"))
    with Store(path) as store:
        sweep("killed", runs, store, Serial(), resume=True)


def finished(path):
    if not path.exists():
        return set()
    with Store(path) as store:
        return set(store.finished())


def kept(path):
    with Store(path) as store:
        assert store.check() == [] and store.missing("killed") == 0
        rows = store.rows()
        attempts = store.attempts()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: {k: v for k, v in row.items() if k not in TIMING} for row in rows}, attempts


def test_five_killed_and_resumed_sweeps_add_up_to_an_uninterrupted_one(body, tmp_path):
    body |= {"seeds": 6}  # 24 runs
    drive(body, tmp_path / "whole.sqlite")  # also loads what the forked drivers need
    path, coins = tmp_path / "killed.sqlite", random.Random(7)
    context = multiprocessing.get_context("fork")
    seen, kills = set(), 0
    for _ in range(KILLS):
        driver = context.Process(target=drive, args=(body, path))
        driver.start()
        wanted = len(seen) + 1 + coins.randrange(3)
        while len(finished(path)) < wanted and driver.is_alive():
            time.sleep(0.002)
        time.sleep(coins.random() * 0.03)  # anywhere within a run, or within the writing of a row
        os.kill(driver.pid, signal.SIGKILL)
        driver.join()
        kills += driver.exitcode == -signal.SIGKILL
        now = finished(path)
        assert seen <= now
        seen = now
    assert kills == KILLS and 0 < len(seen) < 24
    drive(body, path)
    whole, once = kept(tmp_path / "whole.sqlite")
    resumed, attempts = kept(path)
    assert resumed == whole and set(once.values()) == {1}
    assert sum(attempts.values()) <= len(whole) + KILLS  # each kill costs at most the run it hit
