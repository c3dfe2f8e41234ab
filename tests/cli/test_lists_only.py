"""Contact lists private and nothing else, on the command line: in one process and from the files of two holders."""

import json

import numpy as np
import pytest

from graphveil.graph import powerlaw_sbm

RAW = ("--features-epsilon", "raw", "--labels-epsilon", "raw")
COLUMNS = ("--features", "w*", "--label", "group", "--classes", 3)
QUICK = ("--set", "epochs=10", "--seed", 0)


@pytest.fixture(scope="module")
def holders(tmp_path_factory):
    data = powerlaw_sbm(1, nodes=120, features=3, classes=3, homophily=0.9)
    sender, receiver = data.edge_index.numpy()
    folder, paths = tmp_path_factory.mktemp("holders"), []
    for number in range(2):
        lines = ["id,group,friends,w0,w1,w2"]
        for v in range(number, 120, 2):
            friends = " ".join(map(str, np.unique(receiver[sender == v])))
            lines.append(f"{v},{int(data.y[v]) if v % 5 else ''},{friends},{','.join(map(str, data.x[v].tolist()))}")
        paths.append(folder / f"{number}.csv")
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


def privatized(graphveil, holders, folder, stage, *flags):
    found = []
    for number, path in enumerate(holders):
        found.append(folder / f"{stage}-{number}.csv")
        code, _, err = graphveil("privatize", path, "--out", found[-1], *flags, "--memory", folder / f"memory{number}")
        assert code == 0, err
    return found


@pytest.fixture
def asked(graphveil, holders, tmp_path):
    """Features and labels in the clear, and the broadcast that the server answers with."""
    files = privatized(graphveil, holders, tmp_path, "clear", *RAW, *COLUMNS)
    heard = tmp_path / "heard.csv"
    code, out, err = graphveil(
        "train", "local", "--reports", *files, "--edges-epsilon", 2, "--broadcast", heard, *QUICK, "--json"
    )
    assert code == 3, err
    return files, heard, json.loads(out)


def test_two_holders_answer_the_broadcast_and_the_run_verifies(graphveil, holders, asked, tmp_path):
    files, heard, body = asked
    assert body["waiting_for"] == "histogram" and "--edges-epsilon 2 --relation zero-out" in body["answer_with"]
    lists = ("--edges-epsilon", 2, "--relation", "zero-out", "--contacts", "friends", "--broadcast", heard)
    files = [*files, *privatized(graphveil, holders, tmp_path, "lists", *lists)]
    assert "degree" not in files[-1].read_text().splitlines()[0], "lengths stay with their owners"
    run = tmp_path / "run"
    code, out, err = graphveil("train", "local", "--reports", *files, *QUICK, "--out", run, "--json")
    assert code == 0, err
    done = json.loads(out)
    assert done["epsilon"] == pytest.approx(2.0) and done["per_edge"] == pytest.approx(4.0)
    assert done["per_vertex"] is None and done["relation"] == "zero-out"
    assert graphveil("verify", run)[0] == 0
    code, _, err = graphveil("train", "local", "--reports", *files, "--edges-epsilon", 2, "--relation", "replace")
    assert code == 2 and "under relation zero-out, the flags say replace" in err


def test_an_owner_who_allows_an_exchange_only_is_not_asked_for_more(graphveil, holders, asked, tmp_path):
    _, heard, _ = asked
    lists = ("--edges-epsilon", 2, "--contacts", "friends", "--broadcast", heard, "--out", tmp_path / "x.csv")
    code, _, err = graphveil("privatize", holders[0], *lists)
    assert code == 2 and "--relation zero-out" in err and not (tmp_path / "x.csv").exists()
    (heard.parent / "heard.csv.json").unlink()  # a broadcast that leaves the randomizer to the holder
    code, out, err = graphveil("privatize", holders[0], *lists, "--relation", "zero-out", "--json")
    assert code == 0 and json.loads(out)["promise"]["relation"] == "zero-out", err
    bucket = ("--relation", "zero-out", "--edge-mechanism", "bucket")
    code, _, err = graphveil("privatize", holders[0], *lists[:-1], tmp_path / "y.csv", *bucket)
    assert code == 2 and "covers an exchange" in err


def test_training_in_one_process_says_the_same(graphveil, graph_file):
    flags = ("--data", graph_file, "--level", "local", *RAW, "--edges-epsilon", 2)
    done = json.loads(graphveil("train", "local", *flags, *QUICK, "--holders", 2, "--json")[1])
    assert done["holds"] and done["epsilon"] == pytest.approx(2.0) and done["per_edge"] == pytest.approx(4.0)
    planned = json.loads(graphveil("plan", "local", *flags, "--json")[1])
    assert planned["epsilon"] == done["epsilon"] and planned["releases"][0]["mechanism"]["relation"] == "zero-out"


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--labels-epsilon", 1, "--edges-epsilon", 1, "--relation", "zero-out"), "contact lists alone"),
        ((*RAW, "--edges-epsilon", "raw", "--relation", "zero-out"), "contact lists alone"),
        ((*RAW, "--edges-epsilon", 1, "--relation", "swap"), "unknown relation"),
    ],
)
def test_a_relation_that_does_not_fit_is_one_clear_line(graphveil, flags, word):
    sizes = ("--level", "local", "--nodes", 100, "--features", 3, "--classes", 3)
    code, _, err = graphveil("plan", "local", *sizes, *flags)
    assert code == 2 and word in err and len(err.strip().splitlines()) == 1
