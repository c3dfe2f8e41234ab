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
