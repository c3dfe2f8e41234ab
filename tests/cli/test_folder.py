"""From tables to a folder of records, and from the folder to a model."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import graphveil as gv
from graphveil.graph import powerlaw_sbm
from graphveil.graph.data.splits import random_split
from graphveil.graph.folder import open_folder, save_folder
from graphveil.graph.validate import validate
from tests.stored import generated


@pytest.fixture
def tables(tmp_path):
    """People and edges as text, with doubles, loops and a person without a label."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, 200, (2, 900))
    names = np.array([f"p{number}" for number in range(200)])
    people = {"id": names, "a": rng.random(200), "b": rng.random(200), "group": rng.choice(["x", "y", ""], 200)}
    pa.csv.write_csv(pa.table(people), tmp_path / "people.csv")
    pa.csv.write_csv(pa.table({"from": names[ends[0]], "to": names[ends[1]]}), tmp_path / "edges.csv")
    return tmp_path


@pytest.mark.parametrize("directed", [False, True])
def test_streamed_tables_are_the_same_graph_as_the_file_in_memory(graphveil, tables, monkeypatch, directed):
    monkeypatch.setattr("graphveil.graph.formats.streaming.SIZE", 64)
    flags = ("--edges", tables / "edges.csv", "--nodes", tables / "people.csv", "--label", "group=x|y")
    flags += ("--features", "a=0..1,b=0..1", "--json", *(["--directed"] if directed else []))
    told = []
    for out in (tables / "g.npz", tables / "g"):
        code, text, err = graphveil("import", *flags, "--out", out)
        assert code == 0, err
        told.append({key: value for key, value in json.loads(text).items() if key not in ("seconds", "out")})
    assert told[0] == told[1] and told[0]["duplicates"] and told[0]["self_loops"] and told[0]["unlabelled"]
    whole, stored = validate(gv.load_dataset(tables / "g.npz")), open_folder(tables / "g")
    assert len(stored.spans) == 4
    assert np.array_equal(whole.labels, stored.labels)
    for ours, theirs in zip(persons(whole), persons(stored), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    code, text, err = graphveil("import", *flags, "--out", tables / "g")
    assert code == 2 and "choose another folder" in err


def persons(graph):
    """Features and lists of every person."""
    for block in graph.blocks():
        values = block.rows.values
        values = values.toarray() if hasattr(values, "toarray") else values.numpy()
        for at in range(len(block)):
            yield (
                values[at].astype(np.float32),
                block.lists.entries[block.lists.starts[at] : block.lists.starts[at + 1]],
            )


def test_the_command_line_trains_on_a_folder(graphveil, tmp_path):
    graph = validate(random_split(powerlaw_sbm(3, nodes=500, features=6, classes=4), 1, (0.5, 0.2, 0.3)))
    save_folder(graph, tmp_path / "f", 3)
    code, text, err = graphveil("train", "ballot", "--data", tmp_path / "f", "--epsilon", 8, "--seed", 5, "--json")
    assert code == 0, err
    said = json.loads(text)
    model = gv.Ballot().fit(graph, gv.NodeLevel(8.0), seed=5)
    assert said["epsilon"] == model.certificate.epsilon
    for asked in (("dpdgc",), ("gap", "--mode", "published", "--level", "edge")):
        code, _, err = graphveil("train", *asked, "--data", tmp_path / "f", "--epsilon", 8)
        assert code == 2 and "block by block" in err and err.count("\n") == 1


@pytest.mark.parametrize("asked", [("gap", "node"), ("gap", "edge"), ("mlp", "edge")], ids=" ".join)
def test_gap_and_mlp_train_and_predict_from_a_folder_as_from_memory(graphveil, tmp_path, asked):
    graph, (method, level) = generated(500), asked
    save_folder(graph, tmp_path / "f", 3)
    fewer = {"steps": 4} if level == "node" else {"epochs": 4}
    flags = ("--data", tmp_path / "f", "--level", level, "--epsilon", 8, "--seed", 5, "--out", tmp_path / "run")
    code, text, err = graphveil("train", method, *flags, "--json", "--set", "{}={}".format(*next(iter(fewer.items()))))
    assert code == 0, err
    promise = gv.NodeLevel(8.0) if level == "node" else gv.EdgeLevel(8.0)
    model = {"gap": gv.Gap, "mlp": gv.Mlp}[method](**fewer).fit(graph, promise, seed=5)
    assert json.loads(text)["test_accuracy"] == model.score(graph)
    code, _, err = graphveil("predict", tmp_path / "run", "--data", tmp_path / "f", "--out", tmp_path / "p.csv")
    assert code == 0, err
    told = pa.csv.read_csv(tmp_path / "p.csv")["prediction"].to_numpy()
    assert np.array_equal(told, model.predict(graph).numpy())


def test_edges_alone_make_a_folder_without_features(graphveil, tables):
    code, text, err = graphveil("import", "--edges", tables / "edges.csv", "--out", tables / "g", "--json")
    assert code == 0, err
    stored = open_folder(tables / "g")
    assert json.loads(text)["nodes"] == stored.nodes and stored.features == 0
    assert sum(len(block.lists.entries) for block in stored.blocks()) == 2 * json.loads(text)["edges"]
    assert not next(stored.blocks()).rows.occupied().any()


def test_predictions_of_a_folder_name_everybody(graphveil, tables):
    flags = ("--edges", tables / "edges.csv", "--nodes", tables / "people.csv", "--label", "group=x|y")
    assert graphveil("import", *flags, "--features", "a=0..1,b=0..1", "--out", tables / "g")[0] == 0
    run = tables / "run"
    code, _, err = graphveil(
        "train", "ballot", "--data", tables / "g", "--split", "labelled", "--epsilon", 8, "--out", run
    )
    assert code == 0, err
    code, _, err = graphveil("predict", run, "--data", tables / "g", "--only", "unlabelled", "--out", tables / "p.csv")
    assert code == 0, err
    found = pa.csv.read_csv(tables / "p.csv").to_pydict()
    people = pa.csv.read_csv(tables / "people.csv").to_pydict()
    assert found["node"] == [name for name, group in zip(people["id"], people["group"], strict=True) if not group]
    assert set(found["class"]) <= {"x", "y"}
