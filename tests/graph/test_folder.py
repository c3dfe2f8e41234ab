"""Records in a folder of Parquet files: the same graph, the same releases, and clear words for what is wrong."""

import json
import pickle
import shutil
import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphveil as gv
from graphveil.errors import InputError
from graphveil.graph.folder import open_folder, save_folder
from graphveil.learn import engine
from tests.stored import generated, in_folders

NODES = 3000
PROMISES = {"record": gv.NodeLevel(8.0), "k-neighbor": gv.KNeighborLevel(2, 8.0)}


@pytest.fixture(scope="module")
def graph():
    return generated(NODES)


@pytest.fixture(scope="module")
def folders(graph, tmp_path_factory):
    return in_folders(graph, tmp_path_factory.mktemp)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize(
    "method",
    [
        gv.DpMlp(),
        gv.Ballot(publish="noisy", release_accuracy=True),
        gv.Roster(steps=12, edge_cover=True),
        gv.Roster(steps=12, edge_cover=False),
        gv.Gap(steps=12),
        gv.Gap(steps=5, hidden=20),
    ],
    ids=["dp-mlp", "ballot", "roster", "roster, edges not covered", "gap", "gap, hidden"],
)
def test_releases_are_equal_bit_for_bit_for_any_number_of_blocks_and_threads(
    graph, folders, monkeypatch, method, promise
):
    ledgers = []

    def released(of, threads):
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        model = method.fit(of, PROMISES[promise], seed=5)
        ledgers.append([entry.to_json() for entry in model.certificate.releases])
        return model.predictor.arrays(), model.predict_proba(of)

    expected, scores = released(graph, 1)
    if method.name == "ballot":
        assert len(expected["receivers"])  # the graph was used
    if method.name == "roster":
        assert expected["codes"].any() and expected["features"].any()
    for blocks, folder in folders.items():
        for threads in (1, 3):
            arrays, again = released(open_folder(folder), threads)
            assert all(np.array_equal(arrays[name], expected[name]) for name in expected), (blocks, threads)
            assert np.array_equal(again, scores)
    assert all(ledger == ledgers[0] for ledger in ledgers)


@pytest.mark.parametrize("method", [gv.Gap(epochs=4), gv.Mlp(epochs=6), gv.DpMlp(epochs=4)], ids=lambda m: m.name)
@pytest.mark.parametrize("promise", [gv.EdgeLevel(8.0), gv.NonPrivate()], ids=lambda p: p.level)
def test_open_training_gives_the_same_network_for_any_number_of_blocks_and_threads(
    graph, folders, monkeypatch, method, promise
):
    expected = method.fit(graph, promise, seed=5).predictor.arrays()
    for folder in folders.values():
        for threads in (1, 3):
            monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
            model = method.fit(open_folder(folder), promise, seed=5)
            found = model.predictor.arrays()
            assert all(np.array_equal(found[name], expected[name]) for name in expected), (folder, threads)
            assert model.score(open_folder(folder)) > 0.3  # of four classes


def test_features_are_kept_only_as_far_as_memory_is_given(folders):
    little = open_folder(folders[16], keep=2 * 188 * 6 * 4)
    for block in little.blocks():
        assert len(block.rows.values)
    assert len(little.rows._kept) == 2


def test_a_copy_for_another_process_is_a_path_and_reads_the_files_itself(folders, monkeypatch, tmp_path):
    monkeypatch.chdir(folders[16].parent)
    stored = open_folder(Path(folders[16].name))
    sent = pickle.dumps(stored)
    assert len(sent) < NODES * (8 + 3) + 10_000  # labels and masks; no features, no lists
    monkeypatch.chdir(tmp_path)
    copy, other = pickle.loads(sent), pickle.loads(sent)
    for ours, theirs in zip(open_folder(folders[16]).blocks(), copy.blocks(), strict=True):
        assert np.array_equal(ours.rows.values, theirs.rows.values) and np.array_equal(ours.labels, theirs.labels)
        assert np.array_equal(ours.lists.entries, theirs.lists.entries)
    assert other.rows is copy.rows  # what one query has read is there for the next
    assert pickle.loads(pickle.dumps(open_folder(folders[16]))).rows is not copy.rows


def test_a_method_that_needs_the_whole_graph_says_so(folders):
    stored = open_folder(folders[3])
    for method in (gv.Gap(mode="published"), gv.Dpdgc(), gv.NipGnn()):
        with pytest.raises(InputError, match=r"needs the whole graph in memory: .* roster, ballot, dp-mlp, gap or mlp"):
            method.fit(stored, gv.NodeLevel(8.0))
    with pytest.raises(InputError, match="block by block"):
        gv.Ballot().fit(stored, gv.EdgeLevel(8.0))


def without_digests(folder):
    """The folder as earlier versions wrote it: it does not say how its parts must look."""
    head = json.loads((folder / "graph.json").read_text())
    assert set(head.pop("digests")) == set(head["parts"])
    (folder / "graph.json").write_text(json.dumps(head))


def broken(folder, column, value):
    """The folder with this column of its last part exchanged, and without digests, which would tell before anything else does."""
    without_digests(folder)
    path = sorted(folder.glob("records-*.parquet"))[-1]
    table = pq.read_table(path)
    table = table.set_column(table.column_names.index(column), column, value(table[column].combine_chunks()))
    pq.write_table(table, path)


def lists_of(values):
    return pa.array(values, pa.list_(pa.int32()))


WRONG = {
    "a number that is none": (
        "x",
        lambda old: pa.FixedSizeListArray.from_arrays(pa.array(np.full(len(old) * 6, np.nan, np.float32)), 6),
    ),
    "doubles": ("contacts", lambda old: lists_of([[1, 1]] * len(old))),
    "not sorted": ("contacts", lambda old: lists_of([[2, 1]] * len(old))),
    "nobody's slot": ("contacts", lambda old: lists_of([[NODES]] * len(old))),
    "oneself": ("contacts", lambda old: lists_of([[slot] for slot in range(len(old))])),
    "doubles in unsigned slots": (
        "contacts",
        lambda old: pa.array([[3, 1, 3, 1]] * len(old), pa.list_(pa.uint32())),
    ),
    "slots that are none": ("contacts", lambda old: lists_of([[None]] * len(old))),
    "slots in words": ("contacts", lambda old: pa.array([["a"]] * len(old))),
    "a kind below 0": ("kind", lambda old: pa.array(np.full(len(old), -1, dtype=np.int8))),
    "a kind that wraps": ("kind", lambda old: pa.array(np.full(len(old), 256, dtype=np.int64))),
    "a class in words": ("label", lambda old: pa.array(["a"] * len(old))),
    "half a class": ("label", lambda old: pa.array(np.full(len(old), 0.7))),
    "no such class": ("label", lambda old: pa.array(np.full(len(old), 9, dtype=np.int32))),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_in_a_folder_is_one_clear_line(graph, tmp_path, wrong):
    save_folder(graph, tmp_path / "f", 1)
    broken(tmp_path / "f", *WRONG[wrong])
    with pytest.raises(InputError, match=str(tmp_path / "f")):
        gv.Ballot().fit(open_folder(tmp_path / "f"), gv.NodeLevel(8.0), seed=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": "x"},
        {"features": None},
        {"directed": "yes"},
        {"notes": 5},
        {"notes": [5]},
        {"class_names": ["a"]},
        {"digests": 5},
        {"digests": {"a": "b"}},
    ],
    ids=str,
)
def test_a_head_that_says_nonsense_is_one_clear_line(graph, tmp_path, wrong):
    save_folder(graph, tmp_path / "f", 1)
    head = json.loads((tmp_path / "f" / "graph.json").read_text())
    (tmp_path / "f" / "graph.json").write_text(json.dumps(head | wrong))
    with pytest.raises(InputError):
        open_folder(tmp_path / "f")


@pytest.mark.parametrize("copied", [False, True], ids=["one name twice", "a copy under another name"])
def test_a_part_that_is_there_twice_is_refused(graph, tmp_path, copied):
    save_folder(graph, tmp_path / "f", 1)
    head = json.loads((tmp_path / "f" / "graph.json").read_text())
    (part,) = head["parts"]
    again = "again.parquet" if copied else part
    shutil.copy(tmp_path / "f" / part, tmp_path / "f" / "again.parquet")
    head |= {"parts": [part, again], "nodes": 2 * head["nodes"], "arcs": 2 * head["arcs"]}
    head["digests"] |= {again: head["digests"][part]}
    (tmp_path / "f" / "graph.json").write_text(json.dumps(head))
    with pytest.raises(InputError, match="count twice"):
        open_folder(tmp_path / "f")


def test_an_empty_row_group_is_nobody(graph, tmp_path):
    save_folder(graph, tmp_path / "f", 3)
    without_digests(tmp_path / "f")
    path = next((tmp_path / "f").glob("records-*.parquet"))
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema) as writer:
        for part in (table.slice(0, 0), table.slice(0, 1000), table.slice(0, 0), table.slice(1000)):
            writer.write_table(part)
    stored = open_folder(tmp_path / "f")
    assert [slots.stop - slots.start for slots in stored.spans] == [1000, NODES - 1000]
    model, expected = (gv.DpMlp(steps=3).fit(one, gv.NodeLevel(8.0), seed=1).predictor for one in (stored, graph))
    assert np.array_equal(model.weights, expected.weights)


def one_number_changed(path):
    """The same layout, writer and settings, and one feature of one person other than it was; never the largest or smallest."""
    table = pq.read_table(path)
    x = table["x"].combine_chunks()
    values = x.flatten().to_numpy().copy()
    values[np.argsort(values)[len(values) // 2]] += np.float32(1e-3)
    table = table.set_column(
        table.column_names.index("x"), table.schema.field("x"), pa.FixedSizeListArray.from_arrays(pa.array(values), 6)
    )
    with pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=["kind", "label"]) as writer:
        writer.write_table(table, row_group_size=len(table))


def written_again(path):
    """The same records by the same program."""
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=["kind", "label"]) as writer:
        writer.write_table(table, row_group_size=len(table))


CHANGES = {
    "fewer rows": lambda path: pq.write_table(pq.read_table(path).slice(0, 7), path),
    "one number": one_number_changed,
    "written again": written_again,
    "no footer": lambda path: path.write_bytes(b"PAR1"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("old", [False, True], ids=["with digests", "of an earlier version"])
def test_a_part_that_changes_after_it_was_opened_is_refused(graph, tmp_path, change, old):
    save_folder(graph, tmp_path / "f", 1)
    if old:
        without_digests(tmp_path / "f")
    stored = open_folder(tmp_path / "f")
    CHANGES[change](next((tmp_path / "f").glob("records-*.parquet")))
    with pytest.raises(InputError, match="was changed after it was opened"):
        gv.DpMlp().fit(stored, gv.NodeLevel(8.0))


@pytest.mark.parametrize("change", ["one number", "written again"])
def test_a_part_that_is_not_as_it_was_written_is_refused_when_the_folder_is_opened(graph, tmp_path, change):
    save_folder(graph, tmp_path / "f", 1)
    assert open_folder(tmp_path / "f").nodes == NODES
    path = next((tmp_path / "f").glob("records-*.parquet"))
    CHANGES[change](path)
    with pytest.raises(InputError, match=f"{path.name} is not as it was written") as told:
        open_folder(tmp_path / "f")
    assert "\n" not in str(told.value)


def test_a_folder_of_an_earlier_version_opens(graph, tmp_path):
    save_folder(graph, tmp_path / "f", 1)
    without_digests(tmp_path / "f")
    one_number_changed(next((tmp_path / "f").glob("records-*.parquet")))
    assert open_folder(tmp_path / "f").nodes == NODES


def test_equal_records_have_digests_that_tell_nothing(graph, tmp_path):
    """Whoever guesses all records cannot check the guess by the public head: every file is marked at random."""
    heads = []
    for name in ("f", "g"):
        save_folder(graph, tmp_path / name, 2)
        heads.append(json.loads((tmp_path / name / "graph.json").read_text()))
    first, second = (set(head["digests"].values()) for head in heads)
    assert heads[0]["parts"] == heads[1]["parts"] and not first & second


def test_no_block_outlives_its_turn(folders):
    alive = weakref.WeakSet()

    def seen(block):
        alive.add(block)
        return np.zeros(block.rows.shape[1]) + len(alive)

    most = engine.total(open_folder(folders[16], keep=0), seen)
    assert most.max() < 16 * 3  # one or two at a time, not one more with every block


def test_an_unfinished_folder_or_one_that_lost_a_part_is_refused(graph, tmp_path):
    save_folder(graph, tmp_path / "f", 1)
    head = json.loads((tmp_path / "f" / "graph.json").read_text())
    (tmp_path / "f" / "graph.json").write_text(json.dumps(head | {"nodes": NODES + 1}))
    with pytest.raises(InputError, match="a part is missing"):
        open_folder(tmp_path / "f")
    (tmp_path / "f" / "graph.json").unlink()
    with pytest.raises(InputError, match="no folder of records"):
        open_folder(tmp_path / "f")
