"""``graphveil attack``: every attack prints its figures and controls, and bad input is one line."""

import json

import pytest

from graphveil.graph import powerlaw_sbm, write_npz

SMALL = ("--set", "epochs=20", "--seed", 0)


@pytest.fixture
def file(tmp_path):
    return write_npz(powerlaw_sbm(1, nodes=300, features=12, classes=3, average_degree=5.0), tmp_path / "hubs.npz")


def refused(result, *words):
    code, out, err = result
    lines = err.strip().splitlines()
    assert code == 2 and out == "" and len(lines) == 1 and lines[0].startswith("graphveil: error: "), result
    for word in words:
        assert word in lines[0], lines[0]


@pytest.mark.parametrize(
    ("name", "flags", "headline"),
    [
        ("link-teller", ("--target", "gcn", "--nodes", 100, *SMALL), "influence"),
        ("link-teller", ("--target", "gcn", "--pairs", "density", "--nodes", 60, *SMALL), "influence"),
        ("lsa2", ("--target", "gcn", "--nodes", 100, "--pairs", "degree-matched", *SMALL), "correlation"),
        ("lsa2", ("--target", "gap", "--level", "edge", "--epsilon", 1, "--nodes", 50, *SMALL), "correlation"),
        ("link-stealing", ("--nodes", 200, "--seed", 0), "mlp, hadamard-difference"),
        (
            "link-stealing",
            ("--reports", "multi-bit", "--epsilon", 2, "--attack-model", "lr", "--seed", 0),
            "lr, hadamard",
        ),
        ("attribute-inference", ("--attribute", 3, "--attack-model", "lr,knn", "--seed", 0), "lr"),
        ("membership", ("--target", "gcn", *SMALL), "same graph"),
        ("membership", ("--target", "dp-mlp", "--epsilon", 1, "--set", "steps=3", "--seed", 0), "same graph"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else value,
)
def test_every_attack_prints_figures_and_controls(graphveil, file, name, flags, headline):
    code, out, err = graphveil("attack", name, "--data", file, *flags, "--json")
    assert code == 0, err
    body = json.loads(out)
    assert body["attack"] == name and body["findings"][0]["name"].startswith(headline) and body["controls"]
    for found in (*body["findings"], *body["controls"]):
        assert 0 <= found["auc"]["low"] <= found["auc"]["value"] <= found["auc"]["high"] <= 1
        assert found["epsilon_lower_bound"] >= 0 and found["positives"] > 0
    if name in ("link-teller", "lsa2", "link-stealing"):
        assert {"degree product", "label equality"} <= {control["name"] for control in body["controls"]}


def test_the_budget_of_each_attribute_is_set_on_the_command_line(graphveil, file):
    """The knowledge line says what a person really spends: epsilon, or m times that."""
    flags = ("--reports", "piecewise-zero:3", "--epsilon", 2, "--attack-model", "lr", "--nodes", 50, "--seed", 0)
    told = {}
    for each in ("eps_over_m", "eps"):
        code, out, err = graphveil(
            "attack", "link-stealing", "--data", file, *flags, "--set", f"per_dimension={each}", "--json"
        )
        assert code == 0, err
        told[each] = json.loads(out)["rows"]
    assert "epsilon 2 per person" in told["eps_over_m"] and "epsilon 6 per person" in told["eps"]


def test_people_get_a_table_with_controls_and_a_plot(graphveil, file, tmp_path):
    picture = tmp_path / "roc.svg"
    flags = ("--target", "gcn", "--nodes", 100, "--plot", picture, *SMALL)
    code, out, _ = graphveil("attack", "link-teller", "--data", file, *flags)
    assert code == 0 and "control: degree product" in out and "control: label equality" in out and "AUC" in out
    assert "<svg" in picture.read_text() and str(picture) in out


def test_a_saved_run_is_attacked_like_the_method_it_came_from(graphveil, file, tmp_path):
    run = tmp_path / "run"
    graphveil("train", "gcn", "--data", file, "--level", "none", *SMALL, "--out", run)
    answers = []
    for victim in (("--run", run), ("--target", "gcn", *SMALL)):
        code, out, err = graphveil("attack", "link-teller", "--data", file, *victim, "--nodes", 100, "--json")
        assert code == 0, err
        answers.append(json.loads(out)["findings"][0]["auc"]["value"])
    assert answers[0] == answers[1] > 0.8
    code, out, _ = graphveil("attack", "membership", "--data", file, "--run", run, "--json")
    assert code == 0 and json.loads(out)["target_members"] > json.loads(out)["shadow_members"]


def test_a_model_that_reads_no_edges_tells_linkteller_nothing(graphveil, file):
    flags = ("--target", "ballot", "--epsilon", 1, "--nodes", 100, "--seed", 0, "--json")
    code, out, _ = graphveil("attack", "link-teller", "--data", file, *flags)
    body = json.loads(out)
    assert code == 0 and body["findings"][0]["auc"]["value"] == 0.5 and body["form"] == "own row"


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("link-tellr", "--target", "gcn"), "link-tellr"),
        (("link-teller",), "--target METHOD or --run"),
        (("link-teller", "--target", "gcn", "--run", "x"), "either"),
        (("link-teller", "--target", "gnc"), "gcn"),
        (("link-teller", "--target", "gcn", "--pairs", "sideways"), "sideways"),
        (("link-teller", "--target", "gcn", "--nodes", 9999), "fewer than the 9999"),
        (("link-teller", "--target", "gcn", "--nodes", 0), "at least 1"),
        (("link-teller", "--target", "gcn", "--pairs", "density", "--nodes", 9999), "300 nodes"),
        (("link-teller", "--target", "gcn", "--pairs", "density", "--nodes", 2), "no edge among"),
        (("link-teller", "--target", "gcn", "--epsilon", 1), "does not cover"),
        (("link-teller", "--target", "gap", "--level", "edge"), "--epsilon"),
        (("link-teller", "--target", "gcn", "--reports", "multi-bit"), "--reports"),
        (("link-teller", "--run", "nowhere"), "does not exist"),
        (("link-teller", "--run", "nowhere", "--epsilon", 1), "its own promise"),
        (("lsa2", "--target", "gcn", "--distance", "far", "--set", "epochs=1"), "far"),
        (("link-stealing", "--target", "gcn"), "queries no model"),
        (("link-stealing", "--reports", "multi-bit"), "--epsilon"),
        (("link-stealing", "--reports", "whispers", "--epsilon", 1), "whispers"),
        (("link-stealing", "--reports", "piecewise-zero", "--epsilon", 1, "--set", "per_dimension=half"), "half"),
        (("link-stealing", "--reports", "multi-bit", "--epsilon", 1, "--set", "per_dimension=eps"), "per_dimension"),
        (("link-stealing", "--set", "per_dimension=eps"), "--reports"),
        (("link-stealing", "--combine", "mix"), "mix"),
        (("link-stealing", "--attack-model", "oracle"), "oracle"),
        (("attribute-inference",), "no attribute"),
        (("attribute-inference", "--attribute", 12), "0..11"),
        (("membership", "--target", "gcn", "--attack-model", "oracle", "--set", "epochs=1"), "oracle"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_line(graphveil, file, flags, word):
    refused(graphveil("attack", flags[0], "--data", file, *flags[1:]), word)


def test_a_run_without_certificate_and_a_graph_without_edges_are_refused(graphveil, file, tmp_path):
    run = tmp_path / "run"
    graphveil("train", "gcn", "--data", file, "--level", "none", *SMALL, "--out", run)
    (run / "certificate.json").unlink()
    refused(graphveil("attack", "link-teller", "--data", file, "--run", run), "certificate.json", "does not exist")
    bare = powerlaw_sbm(1, nodes=50, features=4, classes=2)
    bare.edge_index = bare.edge_index[:, :0]
    empty = write_npz(bare, tmp_path / "bare.npz")
    refused(graphveil("attack", "link-teller", "--data", empty, "--target", "gcn", *SMALL), "no edges")


def test_a_plot_that_cannot_be_written_is_refused(graphveil, file, tmp_path):
    for picture in (tmp_path / "none" / "roc.png", tmp_path / "roc.txtx"):
        flags = ("--target", "gcn", "--nodes", 50, "--plot", picture, *SMALL)
        refused(graphveil("attack", "link-teller", "--data", file, *flags), "cannot be written")
