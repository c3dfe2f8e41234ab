"""The utility benchmark resumes, judges rows by the stated rule and makes graphs that keep the degree promise."""

import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="module")
def utility():
    path = Path(__file__).parents[2] / "benchmarks" / "utility.py"
    if not path.exists():
        pytest.skip("the benchmarks are not part of this installation")
    spec = importlib.util.spec_from_file_location("utility_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_finished_runs_are_not_repeated(utility, tmp_path, monkeypatch):
    row = utility.Row("csbm", "node", "record", "zero-out", 4.0, 50.0)
    runs = list(utility.runs_of([row], "ballot", [100, 101], 5))
    done = []
    monkeypatch.setattr(utility, "measure", lambda run, data: done.append(run) or {"key": run.key, "accuracy": 60.0})
    monkeypatch.setattr(utility.Row, "load", lambda self, seed: None)
    utility.finish(runs, utility.Store(tmp_path / "runs.jsonl"))
    assert len(done) == 6
    utility.finish(runs, utility.Store(tmp_path / "runs.jsonl"))
    assert len(done) == 6
    assert len({json.loads(line)["key"] for line in (tmp_path / "runs.jsonl").read_text().splitlines()}) == 6


@pytest.mark.parametrize(
    ("accuracies", "holds"),
    [([49.4] * 5, True), ([49.2] * 5, False), ([44.0, 50.0, 44.0, 50.0, 50.0], True)],
    ids=["within 0.7", "below 0.7", "within two standard errors"],
)
def test_a_row_holds_within_the_larger_of_0_7_and_two_standard_errors(utility, tmp_path, accuracies, holds):
    row = utility.Row("cora", "node", "record", "zero-out", 4.0, 50.0)
    store = utility.Store(tmp_path / "runs.jsonl")
    for seed, accuracy in enumerate(accuracies):
        for run in (utility.Run("ballot", row, 4.0, seed), utility.Run("ballot", row, math.inf, seed)):
            store.add({"key": run.key, "accuracy": accuracy})
    summary = utility.summary(row, "ballot", list(range(5)), store)
    assert summary["holds"] is holds and summary["dp_mlp"] is None
    assert "| cora | node / record / zero-out | 4 |" in utility.as_markdown([summary])


def test_the_graphs_of_bounded_rows_keep_their_degree_promise(utility):
    row = utility.Row("powerlaw-sbm", "node", "bounded-degree:7", "replace", 16.0, 50.0)
    senders, receivers = row.load(0).edge_index.numpy()
    degrees = np.bincount(senders), np.bincount(receivers)
    assert max(map(max, degrees)) == 7 and len(senders) > 1000


def test_every_target_row_names_a_promise_that_ballot_supports(utility):
    from graphveil.methods.ballot import Ballot

    rows = [*utility.target_rows("ballot"), *utility.bounded_rows()]
    assert len(rows) == 107
    assert all(row.promise(row.epsilon).guarantee in Ballot().supports for row in rows)
