"""``sweep``, ``results`` and ``compare`` at the command line."""

import csv
import json

import pytest

SPEC = """
name: small
methods: [{name: dp-mlp, options: {steps: 2}}, {name: gap, options: {steps: 2, hidden: 4}}]
data: [{name: powerlaw-sbm, options: {nodes: 100, features: 5, classes: 3}}]
promises: [{level: node}, {level: edge, epsilons: [1]}]
epsilons: [1, 4]
seeds: 2
"""


@pytest.fixture
def swept(graphveil, tmp_path):
    (tmp_path / "spec.yaml").write_text(SPEC)
    out = tmp_path / "r.sqlite"
    code, said, err = graphveil("sweep", tmp_path / "spec.yaml", "--engine", "serial", "--out", out)
    assert code == 0, err
    return tmp_path, out, said, err


def test_a_sweep_prints_one_table_per_promise_and_plain_progress(swept, graphveil):
    folder, out, said, err = swept
    assert "level node, adjacency record" in said and "level edge" in said and "12 runs done, 0 failed" in said
    assert "small (serial): 12 of 12" in err  # stderr is no terminal here
    code, _, err = graphveil("sweep", folder / "spec.yaml", "--engine", "serial", "--out", out)
    assert code == 2 and "--resume" in err and "12 of 12" in err
    code, said, _ = graphveil("sweep", folder / "spec.yaml", "--engine", "serial", "--out", out, "--resume", "--json")
    body = json.loads(said)
    assert code == 0 and (body["done"], body["kept"], len(body["rows"])) == (0, 12, 12)


def test_results_are_filtered_exported_and_checked(swept, graphveil):
    folder, out, *_ = swept
    code, said, _ = graphveil("results", out, "--method", "gap", "--level", "node", "--json")
    assert code == 0 and {(row["method"], row["level"]) for row in json.loads(said)} == {("gap", "node")}
    assert graphveil("results", out, "--check")[0] == 0
    code, said, _ = graphveil("results", out, "--export", folder / "rows.jsonl")
    assert code == 0 and "12 rows" in said
    tables, again = graphveil("results", out)[1], graphveil("results", folder / "rows.jsonl")[1]
    assert tables == again and "epsilon 4" in tables
    paired = graphveil("results", out, "--baseline", "dp-mlp (steps=2)")[1]
    assert "signed-rank" in paired and ", p " in paired and ", p " not in tables
    assert graphveil("results", out, "--baseline", "nobody")[0] == 2
    assert len(graphveil("results", out, "--runs", "--status", "done")[1].splitlines()) == 12 + 4
    assert graphveil("results", folder / "none.sqlite")[0] == 2


def test_runs_of_an_export_are_taken_over_and_the_rest_is_run(swept, graphveil):
    folder, out, *_ = swept
    assert graphveil("results", out, "--export", folder / "all.jsonl")[0] == 0
    lines = (folder / "all.jsonl").read_text().splitlines()
    (folder / "some.jsonl").write_text("\n".join(lines[:9]) + "\n")
    again = ("sweep", folder / "spec.yaml", "--engine", "serial", "--out", folder / "new.sqlite", "--json")
    code, said, err = graphveil(*again, "--known", folder / "some.jsonl")
    body = json.loads(said)
    assert code == 0 and (body["kept"], body["done"]) == (9, 3), err
    assert graphveil("results", folder / "new.sqlite", "--check")[0] == 0
    assert graphveil("results", folder / "new.sqlite")[1] == graphveil("results", out)[1]
    assert graphveil(*again, "--resume", "--known", folder / "nothing.jsonl")[0] == 2


def test_an_export_keeps_the_metrics_that_are_named_and_takes_in_rows_that_were_there(swept, graphveil):
    folder, out, *_ = swept
    lean, kept = folder / "lean.jsonl", ("--metric", "test_accuracy", "--without", "releases")
    assert graphveil("results", out, "--method", "gap", "--export", lean, *kept, "--add")[0] == 0
    first = [json.loads(line) for line in lean.read_text().splitlines()]
    assert all(set(row["metrics"]) == {"test_accuracy"} and "releases" not in row for row in first)
    code, said, _ = graphveil("results", out, "--export", lean, "--add")
    assert code == 0 and "12 rows" in said
    both = [json.loads(line) for line in lean.read_text().splitlines()]
    assert len({row["id"] for row in both}) == 12 and all("val_accuracy" in row["metrics"] for row in both)
    assert graphveil("results", out, "--method", "gap", "--export", lean, *kept, "--add")[0] == 0
    mixed = [json.loads(line) for line in lean.read_text().splitlines()]
    assert len(mixed) == 12 and sum(set(row["metrics"]) == {"test_accuracy"} for row in mixed) == len(first)
    assert [row["id"] for row in mixed] == [row["id"] for row in both]


def test_a_damaged_store_ends_with_code_1(swept, graphveil):
    import sqlite3

    _, out, *_ = swept
    with sqlite3.connect(out) as db:
        db.execute("UPDATE results SET row = replace(row, 'gap', 'gop')")
    code, said, _ = graphveil("results", out, "--check")
    assert code == 1 and "changed after it was written" in said


def test_a_dry_run_counts_and_a_wrong_specification_runs_nothing(graphveil, tmp_path):
    spec, out = tmp_path / "spec.yaml", tmp_path / "r.sqlite"
    spec.write_text(SPEC)
    assert graphveil("sweep", spec, "--dry-run")[1] == "small: 12 runs\n"
    spec.write_text(SPEC.replace("[1, 4]", "[1, -4]"))
    code, _, err = graphveil("sweep", spec, "--out", out)
    assert code == 2 and str(spec) in err and "epsilons" in err and "positive" in err and not out.exists()


def test_compare_writes_every_run_and_uses_the_store_again(graphveil, graph_file, tmp_path):
    words = ["compare", "--methods", "dp-mlp,mlp", "--data", graph_file, "--epsilons", "1,4", "--seeds", 2]
    words += ["--engine", "serial", "--out", tmp_path / "r.sqlite", "--csv", tmp_path / "out.csv"]
    code, said, err = graphveil(*words)
    assert code == 0 and "epsilon 1" in said and "not private" in said, err
    lines = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert len(lines) == 2 * 2 + 2 and {line["status"] for line in lines} == {"done"}
    code, _, err = graphveil(*words, "--baseline", "dp-mlp")
    assert code == 0 and "0 of 0" in err
    for flags in (("--plot", "x.txt"), ("--csv", "x.txt"), ("--level", "local"), ("--epsilons", "a")):
        assert graphveil(*words, *flags)[0] == 2


def test_compare_under_a_local_promise_varies_the_budgets_of_the_parts(graphveil, graph_file, tmp_path):
    words = ["compare", "--methods", "lpgnn", "--data", graph_file, "--level", "local", "--features-epsilon", "3"]
    words += ["--labels-epsilon", "1,3", "--edges-epsilon", "raw", "--seeds", 1, "--engine", "serial", "--json"]
    code, said, err = graphveil(*words, "--out", tmp_path / "r.sqlite")
    assert code == 0, err
    assert [row["parts"]["labels"] for row in json.loads(said)] == [1.0, 3.0]
