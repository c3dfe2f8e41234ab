"""Bad input: exit code 2, one clear line on stderr, no traceback, nothing half-written. Repairs: exit 0 with a warning."""

import json

import numpy as np
import pytest

from graphveil.graph.formats.npz import read_arrays

TRAIN = ("train", "dp-mlp", "--set", "steps=2")


def refused(result, *words):
    code, out, err = result
    lines = err.strip().splitlines()
    assert code == 2 and out == "" and len(lines) == 1, result
    assert lines[0].startswith("graphveil: error: ") and "Traceback" not in err
    for word in words:
        assert word in lines[0], lines[0]


def edit(path, **changes):
    """The graph file with some arrays replaced, written without any check."""
    arrays = dict(read_arrays(path)) | changes
    np.savez(path, **arrays)
    return path


@pytest.fixture
def arrays(graph_file):
    return dict(read_arrays(graph_file))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_refused_unless_zeroed_on_request(graphveil, graph_file, arrays, bad):
    values = arrays["x_data"].copy()
    values[5] = bad
    edit(graph_file, x_data=values)
    refused(graphveil(*TRAIN, "--data", graph_file, "--epsilon", 1), "on-bad-rows")
    code, out, _ = graphveil(*TRAIN, "--data", graph_file, "--epsilon", 1, "--on-bad-rows", "zero", "--json")
    assert code == 0 and json.loads(out)["holds"]
    refused(graphveil(*TRAIN, "--data", graph_file, "--epsilon", 1, "--on-bad-rows", "ignore"), "on_bad_rows")


def test_edges_out_of_range_are_refused(graphveil, graph_file, arrays):
    edges = arrays["edge_index"].copy()
    edges[1, -1] = 9999
    refused(graphveil(*TRAIN, "--data", edit(graph_file, edge_index=edges), "--epsilon", 1), "edge")


def test_labels_out_of_range_or_of_wrong_length_are_refused(graphveil, graph_file, arrays):
    labels = arrays["y"].copy()
    labels[0] = 77
    refused(graphveil(*TRAIN, "--data", edit(graph_file, y=labels), "--epsilon", 1), "data.y")
    refused(graphveil(*TRAIN, "--data", edit(graph_file, y=arrays["y"][:-2]), "--epsilon", 1), "y")


def test_a_truncated_or_foreign_file_is_refused(graphveil, graph_file, tmp_path):
    content = graph_file.read_bytes()
    for number, broken in enumerate((content[: len(content) // 2], b"", b"PK\x03\x04 nonsense", content[:-30])):
        path = tmp_path / f"broken{number}.npz"
        path.write_bytes(broken)
        refused(graphveil(*TRAIN, "--data", path, "--epsilon", 1), str(path))
    refused(graphveil(*TRAIN, "--data", tmp_path / "absent.npz", "--epsilon", 1), "absent.npz")


def test_a_tampered_benchmark_file_is_refused(graphveil, tmp_path, monkeypatch, graph_file):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "cora.npz").write_bytes(graph_file.read_bytes())
    monkeypatch.setenv("GRAPHVEIL_DATA", str(folder))
    refused(graphveil(*TRAIN, "--data", "cora", "--epsilon", 1), "sha256")


def test_an_unwritable_output_is_refused_before_anything_is_spent(graphveil, graph_file, tmp_path):
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file", tmp_path / "file" / "run"):
        refused(graphveil(*TRAIN, "--data", graph_file, "--epsilon", 1, "--out", out), "folder")
    assert (tmp_path / "file").read_text() == "in the way"


def test_bad_input_leaves_no_output_folder(graphveil, graph_file, tmp_path):
    out = tmp_path / "run"
    refused(graphveil(*TRAIN, "--data", graph_file, "--epsilon", -1, "--out", out))
    refused(graphveil("train", "gap", "--adjacency", "node", "--data", graph_file, "--epsilon", 1, "--out", out))
    refused(graphveil(*TRAIN, "--data", "nowhere", "--epsilon", 1, "--out", out))
    assert not out.exists()


def test_runs_that_are_not_there_or_not_whole_are_refused(graphveil, graph_file, tmp_path):
    for command in (("certificate",), ("verify",), ("predict", "--data", graph_file)):
        refused(graphveil(command[0], tmp_path / "none", *command[1:]), "does not exist")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "certificate.json").write_text("{")
    refused(graphveil("certificate", broken), "JSON")
    for text, word in (("{}", "schema"), ("[1, 2]", "schema"), ('{"schema": "graphveil/certificate/1"}', "damaged")):
        (broken / "certificate.json").write_text(text)
        refused(graphveil("certificate", broken), word)
        refused(graphveil("certificate", broken, "--json"), word)
    run = tmp_path / "run"
    graphveil(*TRAIN, "--data", graph_file, "--epsilon", 1, "--out", run)
    (run / "model.json").write_text("{}")
    refused(graphveil("predict", run, "--data", graph_file), "damaged")
    (run / "ledger.jsonl").unlink()
    (run / "ledger.jsonl").mkdir()
    refused(graphveil("verify", run), "ledger")


def test_a_bad_option_is_found_before_anything_is_spent(graphveil, graph_file, tmp_path):
    refused(
        graphveil("train", "dp-mlp", "--data", graph_file, "--epsilon", 1, "--set", "clip=0", "--out", tmp_path / "run")
    )
    assert not (tmp_path / "run").exists()


def warned(result, *words):
    code, _, err = result
    assert code == 0 and any(line.startswith("graphveil: warning: ") for line in err.splitlines()), result
    for word in words:
        assert word in err


def test_a_large_delta_is_a_warning(graphveil, graph_file):
    warned(graphveil(*TRAIN, "--data", graph_file, "--epsilon", 1, "--delta", 0.5), "1/n")


def test_duplicate_edges_and_self_loops_are_removed_with_a_warning(graphveil, graph_file, arrays):
    edges = np.concatenate([arrays["edge_index"], arrays["edge_index"][:, :3], [[4], [4]]], axis=1)
    warned(graphveil(*TRAIN, "--data", edit(graph_file, edge_index=edges), "--epsilon", 1), "duplicate", "self-loop")


def test_unlabelled_nodes_are_a_warning(graphveil, graph_file, arrays):
    path = edit(graph_file, unlabeled_nodes=np.array([0, 3], dtype=np.int32))
    warned(graphveil(*TRAIN, "--data", path, "--epsilon", 1), "label")
