"""Means, intervals, paired tests, and tables that do not mix promises."""

import numpy as np
import pytest

from graphveil.experiments.summary import Estimate, difference, groups, signed_rank, summarize
from graphveil.experiments.tables import SELECTED, UNPROVED, tables

BASE = {
    "id": "x", "experiment": "e", "method": "gap", "mode": "sound", "options": {}, "label": "gap", "dataset": "cora",
    "preparation": None, "split": "random", "level": "node", "adjacency": "record", "relation": "zero-out", "k": None,
    "max_degree": None, "epsilon_target": 4.0, "parts": None, "delta": 1e-4, "delta_rule": "default", "seed": 0,
    "status": "done", "error": None, "epsilon": 4.0, "epsilon_claimed": 4.0, "holds": True, "gaps": [], "releases": [],
    "seconds": 1.0, "cpu_seconds": 1.0, "selection": "none", "version": "1", "finished": "",
}  # fmt: skip


def rows(values, **changed):
    return [BASE | changed | {"seed": n, "metrics": {"test_accuracy": value}} for n, value in enumerate(values)]


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    coins, hits = np.random.default_rng(1), 0
    for _ in range(200):
        found = Estimate.of(coins.normal(0.7, 0.05, 20).tolist())
        hits += found.low <= 0.7 <= found.high
    assert 175 <= hits <= 198  # 95 % of 200 is 190; the percentile bootstrap of 20 values is somewhat too narrow


def test_a_single_run_has_no_interval():
    assert Estimate.of([0.5]) == Estimate(0.5, None, None, 1)


def test_the_signed_rank_test_is_that_of_the_exact_distribution():
    assert signed_rank(np.array([1.0, 2, 3, 4, 5])) == pytest.approx(2 / 2**5)  # all signs equal: two of 32 patterns
    assert signed_rank(np.array([1.0, -2, 3, 4, 5])) == pytest.approx(2 * 3 / 2**5)  # rank sums 0, 1 and 2 below
    assert signed_rank(np.zeros(4)) == 1.0 and signed_rank(np.array([1.0])) is None


def test_a_run_that_two_experiments_share_counts_once():
    (found,) = groups([*rows([0.5, 0.7]), *rows([0.5, 0.7], experiment="other")])
    assert found.all_values("test_accuracy") == [0.5, 0.7] and found.estimate().count == 2


def test_differences_are_over_common_seeds():
    mine, other = rows([0.5, 0.7, 0.9], label="a"), rows([0.4, 0.5], label="b")
    a, b = groups([*mine, *other])
    found = difference(a, b)
    assert found.estimate.count == 2 and found.estimate.mean == pytest.approx(0.15)
    late = [row | {"seed": row["seed"] + 10} for row in other]
    assert difference(a, groups(late)[0]) is None


def test_runs_without_a_seed_are_all_counted():
    unseeded = [row | {"seed": None} for row in rows([0.5, 0.7])]
    assert groups(unseeded)[0].estimate().count == 2


def test_a_mean_holds_only_if_every_run_of_it_does():
    mixed = rows([0.5, 0.7, 0.6])
    mixed[1] |= {"epsilon": None, "holds": False, "gaps": ["A1"]}
    (line,) = summarize(mixed)
    assert line["epsilon"] is None and not line["holds"] and line["gaps"] == ["A1"]
    assert UNPROVED in tables(mixed)[0].body[0][2]
    larger = rows([0.5, 0.7])
    larger[1] |= {"epsilon": 4.5}
    assert summarize(larger)[0]["epsilon"] == 4.5 and summarize(larger)[0]["holds"]
    lost = rows([0.5, 0.7])
    lost[0] |= {"status": "failed", "epsilon": None, "holds": False, "metrics": {}}
    assert summarize(lost)[0]["holds"], "a run that failed has released nothing"


def test_lists_alone_are_not_called_a_record():
    lists = {"level": "local", "adjacency": "local", "epsilon_target": None}
    lists["parts"] = {"features": "raw", "labels": "raw", "edges": 2.0}
    one, other = tables(rows([0.5], **lists) + rows([0.5], relation="replace", **lists))
    assert "one entry of one person's own contact list" in one.title != other.title and "own record" not in one.title


@pytest.mark.parametrize(
    "changed",
    [
        {"adjacency": "node"},
        {"relation": "replace"},
        {"level": "k-neighbor", "k": 2},
        {"delta_rule": "1e-06"},
        {"max_degree": 9},
    ],
)
def test_unlike_promises_never_share_a_table(changed):
    found = tables([*rows([0.5, 0.6]), *rows([0.7, 0.8], label="other", **changed)])
    assert len(found) == 2
    assert all(len(table.body) == 1 for table in found) and found[0].title != found[1].title


def test_tables_say_what_is_not_covered_and_what_does_not_hold():
    text = tables(rows([0.5], selection="not covered", holds=False))[0].text()
    assert SELECTED in text and UNPROVED in text and "selected on private data: not covered" in text
    assert "†" not in tables(rows([0.5]))[0].text() + tables(rows([0.5], selection="charged"))[0].markdown()
    assert (
        UNPROVED not in tables(rows([0.5], level="none", adjacency="none", epsilon_target=None, holds=False))[0].text()
    )


def test_failures_are_shown_not_averaged():
    broken = [row | {"status": "failed", "metrics": {}, "seed": 9} for row in rows([0.0])]
    table = tables([*rows([0.5, 0.7]), *broken])[0]
    assert "60.0" in table.body[0][2] and "1 failed" in table.body[0][2]
    assert summarize([*rows([0.5, 0.7]), *broken])[0]["failed"] == 1
    assert tables(broken)[0].body[0][2].startswith("failed")


def test_columns_are_budgets_in_order_and_formats_agree():
    found = tables(
        [*rows([0.5], epsilon_target=16.0), *rows([0.4], epsilon_target=2.0), *rows([0.9], epsilon_target=None)]
    )[0]
    assert found.head == ("data", "method", "epsilon 2", "epsilon 16", "no noise")
    assert found.body == (("cora", "gap", "40.0", "50.0", "90.0"),)
    assert found.csv().splitlines()[1] == "cora,gap,40.0,50.0,90.0" and "| cora | gap | 40.0 |" in found.markdown()


def test_budgets_of_parts_are_ordered_by_size():
    local = {"level": "local", "adjacency": None, "relation": "replace", "epsilon_target": None}
    found = [
        row
        for features in (10.0, 0.1, 5.0, "raw")
        for row in rows([0.5, 0.6], parts={"features": features, "labels": "raw", "edges": "raw"}, **local)
    ]
    (table,) = tables(found)
    assert [column.split(",")[0] for column in table.head[2:]] == [
        "features 0.1", "features 5", "features 10", "features raw",
    ]  # fmt: skip
