"""``plan --level local``: what everybody will be asked, from sizes alone."""

import json

import pytest

SIZES = ("--level", "local", "--nodes", 1000, "--features", 20, "--classes", 3)
BUDGETS = ("--features-epsilon", 3, "--labels-epsilon", 2, "--edges-epsilon", 1)


@pytest.mark.parametrize("method", ["graph-privatizer", "rr-edges"])
def test_a_plan_needs_no_data_and_costs_the_promise(graphveil, method):
    code, out, _ = graphveil("plan", method, *SIZES, *BUDGETS, "--json")
    body = json.loads(out)
    assert code == 0 and body["holds"] and body["epsilon"] == pytest.approx(6, abs=1e-6)
    assert [release["part"] for release in body["releases"]] == ["features", "labels", "edges"]


def test_a_plan_is_what_training_then_does(graphveil, graph_file, tmp_path):
    flags = ("graph-privatizer", "--level", "local", "--data", graph_file, *BUDGETS)
    planned = json.loads(graphveil("plan", *flags, "--json")[1])
    graphveil("train", *flags, "--set", "epochs=1", "--out", tmp_path / "run")
    done = json.loads((tmp_path / "run" / "certificate.json").read_text())
    keep = ("name", "part", "mechanism", "sensitivity")
    rounds = [[{key: release[key] for key in keep} for release in body["releases"]] for body in (planned, done)]
    assert rounds[0] == rounds[1] and planned["epsilon"] == done["epsilon"]


def test_a_published_plan_says_what_is_wrong_before_anything_runs(graphveil):
    code, out, _ = graphveil("plan", "graph-privatizer", *SIZES, *BUDGETS, "--mode", "published", "--json")
    body = json.loads(out)
    assert code == 0 and body["epsilon"] is None and body["epsilon_claimed"] == 6.0
    assert body["gaps"] == ["G1", "G2", "G3", "G4", "G5"]


def test_a_plan_for_people_is_readable(graphveil):
    code, out, _ = graphveil(
        "plan", "lpgnn", *SIZES, "--features-epsilon", 3, "--labels-epsilon", 3, "--edges-epsilon", "raw"
    )
    assert code == 0 and out.startswith("PLAN") and "SENT IN THE CLEAR" in out and "multi-bit" in out


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("rr-edges", "--level", "local", "--nodes", 100_000, "--features", 2, "--classes", 2, *BUDGETS), "max_edges"),
        (("graph-privatizer", "--level", "local", *BUDGETS), "--nodes"),
        (
            ("graph-privatizer", *SIZES, "--features-epsilon", 0, "--labels-epsilon", 1, "--edges-epsilon", 1),
            "positive",
        ),
        (("graph-privatizer", *SIZES, *BUDGETS, "--epsilon", 1), "--epsilon"),
        (
            ("gap", "--nodes", 10, "--features", 2, "--classes", 2, "--epsilon", 1, "--edges-epsilon", 1),
            "--level local",
        ),
        (("gap", *SIZES, *BUDGETS), "does not cover local"),
    ],
)
def test_impossible_plans_are_one_clear_line(graphveil, flags, word):
    code, out, err = graphveil("plan", *flags)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1 and word in err, err
