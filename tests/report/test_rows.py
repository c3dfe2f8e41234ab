"""Only what was promised alike stands side by side."""

import json
import random

import pytest

from graphveil.errors import InputError
from graphveil.experiments.export import plain
from graphveil.report.curves import curves_of
from graphveil.report.printed import Printed, read_printed
from graphveil.report.rows import Variant, marks_of, notions, read_rows
from graphveil.report.summary import band_words, epsilon_needed, interval
from graphveil.report.tables import (
    accuracy_table,
    budget_table,
    certificate_table,
    cost_table,
    failure_table,
    needed_table,
    run_table,
)
from tests.report.example import local_rows, row, rows

WRONG = [
    {"level": "moon"},
    {"adjacency": "moon"},
    {"adjacency": None},
    {"metrics": [1]},
    {"metrics": {"test_accuracy": "high"}},
    {"metrics": {"test_accuracy": float("nan")}},
    {"epsilon_target": -1.0},
    {"epsilon_target": 0},
    {"epsilon_target": "4"},
    {"epsilon_target": True},
    {"label": 3},
    {"options": []},
    {"releases": ["votes"]},
    {"cpu_seconds": "long"},
    {"level": "local", "parts": {"features": "open"}},
    {"level": "local", "parts": {"features": -1.0}},
]


def test_rows_are_read_and_mistakes_name_their_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows())) + "\n\n")
    assert read_rows(path) == [plain(one) for one in rows()]
    for text, told in (("{}\n", "line 1"), ("[1]\n", "line 1"), ("{\n", "line 1"), ("", "no rows")):
        path.write_text(text)
        with pytest.raises(InputError, match=told):
            read_rows(path)
    for change in WRONG:
        path.write_text(json.dumps(row("gap", 4.0, 0, **change)))
        with pytest.raises(InputError, match="line 1"):
            read_rows(path)
    with pytest.raises(InputError, match="does not exist"):
        read_rows(tmp_path / "absent.jsonl")


def test_a_run_that_two_experiments_share_is_on_a_page_once(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, [*rows(), *(one | {"experiment": "other"} for one in rows())])))
    assert [one["id"] for one in read_rows(path)] == [one["id"] for one in rows()]


def test_a_selection_that_nobody_paid_for_has_its_own_mark_and_gaps_theirs():
    selected = row("gap", 4.0, 0, selection="not covered", holds=False)
    assert marks_of([selected]) == ["†"] and marks_of([row("gap", 4.0, 0, holds=False)]) == ["‡"]
    assert marks_of([selected | {"gaps": ["A1"]}]) == ["†", "‡"] and marks_of([row("gap", None, 0)]) == []


def test_printed_figures_are_read_and_mistakes_named(tmp_path):
    path = tmp_path / "printed.csv"
    path.write_text("dataset,level,method,epsilon,accuracy,source\ncora,edge,gap,4,53.2,GAP\n")
    assert read_printed(path) == [Printed("cora", 4.0, 0.532, "GAP", "gap", "edge")]
    for text, told in (("dataset,level\n", "no column"), (path.read_text() + "cora,edge,gap,x,1,GAP\n", "line 3")):
        path.write_text(text)
        with pytest.raises(InputError, match=told):
            read_printed(path)
    with pytest.raises(InputError, match="does not exist"):
        read_printed(tmp_path / "absent.csv")


def test_unlike_promises_never_share_a_panel():
    changes = [{"level": "edge", "adjacency": "edge-undirected"}, {"adjacency": "node"}, {"relation": "replace"}]
    changes += [{"level": "k-neighbor", "adjacency": "k-neighbor", "k": k} for k in (1, 2)]
    changes += [{"adjacency": "bounded-degree", "max_degree": d} for d in (5, 9)]
    found = [row("gap", 4.0, 0, **change) for change in ({}, *changes)]
    assert len(notions(found)) == len(found) == len(curves_of(found))
    deltas = curves_of([row("gap", 4.0, 0), row("gap", 4.0, 0, delta=1e-6)])
    assert [one.title for one in deltas] == ["cora, delta 0.0001", "cora, delta 1e-06"]
    prepared = curves_of([row("gap", 4.0, 0), row("gap", 4.0, 0, preparation="dpdgc")])
    assert [one.title for one in prepared] == ["cora, as it is", "cora, dpdgc"]


def test_local_budgets_that_are_not_on_the_axis_part_the_panels():
    found = {notion.title: sorted({notion.epsilon(r) for r in mine}) for notion, mine in notions(local_rows()).items()}
    assert found == {
        "local model (features: withheld, labels: epsilon on the axis, edges: epsilon 2)": [1.0, 2.0, 4.0],
        "local model (features: withheld, labels: epsilon on the axis, edges: raw)": [4.0],
        "local model (features: withheld, labels: epsilon on the axis, edges: epsilon 8)": [4.0],
    }


def test_ceilings_are_those_of_the_same_variant_and_baselines_are_apart():
    node = curves_of(rows())[0]
    assert {variant.method for variant in node.open} == {"ballot", "gap", "dp-mlp"}
    assert [variant.method for variant in node.baselines] == ["mlp"]
    edge = next(one for one in curves_of(rows()) if one.notion.level == "edge")
    assert not edge.open  # the ceiling of the sound mode is not that of the published one


def test_marks_follow_the_name_wherever_it_goes():
    edge = next(one for one in curves_of(rows()) if one.notion.level == "edge")
    (variant,) = edge.private
    assert edge.label(variant) == "gap (published)\u00a0†\u00a0‡"


def test_variants_of_one_name_are_told_apart():
    found = [row("gap", 4.0, 0), row("gap", 4.0, 0, options={"hops": 2})]
    assert [Variant.of(r).label([r], found) for r in found] == ["gap (default)", "gap (hops 2)"]


def test_epsilon_needed_is_read_off_between_two_points():
    curve = {1.0: 0.5, 4.0: 0.7, 16.0: 0.6}
    assert epsilon_needed(curve, 0.4) == 1.0 and epsilon_needed(curve, 0.7) == pytest.approx(4.0)
    assert epsilon_needed(curve, 0.6) == pytest.approx(2.0) and epsilon_needed(curve, 0.71) is None
    assert epsilon_needed({2.0: 0.5}, 0.5) == 2.0 and epsilon_needed({}, 0.5) is None


def test_bands_say_what_they_are():
    assert interval([0.1, 0.3, 0.2], False) == (0.1, 0.3)
    low, high = interval([0.1, 0.3, 0.2, 0.15, 0.25], True)
    assert 0.1 < low < 0.2 < high < 0.3
    assert "bootstrap" in band_words([[1] * 5]) and "smallest and largest" in band_words([[1] * 5, [1] * 4])
    assert "no bands" in band_words([[1], []])


def test_a_wrong_field_is_refused_or_harmless_but_never_a_traceback(tmp_path):
    coins, path, read = random.Random(0), tmp_path / "rows.jsonl", 0
    odd = [
        None,
        "x",
        -1,
        0,
        1.5,
        True,
        [],
        {},
        [1],
        {"a": 1},
        "node",
        "local",
        "none",
        1e308,
        "",
        [{}],
        {"features": 1.0},
    ]
    for _ in range(300):
        found = [dict(one) for one in coins.sample(rows(2) + local_rows(), 5)]
        one = coins.choice(found)
        one[coins.choice(list(one))] = coins.choice(odd)
        path.write_text("\n".join(map(json.dumps, found)))
        try:
            good = read_rows(path)
        except InputError:
            continue
        read, curves = read + 1, curves_of(good)
        for table in (accuracy_table, needed_table, budget_table, certificate_table):
            table("name", curves).markdown()
        assert cost_table(good).csv() and failure_table(good).csv() and run_table(good).csv()
    assert read > 50


def test_lists_that_come_or_go_never_stand_beside_lists_that_are_exchanged():
    parts = {"features": "raw", "labels": "raw", "edges": 2.0}
    local = {"level": "local", "adjacency": "local", "delta": 0.0, "parts": parts}
    found = notions([row("local", 4.0, 0, **local, relation=one) for one in ("zero-out", "replace")])
    grown, exchanged = found
    assert [len(rows) for rows in found.values()] == [1, 1] and grown.title != exchanged.title
    assert "one entry of one person's own contact list" in grown.words and "record" not in grown.words
