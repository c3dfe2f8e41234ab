"""Selection on private validation nodes: what it costs, and that the whole stays within the promise."""

import math

import numpy as np
import pytest

from graphveil.experiments import Store, expand, sweep
from graphveil.experiments.engines.serial import Serial
from graphveil.experiments.execute import NOT_COVERED, TRIED_AGAIN, execute
from graphveil.experiments.read import experiment_from
from graphveil.experiments.selection import repetition_mu, selection_epsilon
from graphveil.privacy.accounting.loss import gaussian_epsilon

DELTA = 1e-4
CANDIDATES = [{"steps": 1, "learning_rate": 1e-6}, {"steps": 20}]


def by_theorem_2(mu, mean, delta):
    """Papernot and Steinke, Theorem 2, for a Gaussian and eta = 1: least over both Renyi orders, then the usual conversion."""
    gamma = 1 / mean
    orders = np.linspace(1.05, 200, 4000)
    extra = np.min(2 * (1 - 1 / orders) * orders * mu**2 / 2 + 2 * math.log(1 / gamma) / orders)
    renyi = orders * mu**2 / 2 + extra + math.log(mean) / (orders - 1)
    return np.min(renyi + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1))


@pytest.mark.parametrize("mean", [2.0, 10.0])
def test_the_cost_is_that_of_the_paper_s_theorem(mean):
    assert selection_epsilon(0.5, DELTA, mean) == pytest.approx(by_theorem_2(0.5, mean, DELTA), rel=0.01)


def test_a_repetition_gets_what_keeps_the_whole_within_epsilon():
    for mean in (2.0, 20.0):
        mu = repetition_mu(4.0, DELTA, mean)
        assert 3.97 < selection_epsilon(mu, DELTA, mean) <= 4.0
        assert gaussian_epsilon(mu, DELTA) < 4.0 / 1.5  # one repetition alone costs much less
    assert repetition_mu(4.0, DELTA, 20.0) < repetition_mu(4.0, DELTA, 2.0)


def rows_of(body, selection, **more):
    entry = {"name": "dp-mlp", "candidates": CANDIDATES}
    asked = body | {"methods": [entry], "selection": selection, "epsilons": [8], "seeds": 3, **more}
    return [execute(run.to_json()) for run in expand(experiment_from(asked, "s"))]


def test_charged_rows_stay_within_the_promise_and_hold(body):
    found = rows_of(body, "charged", selection_mean=4)
    assert [row["error"] for row in found] == [None] * 3
    assert all(row["holds"] and row["selection"] == "charged" and 7.9 < row["epsilon"] <= 8 for row in found)
    assert {row["metrics"]["selected"] for row in found} <= {0.0, 1.0}


def unseeded(body):
    entry = {"name": "dp-mlp", "candidates": CANDIDATES}
    asked = {key: value for key, value in body.items() if key != "seeds"} | {"methods": [entry], "repeats": 1}
    return expand(experiment_from(asked | {"selection": "charged", "epsilons": [8], "selection_mean": 4}, "s"))


def test_how_long_a_charged_selection_took_is_not_written_down(body, tmp_path):
    """Its length tells the number of repetitions, which the theorem keeps secret."""
    (run,) = unseeded(body)
    row = execute(run.to_json())
    assert row["status"] == "done" and row["holds"] and 7.9 < row["epsilon"] <= 8
    assert row["seconds"] is row["cpu_seconds"] is None and len(row["finished"]) == len("2026-01-01")
    with Store(tmp_path / "r.sqlite") as store:
        store.begin(run)
        ((started,),) = store._db.execute("SELECT started FROM attempts").fetchall()
    assert len(started) == len("2026-01-01")
    seeded = rows_of(body, "charged", selection_mean=2, seeds=1)[0]
    assert seeded["seconds"] is not None, "of a run with a seed nothing is secret"


def test_a_charged_selection_that_was_stopped_and_starts_again_proves_nothing(body, tmp_path):
    """Long ones are stopped more often: given that it finished, the number of repetitions is not geometric."""
    runs = unseeded(body)
    with Store(tmp_path / "r.sqlite") as store:
        store.ask("e", runs)
        store.begin(runs[0])  # killed here
        sweep("e", runs, store, Serial(), resume=True)
        (row,) = store.rows()
    assert row["status"] == "done" and row["epsilon"] is None and not row["holds"] and row["gaps"] == [TRIED_AGAIN]
    with Store(tmp_path / "once.sqlite") as store:
        sweep("e", runs, store, Serial())
        (row,) = store.rows()
    assert row["holds"] and row["gaps"] == []


def test_uncharged_rows_prove_nothing_and_choose_the_better_candidate(body):
    found = rows_of(body, "not covered")
    assert all(row["epsilon"] is None and not row["holds"] and NOT_COVERED in row["gaps"] for row in found)
    alone = [{"name": "dp-mlp", "options": options} for options in CANDIDATES]
    asked = body | {"methods": alone, "epsilons": [8], "seeds": 3}
    each = [execute(run.to_json()) for run in expand(experiment_from(asked, "s"))]
    best = [max(row["metrics"]["val_accuracy"] for row in each if row["seed"] == seed) for seed in range(3)]
    assert [row["metrics"]["val_accuracy"] for row in found] == best
    assert len({row["metrics"]["val_accuracy"] for row in each}) > 1


def test_plans_that_are_not_gaussian_are_not_charged(body):
    entry = {"name": "gap", "mode": "published", "candidates": [{"hops": 1}, {"hops": 2}], "options": {"epochs": 1}}
    asked = body | {"methods": [entry], "selection": "charged", "seeds": 1, "epsilons": [8]}
    asked["promises"] = [{"level": "node", "adjacency": "record"}]
    from graphveil.errors import InputError

    with pytest.raises(InputError, match="record"):
        expand(experiment_from(asked, "s"))
