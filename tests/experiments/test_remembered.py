"""Settings of a sweep that end in the same lists are trained and attacked once, and their rows say the same as apart."""

from __future__ import annotations

import pytest

from graphveil import attacks
from graphveil.experiments import execute
from graphveil.experiments.expand import expand
from graphveil.experiments.read import experiment_from
from graphveil.learn.remembered import Memory

SPEC = {
    "name": "same",
    "seeds": [3],
    "methods": [
        {
            "name": "graph-privatizer",
            "mode": "published",
            "options": {"alpha": alpha, "threshold": threshold, "epochs": 5, "feature_steps": 1},
        }
        for alpha, threshold in ((0.0, 1.0), (0.5, 1.0), (0.0, 0.0))
    ],
    "data": [{"name": "powerlaw-sbm", "options": {"nodes": 200, "features": 8, "classes": 3}}],
    "promises": [{"level": "local", "features": 3, "labels": 3, "edges": 0.1}],
    "attacks": [{"name": "link-teller", "count": 40}],
}
TIMES = ("seconds", "cpu_seconds", "finished")


def rows(monkeypatch: pytest.MonkeyPatch, most: int) -> tuple[list[dict], Memory]:
    memory = Memory(most)
    monkeypatch.setattr(execute, "_memory", lambda: memory)
    return [execute.execute(run.to_json()) for run in expand(experiment_from(SPEC, "same"))], memory


def test_rows_are_those_of_runs_that_remember_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    attack, games = attacks.published_link_teller, []
    monkeypatch.setattr(attacks, "published_link_teller", lambda *a, **b: games.append(1) or attack(*a, **b))
    together, memory = rows(monkeypatch, 2**20)
    assert len(games) == 2
    apart, forgetful = rows(monkeypatch, 0)
    assert [row["status"] for row in together] == ["done"] * 3
    for one, other in zip(together, apart, strict=True):
        assert {key: one[key] for key in one if key not in TIMES} == {
            key: other[key] for key in other if key not in TIMES
        }
    assert together[0]["metrics"] == together[1]["metrics"] != together[2]["metrics"]
    assert (memory.reused, forgetful.reused) == (1, 0)
    assert len(games) == 5


def test_only_a_run_of_its_own_says_how_long_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    together, _ = rows(monkeypatch, 2**20)
    assert [row["cpu_seconds"] is None for row in together] == [False, True, False]


def test_runs_without_a_seed_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(2**20)
    monkeypatch.setattr(execute, "_memory", lambda: memory)
    spec = {key: value for key, value in SPEC.items() if key != "seeds"} | {"repeats": 2}
    for run in expand(experiment_from(spec, "same")):
        assert execute.execute(run.to_json())["status"] == "done"
    assert not memory._kept
