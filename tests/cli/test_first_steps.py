"""The command line answers what a newcomer tries."""

import json

import pytest


def test_a_method_without_a_promise_needs_no_epsilon(graphveil, graph_file):
    code, out, err = graphveil("train", "gcn", "--data", graph_file, "--set", "epochs=2", "--on-bad-rows", "zero")
    assert code == 0 and "not private" in out, err
    code, _, err = graphveil("train", "gcn", "--data", graph_file, "--epsilon", 4)
    assert code == 2 and "gcn (sound) does not cover node" in err


def test_an_unknown_level_names_all(graphveil, graph_file):
    code, _, err = graphveil("train", "ballot", "--data", graph_file, "--level", "nod", "--epsilon", 4)
    assert code == 2 and "known are: edge, k-neighbor, node, local, none" in err


@pytest.mark.parametrize(("epsilon", "said"), [("1000", "promises next to nothing"), ("inf", "nobody is protected")])
def test_large_budgets_are_answered_with_what_they_mean(graphveil, epsilon, said):
    code, _, err = graphveil("plan", "ballot", "--nodes", 100, "--features", 3, "--classes", 2, "--epsilon", epsilon)
    assert code == 0 and said in err and err.count("\n") == 1


def test_a_plan_shows_ranges_of_noise_and_the_default_delta_does_not_warn(graphveil):
    code, out, err = graphveil("plan", "ballot", "--nodes", 10000, "--features", 3, "--classes", 2, "--epsilon", 4)
    assert code == 0 and "or" in out and "more" in out and err == ""


@pytest.mark.parametrize("columns", ["60", "80", "160"])
def test_methods_can_be_read_in_a_narrow_terminal(graphveil, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = graphveil("methods")
    lines = out.splitlines()
    assert code == 0 and max(map(len, lines)) <= int(columns)
    narrow = [line for line in lines if line.startswith("ballot (")]
    assert bool(narrow) == (int(columns) < 120)


def test_ballot_says_when_the_graph_was_not_used(graphveil, graph_file):
    flags = ("--data", graph_file, "--on-bad-rows", "zero", "--set", "assume=features", "--epsilon", 4)
    code, out, _ = graphveil("train", "ballot", *flags)
    assert code == 0 and "note: the graph was not used: it was declared to say nothing" in out


def test_advice_on_a_screen_as_json_and_as_markdown(graphveil, tmp_path):
    flags = ("--protect", "person", "--mutual", "--public-predictions", "no")
    code, out, _ = graphveil("advise", *flags, "--out", tmp_path / "advice.md")
    assert code == 0 and "method    roster" in out and len(out.splitlines()) <= 24
    assert "| 4 | 4 | 70 % |" in (tmp_path / "advice.md").read_text()
    assert json.loads(graphveil("advise", *flags, "--json")[1])["promise"] == "node / record / zero-out"
