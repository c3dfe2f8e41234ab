"""Own tables: declared columns, string identifiers, repairs, and one line for everything that is wrong."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphveil.graph.formats.tables as tables
from graphveil.errors import DataWarning, InputError
from graphveil.graph import load_dataset, read_npz
from graphveil.graph.formats.columns import Column, parse_column, parse_columns
from graphveil.graph.formats.importing import Imported, ImportPlan, import_graph
from graphveil.graph.formats.tables import TableFile
from graphveil.graph.validate import validate

NODES = "id,age,sex,city,group\nann,30,f,Rom,a\nbob,60,m,Oslo,b\ncat,0,x,Rom,\ndan,120,m,Bern,a\n"
EDGES = "from,to\nann,bob\nbob,cat\ncat,ann\n"


def write(folder: Path, name: str, text: str | bytes) -> TableFile:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return TableFile(path)


def run(
    folder: Path,
    edges: str | bytes = EDGES,
    nodes: str | bytes | None = NODES,
    label: str | None = "group=a|b",
    features: Sequence[str] = ("age=0..120", "sex=f|m|x"),
    **options: object,
) -> Imported:
    plan = ImportPlan(
        edges=write(folder, "edges.csv", edges),
        nodes=None if nodes is None else write(folder, "nodes.csv", nodes),
        label=None if label is None or nodes is None else parse_column(label),
        features=parse_columns(features) if nodes is not None else (),
        **options,
    )
    return import_graph(plan, folder / "out.npz")


def test_tables_become_a_graph_with_declared_columns(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(tmp_path)
    sizes = {"nodes": 4, "edges": 3, "features": 4, "classes": 2, "unlabelled": 1}
    unused = ("not used, columns of nodes.csv: city",)
    assert result == Imported(**sizes, duplicates=0, self_loops=0, unknown=0, notes=(), unused=unused)
    data = read_npz(tmp_path / "out.npz")
    assert data.x.tolist() == [[0.25, 1, 0, 0], [0.5, 0, 1, 0], [0, 0, 0, 1], [1, 0, 1, 0]]
    assert data.y.tolist() == [0, 1, -1, 0] and data.num_classes == 2 and not data.directed
    assert data.feature_names == ["age", "sex=f", "sex=m", "sex=x"] and data.class_names == ["a", "b"]
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]
    loaded = load_dataset(tmp_path / "out.npz", seed=1)
    with pytest.warns(DataWarning, match="unlabelled"):
        assert validate(loaded).notes == ()


def test_what_is_inferred_warns_and_is_recorded_without_its_values(tmp_path: Path) -> None:
    with pytest.warns(DataWarning) as caught:
        result = run(tmp_path, label="group", features=["age", "city"])
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 3 and any("age=LOW..HIGH" in message for message in messages)
    assert not any("120" in message or "Oslo" in message for message in messages)
    data = read_npz(tmp_path / "out.npz")
    assert data.notes == result.notes and len(data.notes) == 3
    assert not any("120" in note or "Oslo" in note for note in data.notes)
    assert data.feature_names == ["age", "city=Bern", "city=Oslo", "city=Rom"]
    with pytest.warns(DataWarning):
        assert set(data.notes) <= set(validate(load_dataset(tmp_path / "out.npz")).notes)


def test_numeric_classes_are_sorted_by_number_and_declared_by_a_range(tmp_path: Path) -> None:
    nodes = "id,year\na,10\nb,9\nc,\n"
    with pytest.warns(DataWarning, match="list of classes"):
        run(tmp_path, "s,t\na,b\n", nodes, "year", [])
    assert read_npz(tmp_path / "out.npz").class_names == ["9", "10"]
    run(tmp_path, "s,t\na,b\n", nodes, "year=8..10", [])
    data = read_npz(tmp_path / "out.npz")
    assert data.y.tolist() == [2, 1, -1] and data.num_classes == 3
    with pytest.raises(InputError, match="declare its classes"):
        run(tmp_path, "s,t\na,b\n", nodes, "year=8.5..10", [])


def test_directed_tables_keep_their_arcs(tmp_path: Path) -> None:
    with pytest.warns(DataWarning, match="removed 1 duplicate edges and 1 self-loops"):
        result = run(tmp_path, "s,t\nann,bob\nbob,ann\nann,bob\ncat,cat\n", directed=True)
    data = read_npz(tmp_path / "out.npz")
    assert data.directed and data.edge_index.tolist() == [[0, 1], [1, 0]] and result.edges == 2


def test_duplicates_both_directions_and_self_loops_are_removed_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(
        DataWarning, match=r"removed 2 duplicate edges \(an edge listed in both directions .* and 1 self-loops"
    ):
        result = run(tmp_path, "s,t\nann,bob\nbob,ann\nann,bob\ncat,cat\n")
    assert (result.edges, result.duplicates, result.self_loops) == (1, 2, 1)


def test_an_edge_table_alone_makes_its_nodes_and_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "s,t\nx7,x1\nx1,NA\n", nodes=None)
    assert (result.nodes, result.edges, result.features, result.classes) == (3, 2, 0, 0)
    assert "read off the data" in result.notes[0]
    assert read_npz(tmp_path / "out.npz").edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_parquet_tsv_and_csv_give_the_same_graph(tmp_path: Path) -> None:
    run(tmp_path)
    wanted = (tmp_path / "out.npz").read_bytes()
    nodes = pa.table(
        {
            "id": ["ann", "bob", "cat", "dan"],
            "age": pa.array([30, 60, 0, 120], pa.int16()),
            "sex": pa.array(["f", "m", "x", "m"]).dictionary_encode(),
            "group": ["a", "b", None, "a"],
        }
    )
    pq.write_table(nodes, tmp_path / "nodes.parquet")
    pq.write_table(pa.table({"from": ["ann", "bob", "cat"], "to": ["bob", "cat", "ann"]}), tmp_path / "edges.parquet")
    plan = ImportPlan(
        edges=TableFile(tmp_path / "edges.parquet"),
        nodes=TableFile(tmp_path / "nodes.parquet"),
        label=parse_column("group=a|b"),
        features=parse_columns(["age=0..120,sex=f|m|x"]),
    )
    import_graph(plan, tmp_path / "parquet.npz")
    assert (tmp_path / "parquet.npz").read_bytes() == wanted
    write(tmp_path, "nodes.tsv", NODES.replace(",", "\t"))
    write(tmp_path, "edges.tsv", EDGES.replace(",", "\t"))
    other = ImportPlan(
        edges=TableFile(tmp_path / "edges.tsv"),
        nodes=TableFile(tmp_path / "nodes.tsv"),
        label=plan.label,
        features=plan.features,
    )
    import_graph(other, tmp_path / "tsv.npz")
    assert (tmp_path / "tsv.npz").read_bytes() == wanted


def test_integer_and_text_identifiers_name_the_same_node(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [7, 8]}), tmp_path / "nodes.parquet")
    plan = ImportPlan(edges=write(tmp_path, "edges.csv", "s,t\n7,8\n"), nodes=TableFile(tmp_path / "nodes.parquet"))
    assert import_graph(plan, tmp_path / "out.npz").edges == 1
    pq.write_table(pa.table({"id": [7.0, 8.0]}), tmp_path / "nodes.parquet")
    with pytest.raises(InputError, match="identifiers are integers or text"):
        import_graph(plan, tmp_path / "out.npz")


def test_lists_of_numbers_become_as_many_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "v": [[1.0, -2.0], [0.0, 4.0]]}), tmp_path / "nodes.parquet")
    plan = ImportPlan(
        edges=write(tmp_path, "edges.csv", "s,t\na,b\n"),
        nodes=TableFile(tmp_path / "nodes.parquet"),
        features=[parse_column("v=-2..4")],
    )
    import_graph(plan, tmp_path / "out.npz")
    assert read_npz(tmp_path / "out.npz").x.tolist() == [[0.25, -0.5], [0, 1]]
    pq.write_table(pa.table({"id": ["a", "b"], "v": [[1.0], [0.0, 4.0]]}), tmp_path / "nodes.parquet")
    with pytest.raises(InputError, match="lists of different lengths"):
        import_graph(plan, tmp_path / "out.npz")


def test_streaming_in_small_blocks_gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    nodes = "id,age,sex\n" + "".join(f"u{i},{rng.integers(0, 99)},{'fmx'[i % 3]}\n" for i in range(500))
    edges = "s,t\n" + "".join(f"u{a},u{b}\n" for a, b in rng.integers(0, 500, (3000, 2)))
    contents = []
    for size in (tables.BLOCK_BYTES, 1024):
        monkeypatch.setattr(tables, "BLOCK_BYTES", size)
        for with_nodes in (True, False):
            with pytest.warns(DataWarning):
                run(tmp_path, edges, nodes if with_nodes else None, None, ["age=0..99", "sex=f|m|x"])
            contents.append((tmp_path / "out.npz").read_bytes())
    assert contents[:2] == contents[2:]


def test_missing_numbers_are_refused_or_become_zero(tmp_path: Path) -> None:
    nodes = NODES.replace("bob,60", "bob,").replace("dan,120", "dan,NaN")
    with pytest.raises(
        InputError, match=r"column 'age' is empty or NaN in 2 rows, first in row 2: .* --on-missing zero"
    ):
        run(tmp_path, nodes=nodes)
    run(tmp_path, nodes=nodes, zero_missing=True)
    assert read_npz(tmp_path / "out.npz").x[:, 0].tolist() == [0.25, 0, 0, 0]


def test_values_outside_a_range_are_clipped_and_other_categories_need_a_star(tmp_path: Path) -> None:
    nodes = NODES.replace("bob,60,m", "bob,600,q")
    with pytest.raises(InputError, match=r"column 'sex' has 1 values outside its categories, e\.g\. 'q'.* \|\*"):
        run(tmp_path, nodes=nodes)
    run(tmp_path, nodes=nodes, features=["age=0..120", "sex=f|m|x|*"])
    assert read_npz(tmp_path / "out.npz").x[1].tolist() == [1, 0, 0, 0]


def test_unknown_identifiers_are_refused_or_dropped(tmp_path: Path) -> None:
    edges = EDGES + "ann,zoe\n"
    with pytest.raises(InputError, match=r"row 4 names 'zoe', which is no node .* --drop-unknown"):
        run(tmp_path, edges)
    with pytest.warns(DataWarning, match="dropped 1 edges"):
        assert run(tmp_path, edges, drop_unknown=True).edges == 3


def test_identifiers_can_be_saved_for_joining_predictions(tmp_path: Path) -> None:
    plan = ImportPlan(edges=write(tmp_path, "edges.csv", EDGES))
    import_graph(plan, tmp_path / "out.npz", save_ids=tmp_path / "ids.parquet")
    assert pq.read_table(tmp_path / "ids.parquet").to_pydict() == {"node": [0, 1, 2], "id": ["ann", "bob", "cat"]}


MEASURED = """
import sys
from graphveil.cli.app import main
try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code
print(open("/proc/self/status").read(), file=sys.stderr)
"""


def test_a_million_edges_with_text_identifiers_import_within_2_gib(tmp_path: Path) -> None:
    ends = np.random.default_rng(0).integers(0, 200_000, (2, 1_000_000))
    names = pa.array([f"user-{number:08x}" for number in range(200_000)])
    table = pa.table({"from": names.take(pa.array(ends[0])), "to": names.take(pa.array(ends[1]))})
    pyarrow.csv.write_csv(table, tmp_path / "edges.csv")
    command = ["import", "--edges", str(tmp_path / "edges.csv"), "--out", str(tmp_path / "out.npz"), "--json"]
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], check=True, capture_output=True, text=True)
    assert (
        int(done.stderr.split("VmHWM:")[1].split()[0]) < 2 * 2**20
    )  # KiB, of this process and not of whoever started it
    assert (tmp_path / "out.npz").stat().st_size > 1_000_000


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "empty edges": ({"edges": ""}, r"edges\.csv is empty"),
    "one column": ({"edges": "s\na\n"}, r"has one column \('s'\): edges need two; is the delimiter right"),
    "ragged line": ({"edges": "s,t\nann,bob\nann\n"}, r"cannot read .*edges\.csv: CSV parse error"),
    "empty identifier": ({"edges": "s,t\nann,bob\n,bob\n"}, r"column 's' of .* is empty in row 2"),
    "not utf8": (
        {"edges": "s,t\nJos\u00e9,ann\n".encode("latin-1")},
        r"is not text in utf8: convert it, or pass --encoding",
    ),
    "repeated node": ({"nodes": NODES + "ann,1,f,Rom,a\n"}, r"lists 1 identifiers more than once, e\.g\. 'ann'"),
    "text in numbers": ({"nodes": NODES.replace("60", "old")}, r"cannot read .*nodes\.csv: .*conversion error .*'old'"),
    "infinite": ({"nodes": NODES.replace("60", "inf")}, r"column 'age' is infinite in row 2"),
    "unknown column": (
        {"features": ["weight=0..9"]},
        r"nodes\.csv has no column 'weight': it has id, age, sex, city, group",
    ),
    "unknown label": ({"label": "team=a|b"}, r"has no column 'team'"),
    "undeclared class": ({"label": "group=a|c"}, r"column 'group' has 1 values outside its categories, e\.g\. 'b'"),
    "unknown end": ({"source": "origin"}, r"has no column 'origin'"),
    "unknown id": ({"identifier": "name"}, r"has no column 'name'"),
    "no nodes": ({"nodes": "id,age,sex,group\n", "edges": "s,t\n"}, r"nodes\.csv holds no nodes"),
    "same names": ({"edges": "s,s\na,b\n"}, r"two columns of the same name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_every_wrong_table_is_refused_in_one_line_and_nothing_is_written(tmp_path: Path, case: str) -> None:
    options, message = WRONG[case]
    with pytest.raises(InputError, match=message) as caught:
        run(tmp_path, **options)
    assert "\n" not in str(caught.value) and not (tmp_path / "out.npz").exists()


def test_missing_files_and_tables_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.csv: there is no such file"):
        import_graph(ImportPlan(edges=TableFile(tmp_path / "nothing.csv")), tmp_path / "out.npz")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"cannot read .*bad\.parquet"):
        import_graph(ImportPlan(edges=TableFile(tmp_path / "bad.parquet")), tmp_path / "out.npz")
    with pytest.raises(InputError, match="pass --nodes"):
        import_graph(ImportPlan(edges=TableFile(tmp_path / "e.csv"), label=Column("y")), tmp_path / "out.npz")


def test_an_encoding_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_bytes("s,t\nJosé,Ann\n".encode("latin-1"))
    plan = ImportPlan(edges=TableFile(tmp_path / "edges.csv", encoding="latin-1"))
    import_graph(plan, tmp_path / "out.npz", save_ids=tmp_path / "ids.parquet")
    assert pq.read_table(tmp_path / "ids.parquet")["id"].to_pylist() == ["José", "Ann"]
    with pytest.raises(InputError, match="not text in klingon"):
        import_graph(ImportPlan(edges=TableFile(tmp_path / "edges.csv", encoding="klingon")), tmp_path / "out.npz")


def test_patterns_expand_and_leave_identifier_and_label_out(tmp_path: Path) -> None:
    nodes = "id,w1,w2,w_label\na,0,1,x\nb,1,1,y\n"
    run(tmp_path, "s,t\na,b\n", nodes, "w_label=x|y", ["w*=0..1"])
    assert read_npz(tmp_path / "out.npz").feature_names == ["w1", "w2"]


cells = st.sampled_from(
    ["ann", "bob", "cat", "dan", "zoe", "", "NaN", "1", "1.5", "inf", '"', "a,b", "\x00", "é", "-", "f", "\n"]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edges=st.lists(st.lists(cells, min_size=0, max_size=3), max_size=8),
    nodes=st.lists(st.lists(cells, min_size=4, max_size=6), max_size=6),
    encoding=st.sampled_from(["utf-8", "latin-1", "utf-16"]),
    garbage=st.binary(max_size=30),
    place=st.sampled_from(["none", "edges", "nodes"]),
)
def test_malformed_tables_give_a_valid_graph_or_one_line(
    tmp_path: Path, edges: list[list[str]], nodes: list[list[str]], encoding: str, garbage: bytes, place: str
) -> None:
    (tmp_path / "out.npz").unlink(missing_ok=True)
    edge_text = "\n".join([",".join(row) for row in [["from", "to"], *edges]]).encode(encoding)
    node_text = (NODES + "\n".join(",".join(row) for row in nodes)).encode(encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            run(
                tmp_path,
                edge_text + garbage if place == "edges" else edge_text,
                node_text + garbage if place == "nodes" else node_text,
                zero_missing=True,
            )
        except InputError as error:
            assert "\n" not in str(error) and str(error) and not (tmp_path / "out.npz").exists()
        else:
            validate(read_npz(tmp_path / "out.npz"), need_training=False)


def test_reading_parquet_keeps_only_the_current_batch_in_memory(tmp_path):
    rows, names = 1 << 18, [f"c{number}" for number in range(32)]
    path = tmp_path / "wide.parquet"
    column = np.random.default_rng(0).random(rows)
    pq.write_table(pa.table(dict.fromkeys(names, column)), path, row_group_size=1 << 14)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in tables.TableFile(path).batches(names, {})]
    assert max(held) < rows * len(names) * 8 / 2


def test_parquet_text_that_is_no_utf8_is_one_line(tmp_path):
    lengths, letters = pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\x80")
    table = pa.table({"id": pa.StringArray.from_buffers(1, lengths, letters)})
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="is not text in utf8"):
        list(TableFile(tmp_path / "t.parquet").batches(["id"], {}))
