"""Where queries run: flags that do not go together, and clusters that are not there, are one line."""

import socket
import sys

import pytest


@pytest.mark.parametrize(
    "flags, word",
    [
        (("--engine", "cluster"), "local, ray"),
        (("--address", "auto"), "--engine ray"),
        (("--workers", 2), "--engine ray"),
        (("--engine", "ray", "--address", "auto", "--workers", 2), "one of them"),
        (("--engine", "ray", "--level", "edge"), "does not run in blocks"),
    ],
    ids=str,
)
def test_flags_that_do_not_go_together_are_one_line(graphveil, graph_file, flags, word):
    code, _, err = graphveil("train", "ballot", "--data", graph_file, "--epsilon", 4, *flags)
    assert code == 2 and word in err and "Traceback" not in err


@pytest.mark.parametrize(
    "asked",
    [
        ("gcn", "--level", "none"),
        ("dpdgc", "--epsilon", 4),
        ("dp-mlp", "--epsilon", 4, "--mode", "published"),
        ("local", "--level", "local", "--labels-epsilon", 1, "--edges-epsilon", 1),
    ],
    ids=str,
)
def test_methods_that_do_not_run_in_blocks_refuse_workers(graphveil, graph_file, asked):
    code, _, err = graphveil("train", *asked, "--data", graph_file, "--engine", "ray")
    assert code == 2 and "does not run in blocks" in err and err.count("\n") == 1


def test_reports_are_not_learnt_from_on_workers(graphveil, tmp_path):
    code, _, err = graphveil("train", "local", "--reports", tmp_path / "r.csv", "--engine", "ray")
    assert code == 2 and "reports" in err


def test_without_ray_the_line_says_what_to_install(graphveil, graph_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = graphveil("train", "ballot", "--data", graph_file, "--epsilon", 4, "--engine", "ray")
    assert code == 2 and "pip install 'graphveil[ray]'" in err and "Traceback" not in err


def test_a_cluster_that_is_not_there_is_one_line(graphveil, graph_file, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed (extra 'ray')")
    out = tmp_path / "run"
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but nobody listens
        where = ("--engine", "ray", "--address", f"127.0.0.1:{closed.getsockname()[1]}")
        code, _, err = graphveil("train", "ballot", "--data", graph_file, "--epsilon", 4, "--out", out, *where)
    assert code == 2 and "no Ray cluster" in err and not out.exists()  # nothing was spent
