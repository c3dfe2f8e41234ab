"""``train --level local``: budgets per part, and flags that do not belong together."""

import json

import pytest

LOCAL = ("train", "local", "--level", "local", "--set", "epochs=2", "--seed", 0)


def test_train_local_prints_the_contract_and_the_run_verifies(graphveil, graph_file, tmp_path):
    flags = ("--labels-epsilon", 3, "--edges-epsilon", "raw", "--out", tmp_path / "run", "--json")
    code, out, _ = graphveil(*LOCAL, "--data", graph_file, *flags)
    body = json.loads(out)
    assert code == 0 and body["level"] == "local" and body["epsilon"] == pytest.approx(3) and body["holds"]
    assert graphveil("verify", tmp_path / "run")[0] == 0
    code, out, _ = graphveil("certificate", tmp_path / "run")
    assert code == 0 and "SENT IN THE CLEAR: THE CONTACT LIST OF EVERY VERTEX" in out


def test_raw_labels_have_no_epsilon(graphveil, graph_file):
    flags = ("--labels-epsilon", "raw", "--edges-epsilon", "raw", "--json")
    code, out, _ = graphveil(*LOCAL, "--data", graph_file, *flags)
    body = json.loads(out)
    assert code == 0 and body["epsilon"] is None and body["epsilon_target"] is None and not body["holds"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("local", "--level", "local", "--labels-epsilon", 0, "--edges-epsilon", "raw"), "epsilon must be positive"),
        (("local", "--level", "local", "--labels-epsilon", "open"), "raw"),
        (("local", "--level", "local", "--epsilon", 1), "--epsilon"),
        (("local", "--level", "node", "--epsilon", 1), "--level local"),
        (("gap", "--level", "local", "--labels-epsilon", 1), "does not cover local"),
        (("gap", "--level", "node", "--epsilon", 1, "--labels-epsilon", 1), "belong to --level local"),
    ],
)
def test_flags_that_do_not_belong_together_are_one_clear_line(graphveil, graph_file, flags, word):
    code, out, err = graphveil("train", *flags, "--data", graph_file)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1 and word in err, err


@pytest.mark.parametrize("method", ["graph-privatizer", "rr-edges"])
@pytest.mark.parametrize("mode", ["sound", "published"])
def test_methods_with_private_edges_train_and_verify(graphveil, graph_file, tmp_path, method, mode):
    budgets = ("--features-epsilon", 3, "--labels-epsilon", 3, "--edges-epsilon", 4, "--split", "random:50/25/25")
    flags = ("--level", "local", "--mode", mode, "--set", "epochs=2", "--seed", 0, "--out", tmp_path / "run", "--json")
    code, out, err = graphveil("train", method, "--data", graph_file, *budgets, *flags)
    assert code == 0, err
    body = json.loads(out)
    assert body["epsilon_claimed"] == pytest.approx(10, abs=1e-6) and body["holds"] == (mode == "sound")
    assert (body["epsilon"] is None) == (mode == "published") == bool(body["gaps"])
    code, out, err = graphveil("verify", tmp_path / "run")
    assert code == 0, err
    assert graphveil("predict", tmp_path / "run", "--data", graph_file)[0] == 0


def test_a_delta_belongs_to_a_gaussian_mechanism(graphveil, graph_file):
    mean = (
        "train",
        "graph-privatizer",
        "--level",
        "local",
        "--data",
        graph_file,
        "--set",
        "mechanism=mean",
        "--set",
        "epochs=1",
    )
    budgets = ("--features-epsilon", 3, "--labels-epsilon", 3, "--edges-epsilon", 4, "--seed", 0)
    code, _, err = graphveil(*mean, *budgets)
    assert code == 2 and "--delta" in err
    code, out, _ = graphveil(*mean, *budgets, "--delta", "1e-5", "--json")
    assert code == 0 and json.loads(out)["holds"] and 0 < json.loads(out)["delta"] <= 1e-5


@pytest.mark.parametrize(
    ("split", "word"),
    [
        ("random:50/25", "three percentages"),
        ("random:60/25/25", "add up"),
        ("official:50/25/25", "take shares"),
        ("random:a/b/c", "three"),
    ],
)
def test_unusable_shares_of_a_split_are_one_clear_line(graphveil, graph_file, split, word):
    code, out, err = graphveil(
        *LOCAL, "--data", graph_file, "--labels-epsilon", 3, "--edges-epsilon", "raw", "--split", split
    )
    assert code == 2 and out == "" and word in err, err


def test_shares_of_a_split_are_what_was_asked_for():
    from graphveil.cli.options import load_data
    from graphveil.graph.data.splits import parse_split

    assert parse_split("random") == ("random", None)
    data = load_data("powerlaw-sbm", 0, split="random:50/25/25")
    shares = [float(data[mask].float().mean()) for mask in ("train_mask", "val_mask", "test_mask")]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.01)
