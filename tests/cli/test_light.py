"""Commands that train nothing import no library for training; the help is help."""

import json
import subprocess
import sys

import pytest

from graphveil.cli.app import COMMANDS

HEAVY = ("torch", "torch_geometric", "sklearn", "matplotlib", "pandas")
REPORT = f"""
import json, sys
from graphveil.cli.app import main
try:
    main(sys.argv[1:])
finally:
    print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
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
    (folder / "edges.csv").write_text("from,to\na,b\nb,c\n")
    (folder / "people.csv").write_text("id,x,y,label\na,0,1,0\nb,1,0,1\n")
    return folder


def run(folder, *arguments):
    done = subprocess.run([sys.executable, "-c", REPORT, *arguments], cwd=folder, capture_output=True, text=True)
    *told, heavy = done.stderr.strip().splitlines()
    assert done.returncode == 0, told
    return done.stdout, json.loads(heavy)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        *((name, "--help") for name in COMMANDS),
        ("methods",),
        ("methods", "gap"),
        ("plan", "gap", *SIZES, "--epsilon", "4"),
        ("plan", "lpgnn", *SIZES, *LOCAL),
        ("datasets",),
        ("certificate", "run"),
        ("verify", "run"),
        ("import", "--edges", "edges.csv", "--out", "graph.npz"),
    ],
    ids=" ".join,
)
def test_light_commands_import_nothing_heavy(files, arguments):
    out, heavy = run(files, *arguments)
    assert out and heavy == []


def test_reports_are_made_and_collected_without_torch(files):
    privatize = ("privatize", "people.csv", "--out", "reports.csv", "--features-epsilon", "1", "--id", "id")
    _, heavy = run(files, *privatize, "--features", "x", "--features", "y")
    assert heavy == []
    _, heavy = run(files, "collect", "reports.csv", "--out", "noisy.npz")
    assert heavy == []


def test_a_bare_command_prints_its_help(graphveil):
    for words in ((), ("bench",)):
        code, out, err = graphveil(*words)
        assert code == 0 and err == "" and "Commands:" in out and len(out.splitlines()) > 6


def test_a_mistyped_command_is_told_the_right_one(graphveil):
    code, _, err = graphveil("trian")
    assert code == 2 and "train" in err and len(err.splitlines()) == 1
