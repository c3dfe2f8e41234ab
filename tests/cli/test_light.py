"""Commands that train nothing import no library for training; the help is help."""

import json
import subprocess
import sys

import pytest

from graphveil.cli.app import COMMANDS

HEAVY = ("torch", "torch_geometric", "sklearn", "matplotlib", "pandas")
RUN_ALL = f"""
import contextlib, io, json, sys
from graphveil.cli.app import main
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code or 0
    heavy = [name for name in {HEAVY!r} if name in sys.modules]
    print(json.dumps([code, out.getvalue(), err.getvalue(), heavy]))
"""
SIZES = ("--nodes", "3000", "--features", "50", "--classes", "5")
LOCAL = ("--level", "local", "--features-epsilon", "1", "--labels-epsilon", "1", "--edges-epsilon", "raw")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A saved run and two tables."""
    from graphveil import DpMlp, NodeLevel
    from graphveil.audit.central.neighbours import worst_case_graph

    folder = tmp_path_factory.mktemp("light")
    DpMlp(steps=2).fit(worst_case_graph(seed=2)[0], NodeLevel(4, 1e-4), on_bad_rows="zero").save(folder / "run")
    (folder / "rows.jsonl").write_text("")
    (folder / "edges.csv").write_text("from,to\na,b\nb,c\n")
    (folder / "people.csv").write_text("id,x,y,label\na,0,1,0\nb,1,0,1\n")
    return folder


PRIVATIZE = ("privatize", "people.csv", "--out", "reports.csv", "--features-epsilon", "1", "--id", "id")
LIGHT = [
    ("--help",),
    *((name, "--help") for name in COMMANDS),
    ("methods",),
    ("methods", "gap"),
    ("plan", "gap", *SIZES, "--epsilon", "4"),
    ("plan", "lpgnn", *SIZES, *LOCAL),
    ("datasets",),
    ("certificate", "run"),
    ("certificate", "run", "--html", "page.html"),
    ("verify", "run"),
    ("results", "rows.jsonl"),
    ("reproduce",),
    ("reproduce", "dpdgc", "--list"),
    ("import", "--edges", "edges.csv", "--out", "graph.npz"),
    (*PRIVATIZE, "--features", "x", "--features", "y"),
    ("collect", "reports.csv", "--out", "noisy.npz"),
    ("serve", "token", "create", "--role", "operator", "--folder", "service"),
    (
        "serve",
        "collection",
        "create",
        "demo",
        "local",
        "--classes",
        "3",
        "--labels-epsilon",
        "1",
        "--edges-epsilon",
        "raw",
    )
    + ("--folder", "service"),
]


@pytest.fixture(scope="module")
def answers(files):
    """Every light command in one process, one after the other: what one of them imports stays imported for the others."""
    words = [sys.executable, "-c", RUN_ALL, json.dumps(LIGHT)]
    done = subprocess.run(words, cwd=files, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == len(LIGHT), done.stderr
    return dict(zip(LIGHT, map(json.loads, lines), strict=True))


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_light_commands_import_nothing_heavy(answers, arguments):
    code, out, err, heavy = answers[arguments]
    assert code == 0, err
    assert (out or "--out" in arguments) and heavy == []


def test_a_bare_command_prints_its_help(graphveil):
    for words in ((), ("bench",)):
        code, out, err = graphveil(*words)
        assert code == 0 and err == "" and "Commands:" in out and len(out.splitlines()) > 6


def test_a_mistyped_command_is_told_the_right_one(graphveil):
    code, _, err = graphveil("trian")
    assert code == 2 and "train" in err and len(err.splitlines()) == 1
