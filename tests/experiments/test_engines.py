"""Engines: the same accuracies everywhere; a lost worker costs its own run only."""

import os
import signal

import pytest

from graphveil.experiments import Store, expand, sweep
from graphveil.experiments.engines.choose import choose
from graphveil.experiments.engines.process import Processes, _Worker
from graphveil.experiments.engines.serial import Serial
from graphveil.experiments.read import experiment_from

from .conftest import OTHER, SMALL


@pytest.fixture
def runs(body):
    wide = body | {"data": [SMALL, OTHER], "seeds": 2}
    wide["grids"] = [{}, {"methods": ["mlp"], "promises": [{"level": "none"}], "seeds": [0], "data": [SMALL]}]
    wide["grids"][1]["methods"] = [{"name": "mlp", "options": {"epochs": 2}}]
    return expand(experiment_from(wide, "s"))


def outcomes(runs, store_path, engine):
    with Store(store_path) as store:
        counts = sweep("e", runs, store, engine)
        assert counts.done + counts.failed == len(runs) and store.check() == []
        return {row["id"]: (row["status"], row["metrics"], row["epsilon"], row["releases"]) for row in store.rows()}


@pytest.mark.long
def test_processes_find_the_same_figures_as_one_and_survive_a_dead_worker(runs, tmp_path, monkeypatch):
    alone = outcomes(runs, tmp_path / "serial.sqlite", Serial())
    assert all(status == "done" for status, *_ in alone.values())
    killed, start = [], _Worker.start

    def start_and_kill(worker, run):
        start(worker, run)
        if not killed:
            killed.append(run.id)
            os.kill(worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(_Worker, "start", start_and_kill)
    found = outcomes(runs, tmp_path / "process.sqlite", Processes(2))
    assert found.pop(killed[0])[0] == "failed"
    assert found == {name: outcome for name, outcome in alone.items() if name != killed[0]}


def test_a_run_that_fails_is_recorded_and_the_rest_goes_on(body, tmp_path):
    body |= {
        "data": [{**SMALL, "split": "per-class"}, SMALL],
        "seeds": 1,
    }  # 120 nodes are too few for 500 validation nodes
    runs = expand(experiment_from(body, "s"))
    with Store(tmp_path / "r.sqlite") as store:
        counts = sweep("e", runs, store, Serial())
        rows = store.rows()
    assert (counts.done, counts.failed) == (4, 4)
    assert {row["error"] for row in rows if row["status"] == "failed"} != {None}
    assert all("labelled nodes are left" in row["error"] for row in rows if row["split"] == "per-class")


def test_failed_runs_are_tried_again_only_when_asked(body, tmp_path):
    runs = expand(experiment_from(body | {"seeds": 1}, "s"))
    with Store(tmp_path / "r.sqlite") as store:
        sweep("e", runs, store, Broken())
        assert sweep("e", runs, store, Serial(), resume=True).done == 0
        counts = sweep("e", runs, store, Serial(), resume=True, retry_failed=True)
        assert counts.done == len(runs) and counts.failed == 0 and store.check() == []
        assert set(store.attempts().values()) == {2}


class Broken:
    """An engine whose workers are all lost."""

    name = "broken"

    def run(self, runs):
        from graphveil.experiments.execute import failed

        return (failed(run, "lost") for run in runs)


def test_unseeded_runs_draw_noise_of_their_own(body):
    from graphveil.experiments.execute import execute

    body = {key: value for key, value in body.items() if key != "seeds"} | {"repeats": 2, "epsilons": [0.05]}
    runs = expand(experiment_from(body, "s"))
    assert len({run.id for run in runs}) == len(runs) == 4 and {run.seed for run in runs} == {None}
    again = [execute(runs[0].to_json()) for _ in range(5)]
    assert all(row["holds"] and row["status"] == "done" for row in again)
    # at epsilon 0.05 accuracies are those of noise; five times the same three figures: less than one in a million
    assert len({str(row["metrics"]) for row in again}) > 1


@pytest.mark.long
def test_ray_finds_the_same_figures(runs, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed (extra 'ray')")
    some = runs[:6]
    assert outcomes(some, tmp_path / "ray.sqlite", choose("ray", 1)) == outcomes(some, tmp_path / "s.sqlite", Serial())


def test_a_cluster_that_is_not_there_is_one_line(runs):
    import socket

    from graphveil.errors import InputError

    pytest.importorskip("ray", reason="Ray is not installed (extra 'ray')")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens
        for address in (f"127.0.0.1:{closed.getsockname()[1]}", "127.0.0.1:port"):
            with pytest.raises(InputError, match="no Ray cluster"):
                next(choose("ray", 1, address=address).run(iter(runs)))


def test_engines_that_do_not_exist_are_refused():
    from graphveil.errors import InputError

    for name, address, word in (("cluster", None, "serial, process, ray"), ("serial", "auto", "--engine ray")):
        with pytest.raises(InputError, match=word):
            choose(name, address=address)
