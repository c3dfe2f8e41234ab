"""``graphveil audit``: contract of its output, and one clear line for bad input."""

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pytest

from graphveil.audit import audit_method
from graphveil.audit.accountants import CrossCheck
from graphveil.audit.result import Audit, Failure
from graphveil.cli.app import main
from graphveil.privacy.promise import NodeLevel
from tests.audit.mutants.central import clipping_skipped


@pytest.mark.long
@pytest.mark.parametrize("method", ["gap", "ballot"])
def test_sound_methods_keep_their_promise(graphveil, method):
    code, out, _ = graphveil("audit", method, "--level", "node", "--epsilon", 4, "--runs", 1, "--json")
    found = json.loads(out)
    assert code == 0 and found["verdict"] == "no violation found"
    assert found["epsilon_claimed"] == 4.0 and 2.8 < found["epsilon_observed"] <= 4.0
    assert found["releases"] and all(entry["measured"] <= entry["declared"] + 1e-9 for entry in found["releases"])
    assert found["false_alarm_rate"] < 1e-3
    assert {entry["name"] for entry in found["evidence"]} >= {"lock step", "one run"}


def test_a_violation_is_printed_side_by_side_and_ends_with_code_one(graphveil, tmp_path):
    chart = tmp_path / "audit.svg"
    code, out, _ = graphveil(
        "audit", "gap", "--level", "edge", "--epsilon", 1, "--mode", "published", "--runs", 1, "--plot", chart
    )  # fmt: skip
    assert code == 1 and "violation found" in out and "A1" in out and "is private" not in out
    assert "Claimed     epsilon 1" in out and "Provable    epsilon 1.482" in out
    assert chart.read_text().startswith("<?xml")


def test_local_methods_are_audited_by_exact_ratios(graphveil):
    code, out, _ = graphveil(
        "audit", "lpgnn", "--level", "local", "--features-epsilon", 1, "--labels-epsilon", 2, "--edges-epsilon", "raw", "--json"
    )  # fmt: skip
    found = json.loads(out)
    assert code == 0 and found["epsilon_observed"] == pytest.approx(3.0) and found["epsilon_claimed"] == 3.0


def test_a_saved_run_is_audited_with_its_own_promise_and_settings(graphveil, graph_file, tmp_path):
    run = tmp_path / "run"
    graphveil("train", "dp-mlp", "--data", graph_file, "--epsilon", 2, "--seed", 1, "--out", run, "--set", "steps=3")
    code, out, _ = graphveil("audit", run, "--runs", 1, "--json")
    found = json.loads(out)
    assert code == 0 and found["epsilon_claimed"] == 2.0 and found["settings"] == {}


def test_data_may_be_given(graphveil, graph_file):
    code, out, _ = graphveil("audit", "dp-mlp", "--data", graph_file, "--epsilon", 2, "--runs", 1, "--json")
    assert code == 0 and str(graph_file) in json.loads(out)["data"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gapp", "--epsilon", 4), "did you mean 'gap'"),
        (("gap",), "needs --epsilon"),
        ((), "--all"),
        (("gap", "--all"), "--all"),
        (("--all", "--mode", "published"), "--all"),
        (("gcn", "--epsilon", 4), "nothing to audit"),
        (("gap", "--epsilon", "inf"), "nothing to audit"),
        (("gap", "--epsilon", 4, "--level", "none"), "none"),
        (("gap", "--epsilon", 4, "--adjacency", "bounded-degree", "--max-degree", 3), "--max-degree 11"),
        (("gap", "--epsilon", 4, "--plot", "chart.txt"), ".svg"),
        (("lpgnn", "--epsilon", 4), "local"),
        (("no/such/run",), "certificate.json"),
        (("gap", "--epsilon", 4, "--data", "nowhere.npz"), "nowhere.npz"),
    ],
)
def test_bad_input_gives_one_line_and_code_two(graphveil, arguments, said):
    code, out, err = graphveil("audit", *arguments)
    assert code == 2 and out == "" and said in err and len(err.strip().splitlines()) == 1


def test_a_run_without_certificate_and_a_damaged_one_are_refused(graphveil, tmp_path):
    code, _, err = graphveil("audit", tmp_path)
    assert code == 2 and "certificate.json" in err
    (tmp_path / "certificate.json").write_text('{"schema": "graphveil/certificate/1"}')
    code, _, err = graphveil("audit", tmp_path)
    assert code == 2 and "damaged" in err
    code, _, err = graphveil("audit", tmp_path, "--epsilon", 3)
    assert code == 2 and "own promise" in err


def test_the_command_exists():
    with pytest.raises(SystemExit) as stop:
        main(["audit", "--help"])
    assert not stop.value.code


PROMISE = {"level": "node", "adjacency": "record", "relation": "zero-out", "epsilon": 4.0, "delta": 1e-4}
FINE = Audit("gap", "sound", PROMISE, "a graph", {}, 4.0, 4.0)
BROKEN = replace(
    FINE, failures=(Failure("sensitivity", "mean", "moved by 2, declared 1"),), codes=("unexplained sensitivity",)
)
GAP = replace(FINE, mode="published", failures=BROKEN.failures, codes=("A1",), known_gaps=("A1",))
AGREES, DISAGREES = CrossCheck("one Gaussian", 1.0, 1.0), CrossCheck("one Gaussian", 0.5, 1.0)


@pytest.mark.parametrize(
    ("audits", "checks", "expected"),
    [
        ([FINE, GAP], [AGREES], 0),
        ([FINE, BROKEN], [AGREES], 1),
        ([FINE, replace(FINE, claimed=3.0, shares=(), evidence=(), failures=BROKEN.failures)], [AGREES], 1),
        ([FINE, replace(GAP, codes=("A1", "unexplained noise"))], [AGREES], 1),
        ([FINE], [DISAGREES], 1),
    ],
    ids=["known gaps", "a sound mode", "a sound mode without codes", "an unknown gap", "accountants disagree"],
)
def test_audit_all_exits_1_if_a_sound_mode_is_violated(graphveil, monkeypatch, audits, checks, expected):
    monkeypatch.setattr("graphveil.audit.everything.audit_everything", lambda *_, **__: audits)
    monkeypatch.setattr("graphveil.audit.accountants.cross_checks", lambda: checks)
    code, out, _ = graphveil("audit", "--all")
    assert code == expected and out.count("violation found") >= len(audits)


@pytest.mark.parametrize(("plant", "expected"), [(nullcontext, 0), (clipping_skipped, 1)], ids=["healthy", "a bug"])
def test_audit_all_exits_1_for_a_bug_that_is_planted_in_a_sound_mode(graphveil, monkeypatch, plant, expected):
    """A real verdict, of one method under one promise and with few draws."""
    few = partial(audit_method, samples=4000, draws=200, outside=False)
    monkeypatch.setattr("graphveil.audit.audit_method", few)
    monkeypatch.setattr("graphveil.audit.accountants.cross_checks", lambda: [AGREES])
    monkeypatch.setattr("graphveil.audit.everything.method_names", lambda: ["dp-mlp"])
    monkeypatch.setattr("graphveil.audit.everything.modes_of", lambda _: ["sound"])
    monkeypatch.setattr("graphveil.audit.everything.promises_of", lambda *_: [NodeLevel(4.0, 1e-4)])
    with plant():
        code, out, _ = graphveil("audit", "--all", "--runs", 1)
    assert code == expected and ("no violation found" in out) == (not expected)
