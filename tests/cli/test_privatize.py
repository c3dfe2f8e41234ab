"""``privatize`` and ``collect``: files in, files out, every error one line, nothing half-written."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphveil.graph import read_npz
from graphveil.graph.folder import save_folder
from graphveil.graph.validate import validate

HEADER = "id,age,height,group,friends\n"
ROWS = ["ann,0.5,0.1,0,bob cid", "bob,0.25,1.0,1,ann", "cid,0.0,0.9,,ann dan", "dan,1.0,0.3,2,cid"]
FLAGS = ("--features-epsilon", 2, "--labels-epsilon", 1, "--label", "group", "--classes", 3, "--contacts", "friends")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text(HEADER + "\n".join(ROWS) + "\n")
    return path


def refused(result, *words):
    code, out, err = result
    lines = err.strip().splitlines()
    assert code == 2 and out == "" and len(lines) == 1 and lines[0].startswith("graphveil: error: "), result
    assert all(word in lines[0] for word in words), lines[0]


@pytest.mark.parametrize("mechanism", ["multi-bit", "piecewise", "laplace", "direction"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_records_become_reports_and_reports_become_noisy_data(graphveil, table, tmp_path, mechanism, suffix):
    reports, noisy = tmp_path / f"reports.{suffix}", tmp_path / "noisy.npz"
    code, out, _ = graphveil(
        "privatize", table, "--out", reports, *FLAGS, "--edges-epsilon", "raw", "--mechanism", mechanism, "--json"
    )
    body = json.loads(out)
    assert code == 0 and body["vertices"] == 4 and body["attributes"] == 2 and body["raw"] == ["edges"]
    assert body["epsilon"] == pytest.approx(3.0, abs=1e-6)
    code, out, _ = graphveil("collect", reports, "--out", noisy, "--json")
    body = json.loads(out)
    assert code == 0 and body["epsilon"] == pytest.approx(3.0, abs=1e-6) and body["holds"] and body["labelled"] == 3
    assert "IN THE CLEAR" in body["warnings"][0]
    data = read_npz(noisy)
    assert data.num_nodes == 4 and data.edge_index.shape[1] == 6 and int(data.y[2]) == -1
    assert json.loads((tmp_path / "noisy.json").read_text())["costs"]["edge"] is None


def test_the_reports_of_several_holders_are_aligned_by_id(graphveil, table, tmp_path):
    west = tmp_path / "west.csv"
    west.write_text(HEADER + "eve,0.5,0.5,1,\n")
    files = []
    for name, source in (("east", table), ("west", west)):
        files.append(tmp_path / f"{name}.parquet")
        flags = (*FLAGS[:4], "--label", "group", "--classes", 3, "--features", "age", "--features", "height")
        assert graphveil("privatize", source, "--out", files[-1], *flags, "--holder", name)[0] == 0
    code, out, _ = graphveil("collect", *files, files[0], "--out", tmp_path / "all.npz", "--json")
    assert code == 0 and json.loads(out)["vertices"] == 5 and json.loads(out)["resent"] == 7
    certificate = json.loads((tmp_path / "all.json").read_text())
    assert certificate["holders"]["east"]["epsilon"] == pytest.approx(12, abs=1e-5)
    assert certificate["holders"]["west"]["vertices"] == 1


def test_a_second_randomisation_of_the_same_vertex_is_refused(graphveil, table, tmp_path):
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    flags = ("--features-epsilon", 1, "--features", "age", "--mechanism", "laplace")
    for file in files:
        assert graphveil("privatize", table, "--out", file, *flags, "--memory", file.with_suffix(""))[0] == 0
    refused(graphveil("collect", *files, "--out", tmp_path / "x.npz"), "another report", "b.parquet")
    assert not (tmp_path / "x.npz").exists()


def test_an_existing_reports_file_is_sent_again_and_never_drawn_again(graphveil, table, tmp_path):
    out = tmp_path / "reports.csv"
    flags = ("--features-epsilon", 1, "--features", "age")
    assert graphveil("privatize", table, "--out", out, *flags)[0] == 0
    before = out.read_bytes()
    refused(graphveil("privatize", table, "--out", out, *flags), "spend the budget again")
    assert out.read_bytes() == before


def test_attributes_outside_the_public_range_are_clipped_and_counted_or_refused(graphveil, table, tmp_path):
    flags = ("--features-epsilon", 1, "--features", "age", "--range", "0..0.6")
    code, out, _ = graphveil("privatize", table, "--out", tmp_path / "a.csv", *flags, "--json")
    assert code == 0 and json.loads(out)["outside"] == 1
    refused(graphveil("privatize", table, "--out", tmp_path / "b.csv", *flags, "--on-outside", "raise"), "0..0.6")
    assert list(tmp_path.glob("*b.csv*")) == []


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--features-epsilon", "0"), "epsilon must be positive"),
        (("--features-epsilon", "-1"), "epsilon must be positive"),
        (("--features-epsilon", "open"), "raw"),
        (("--features-epsilon", "99"), "raw"),
        (("--labels-epsilon", "1"), "--classes"),
        (("--labels-epsilon", "1", "--label", "grupo", "--classes", "3"), "grupo"),
        (("--labels-epsilon", "1", "--label", "group", "--classes", "2"), "0..1"),
        (("--features-epsilon", "1"), "not numeric"),
        (("--features-epsilon", "1", "--features", "word_*"), "no feature column"),
        (("--features-epsilon", "1", "--features", "age", "--mechanism", "magic"), "magic"),
        (("--features-epsilon", "1", "--range", "1..0"), "--range"),
        (("--edges-epsilon", "raw"), "--contacts"),
        (("--edges-epsilon", "1"), "--broadcast"),
        (("--edges-epsilon", "0"), "epsilon must be positive"),
        (("--edges-epsilon", "-2"), "epsilon must be positive"),
        (("--broadcast", "nowhere.csv"), "--broadcast belongs"),
        (("--edges-epsilon", "1", "--contacts", "friends", "--broadcast", "nowhere.csv"), "no such file"),
    ],
)
def test_impossible_requests_are_one_clear_line(graphveil, table, tmp_path, flags, word):
    refused(graphveil("privatize", table, "--out", tmp_path / "r.csv", *flags), word)
    assert list(tmp_path.glob("*r.csv*")) == []


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (["ann,1,1,0,", "ann,0,0,1,"], "same id"),
        ([], "no records"),
        (["ann,,1,0,"], "non-finite"),
        ([",1,1,0,"], "row 1"),
    ],
)
def test_bad_tables_are_one_clear_line(graphveil, tmp_path, rows, word):
    source = tmp_path / "records.csv"
    source.write_text(HEADER + "".join(row + "\n" for row in rows))
    flags = ("--features-epsilon", 1, "--features", "age")
    refused(graphveil("privatize", source, "--out", tmp_path / "r.parquet", *flags), word)
    assert list(tmp_path.glob("*r.parquet*")) == []


def test_an_unknown_neighbour_is_named(graphveil, tmp_path):
    source, reports = tmp_path / "records.csv", tmp_path / "r.csv"
    source.write_text(HEADER + "ann,1,1,0,zoe\n")
    flags = ("--features-epsilon", 1, "--features", "age", "--edges-epsilon", "raw", "--contacts", "friends")
    graphveil("privatize", source, "--out", reports, *flags)
    refused(graphveil("collect", reports, "--out", tmp_path / "x.npz"), "'ann'", "unknown neighbour")
    (tmp_path / "r.csv.json").unlink()
    refused(graphveil("collect", reports, "--out", tmp_path / "x.npz"), "keep the two together")


def test_memory_holds_one_batch_of_a_long_table(graphveil, tmp_path):
    """200 000 records in row groups of 10 000; the reports are as many, in batches."""
    source = tmp_path / "long.parquet"
    rows = np.random.default_rng(0).random((10_000, 4))
    columns = {f"w{i}": rows[:, i] for i in range(4)}
    schema = pa.schema([("id", pa.int64()), *((name, pa.float64()) for name in columns)])
    with pa.parquet.ParquetWriter(source, schema) as writer:
        for start in range(0, 200_000, 10_000):
            writer.write_batch(pa.record_batch({"id": np.arange(start, start + 10_000), **columns}, schema=schema))
    out = tmp_path / "reports.parquet"
    code, printed, _ = graphveil("privatize", source, "--out", out, "--features-epsilon", 1, "--json")
    assert code == 0 and json.loads(printed)["vertices"] == 200_000
    assert pa.parquet.ParquetFile(out).metadata.num_row_groups > 10


def test_a_graph_file_is_a_table_of_records_too(graphveil, graph_file, tmp_path):
    reports, noisy = tmp_path / "reports.parquet", tmp_path / "noisy.npz"
    budgets = ("--features-epsilon", 2, "--labels-epsilon", 1, "--edges-epsilon", "raw", "--range", "-10..10")
    code, out, _ = graphveil("privatize", graph_file, "--out", reports, *budgets, "--json")
    clean = read_npz(graph_file)
    assert code == 0 and json.loads(out)["vertices"] == clean.num_nodes
    assert graphveil("collect", reports, "--out", noisy)[0] == 0
    data = read_npz(noisy)
    arcs = {tuple(pair) for pair in data.edge_index.T.tolist()}  # ids are numbers: slots are in their order
    assert arcs == {tuple(pair) for pair in clean.edge_index.T.tolist() if pair[0] != pair[1]}
    assert (data.y >= 0).sum() == (clean.y >= 0).sum()


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_folder_is_randomised_block_by_block_like_the_graph_in_it(graphveil, graph_file, tmp_path, blocks):
    """Sent raw, so that records can be compared; contacts are told by their ids."""
    budgets = ("--features-epsilon", "raw", "--labels-epsilon", "raw", "--edges-epsilon", "raw")
    graph = validate(read_npz(graph_file))
    names = np.array([f"p{slot:03d}" for slot in range(graph.nodes)])
    save_folder(replace(graph, ids=names), tmp_path / "named", blocks)
    save_folder(graph, tmp_path / "bare", blocks)
    tables = []
    for source in (graph_file, tmp_path / "bare", tmp_path / "named"):
        kept = ("--memory", tmp_path / f"memory of {source.name}", "--classes", 3)
        out = tmp_path / f"{source.name}.parquet"
        assert graphveil("privatize", source, "--out", out, *budgets, *kept)[0] == 0
        tables.append(pa.parquet.read_table(out).to_pydict())
    of_file, bare, named = tables
    assert bare.keys() == of_file.keys() and bare["id"] == of_file["id"] and bare["label"] == of_file["label"]
    numbers = [name for name in of_file if name not in ("id", "label", "contacts")]
    assert numbers and all(np.allclose(bare[name], of_file[name], atol=1e-5) for name in numbers)  # float32 in folders
    assert [sorted(row.split()) for row in bare["contacts"]] == [sorted(row.split()) for row in of_file["contacts"]]
    assert named["id"] == names.tolist()
    assert [[names[int(slot)] for slot in row.split()] for row in bare["contacts"]] == [
        row.split() for row in named["contacts"]
    ]


def test_reports_of_a_folder_are_those_of_the_graph_with_the_same_coins(graphveil, graph_file, tmp_path):
    save_folder(validate(read_npz(graph_file)), tmp_path / "folder", 1)
    budgets = ("--labels-epsilon", 1, "--classes", 3, "--seed", 4)
    found = []
    for source in (graph_file, tmp_path / "folder"):
        out = tmp_path / f"{source.name}.parquet"
        assert graphveil("privatize", source, "--out", out, *budgets, "--memory", tmp_path / source.stem)[0] == 0
        found.append(pa.parquet.read_table(out))
    assert found[0].equals(found[1])


EDGES = ("--edges-epsilon", 4, "--contacts", "friends")


@pytest.fixture
def broadcast(graphveil, table, tmp_path):
    """After a round of labels: reports, and the public file for the round of edges."""
    reports, heard = tmp_path / "labels.csv", tmp_path / "broadcast.csv"
    flags = ("--labels-epsilon", 2, "--label", "group", "--classes", 3)
    assert graphveil("privatize", table, "--out", reports, *flags)[0] == 0
    code, _, _ = graphveil("collect", reports, "--out", tmp_path / "labels.npz", "--broadcast", heard)
    assert code == 0 and heard.read_text().splitlines()[0].replace('"', "") == "id,bin"
    return heard


@pytest.mark.parametrize(("mechanism", "edge"), [("histogram", 8.0), ("bucket", 4.0), ("list", 4.0)])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_round_of_edges_after_a_round_of_labels(graphveil, table, tmp_path, broadcast, mechanism, edge, suffix):
    reports, noisy = tmp_path / f"edges.{suffix}", tmp_path / "noisy.npz"
    flags = (*EDGES, "--edge-mechanism", mechanism, "--broadcast", broadcast, "--json")
    code, out, err = graphveil("privatize", table, "--out", reports, *flags)
    assert code == 0, err
    assert json.loads(out)["epsilon"] == pytest.approx(4.0, abs=1e-6) and json.loads(out)["raw"] == []
    assert "friends" not in reports.with_name(reports.name + ".json").read_text()
    code, out, err = graphveil("collect", tmp_path / "labels.csv", reports, "--out", noisy, "--json")
    assert code == 0, err
    body = json.loads(out)
    assert body["holds"] and body["epsilon"] == pytest.approx(6.0, abs=1e-6)
    certificate = json.loads((tmp_path / "noisy.json").read_text())
    assert certificate["costs"]["list entry"] == pytest.approx(4.0, abs=1e-6)
    assert certificate["costs"]["edge"] == pytest.approx(edge, abs=1e-6)
    data = read_npz(noisy)
    assert data.num_nodes == 4 and (data.y >= 0).sum() == 3
    if mechanism == "histogram":
        assert data.x.shape == (4, 4) and data.edge_index.shape[1] == 0  # counts of three classes and of 'no label'
    elif mechanism == "bucket":
        assert data.edge_index.shape[1] <= 3  # one report per undirected edge, however many


def test_noisy_histograms_count_the_released_labels_of_contacts(graphveil, tmp_path):
    """2 000 people who all know the same three; the mean of a noisy count is its truth within six sigma (2e-9)."""
    names = [f"p{i}" for i in range(2000)]
    source, heard, reports = tmp_path / "r.csv", tmp_path / "b.csv", tmp_path / "e.parquet"
    source.write_text("id,friends\n" + "".join(f"{n},p0 p1  p2 p1 {n}\n" for n in names))  # twice, and oneself
    heard.write_text("id,bin\n" + "".join(f"{n},{i % 2}\n" for i, n in enumerate(names)))
    flags = ("--edges-epsilon", 1, "--contacts", "friends", "--broadcast", heard)
    assert graphveil("privatize", source, "--out", reports, *flags)[0] == 0
    table = pa.parquet.read_table(reports)
    counts = np.column_stack([table["h0"].to_numpy(), table["h1"].to_numpy()])[3:]
    assert np.all(np.abs(counts.mean(axis=0) - [2, 1]) < 6 * np.sqrt(8 / len(counts)))


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("ann,0,0,0,bob zoe", "'ann' lists somebody, who is not"),
        ("zoe,0,0,0,bob", "zoe"),
        ("ann,0,0,0,bob\nann,0,0,0,", "same id"),
    ],
)
@pytest.mark.parametrize("mechanism", ["histogram", "bucket", "list"])
def test_unknown_people_and_records_that_come_twice_are_one_clear_line(
    graphveil, tmp_path, broadcast, row, word, mechanism
):
    source = tmp_path / "others.csv"
    source.write_text(HEADER + row + "\n")
    flags = (*EDGES, "--broadcast", broadcast, "--edge-mechanism", mechanism)
    refused(graphveil("privatize", source, "--out", tmp_path / "r.csv", *flags), word)
    assert list(tmp_path.glob("*r.csv*")) == []


def test_a_holder_without_vertices_is_refused_for_edges_too(graphveil, tmp_path, broadcast):
    source = tmp_path / "empty.csv"
    source.write_text(HEADER)
    refused(graphveil("privatize", source, "--out", tmp_path / "r.csv", *EDGES, "--broadcast", broadcast), "no records")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("id,bin\n", "nobody"),
        ("name,bin\nann,0\n", "id,bin"),
        ("id,bin\nann,0\nann,1\n", "twice"),
        ("id,bin\nann,-1\n", "from 0"),
    ],
)
def test_bad_broadcasts_are_one_clear_line(graphveil, table, tmp_path, text, word):
    heard = tmp_path / "b.csv"
    heard.write_text(text)
    refused(graphveil("privatize", table, "--out", tmp_path / "r.csv", *EDGES, "--broadcast", heard), word)


def test_reports_that_heard_different_broadcasts_are_not_merged(graphveil, table, tmp_path, broadcast):
    other = tmp_path / "other.csv"
    other.write_text(
        "id,bin\n" + "".join(f"{n},{b}\n" for n, b in zip(("ann", "bob", "cid", "dan"), (3, 2, 1, 0), strict=True))
    )
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for file, heard in zip(files, (broadcast, other), strict=True):
        flags = (*EDGES, "--broadcast", heard, "--memory", file.with_suffix(""))
        assert graphveil("privatize", table, "--out", file, *flags)[0] == 0
    refused(graphveil("collect", *files, "--out", tmp_path / "x.npz"), "another promise")


def test_a_broadcast_needs_labels(graphveil, table, tmp_path):
    reports = tmp_path / "f.csv"
    graphveil("privatize", table, "--out", reports, "--features-epsilon", 1, "--features", "age")
    flags = ("--out", tmp_path / "x.npz", "--broadcast", tmp_path / "b.csv")
    refused(graphveil("collect", reports, *flags), "labels")
    assert not (tmp_path / "b.csv").exists()


def test_contacts_with_an_epsilon_are_never_passed_on(table):
    """Whoever builds the job in Python without a randomizer for edges gets an error, not raw lists."""
    from graphveil.errors import InputError
    from graphveil.exchange.privatizer import Privatizer
    from graphveil.exchange.records import Records
    from graphveil.graph.formats.tables import TableFile
    from graphveil.privacy.local import Local

    with pytest.raises(InputError, match="broadcast"):
        Privatizer(Records(TableFile(table), contacts="friends"), Local("withheld", "withheld", 1.0), ())


def test_two_files_of_one_holder_count_together(graphveil, table, tmp_path):
    more = tmp_path / "more.csv"
    more.write_text(HEADER + "eve,0.5,0.5,1,\n")
    files = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
    flags = (*FLAGS[:4], "--label", "group", "--classes", 3, "--features", "age", "--features", "height")
    for file, source in zip(files, (table, more), strict=True):
        assert graphveil("privatize", source, "--out", file, *flags)[0] == 0
    assert graphveil("collect", *files, "--out", tmp_path / "all.npz")[0] == 0
    assert json.loads((tmp_path / "all.json").read_text())["holders"]["all"]["vertices"] == 5


def test_a_graph_file_without_a_declared_number_of_classes_needs_one(graphveil, tmp_path):
    """Counting classes from the labels would let one person's label decide the alphabet of everybody's reports."""
    path = tmp_path / "graph.npz"
    rows = {
        "x_indptr": np.arange(4),
        "x_indices": np.arange(3),
        "x_shape": np.array([3, 3]),
        "x_binary": np.array(True),
    }
    np.savez(path, edge_index=np.array([[0, 1], [1, 2]]), y=np.array([0, 1, 4]), **rows)
    flags = ("--labels-epsilon", 1, "--out", tmp_path / "reports.csv")
    refused(graphveil("privatize", path, *flags), "--classes")
    assert graphveil("privatize", path, *flags, "--classes", 6)[0] == 0
