"""``graphveil import``: from tables on disk to a file that ``train`` reads."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphveil.cli.app import main
from graphveil.graph import read_npz

NODES = "id,age,sex,group\nann,30,f,a\nbob,60,m,b\ncat,0,x,\n"
DECLARED = ("--label", "group=a|b", "--features", "age=0..120,sex=f|m|x")


def run(
    capsys: pytest.CaptureFixture[str], folder: Path, edges: bytes, nodes: bytes, *more: str
) -> tuple[int, str, str]:
    (folder / "edges.csv").write_bytes(edges)
    (folder / "nodes.csv").write_bytes(nodes)
    (folder / "my.npz").unlink(missing_ok=True)
    arguments = ["--edges", str(folder / "edges.csv"), "--nodes", str(folder / "nodes.csv"), "--id", "id"]
    with pytest.raises(SystemExit) as stop:
        main(["import", *arguments, "--out", str(folder / "my.npz"), *more])
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err.strip()


def test_an_import_prints_what_came_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, tmp_path, b"from,to\nann,bob\nbob,cat\n", NODES.encode(), *DECLARED, "--json")
    body = json.loads(out)
    assert (code, err) == (0, "")
    assert [body[key] for key in ("nodes", "edges", "features", "classes", "unlabelled")] == [3, 2, 4, 2, 1]
    assert read_npz(tmp_path / "my.npz").y.tolist() == [0, 1, -1]
    code, out, _ = run(capsys, tmp_path, b"from,to\nann,bob\n", NODES.encode(), *DECLARED)
    assert code == 0 and out.startswith("3 nodes, 1 edges, 4 features, 2 classes (1 nodes without label)")


def test_inferred_columns_warn_and_are_recorded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ("--label", "group", "--features", "age")
    code, out, err = run(capsys, tmp_path, b"from,to\nann,bob\n", NODES.encode(), *options)
    assert code == 0 and err.count("graphveil: warning:") == 2 and out.count("assumption:") == 2
    assert len(read_npz(tmp_path / "my.npz").notes) == 2


def test_duplicates_and_self_loops_are_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, tmp_path, b"from,to\nann,bob\nbob,ann\ncat,cat\n", NODES.encode(), *DECLARED)
    assert code == 0 and "removed 1 duplicate edges" in err and "1 self-loops" in err


def test_a_headerless_list_with_another_delimiter(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n")
    with pytest.raises(SystemExit) as stop:
        main(["import", "--edges", str(tmp_path / "edges.txt"), "--no-header", "--delimiter", " ", "--directed"]
             + ["--out", str(tmp_path / "my.npz"), "--json"])  # fmt: skip
    assert not stop.value.code and json.loads(capsys.readouterr().out)["edges"] == 2
    assert read_npz(tmp_path / "my.npz").edge_index.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--on-missing", "guess"), "give raise or zero"),
        (("--out", "my.csv"), "ends in .npz"),
        (("--features", "age=9..1"), "LOW must be below HIGH"),
        (("--delimiter", "::"), "give one character"),
        (("--edges", "nowhere.csv"), "there is no such file"),
        (("--colour",), "No such option"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    code, out, err = run(capsys, tmp_path, b"from,to\nann,bob\n", NODES.encode(), *more)
    assert code == 2 and out == "" and message in err and "\n" not in err and "Traceback" not in err
    assert not (tmp_path / "my.npz").exists()


rows = st.lists(
    st.sampled_from(["ann,bob", "bob,ann", "cat,cat", "1,2", ",", "ann", "a,b,c", '"ann', "NaN,ann", "é,ann", ""])
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edges=rows,
    header=st.sampled_from(["from,to\n", "", "x\n"]),
    encoding=st.sampled_from(["utf-8", "latin-1", "utf-16"]),
)
def test_malformed_tables_end_in_a_file_or_in_one_line_with_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, edges: list[str], header: str, encoding: str
) -> None:
    code, _, err = run(capsys, tmp_path, (header + "\n".join(edges)).encode(encoding), NODES.encode(), *DECLARED)
    assert "Traceback" not in err
    if code == 0:
        assert read_npz(tmp_path / "my.npz").num_nodes == 3
    else:
        assert code == 2 and err.count("graphveil: error: ") == 1 and "\n" not in err
        assert not (tmp_path / "my.npz").exists()


def tables(folder, mark=",", header=True, ending="csv"):
    people = [("id", "kind", "age", "town"), *((f"p{n}", "ab"[n % 2], 20 + n, "x") for n in range(6))]
    edges = [*([("payer", "payee", "amount")] if header else []), *((f"p{n}", f"p{n + 1}", 10 * n) for n in range(5))]
    for name, rows in (("people", people), ("edges", edges)):
        (folder / f"{name}.{ending}").write_text("".join(mark.join(map(str, row)) + "\n" for row in rows))
    flags = ("--label", "kind=a|b", "--features", "age=0..100", "--out", folder / "graph.npz")
    return ("import", "--edges", folder / f"edges.{ending}", "--nodes", folder / f"people.{ending}", *flags)


@pytest.mark.parametrize(("mark", "said"), [(",", ""), (";", "semicolons"), ("|", "bars"), ("\t", "tabs")])
def test_delimiters_are_found_and_said(graphveil, tmp_path, mark, said):
    code, out, err = graphveil(*tables(tmp_path, mark))
    assert code == 0, err
    assert (
        "6 nodes, 5 edges, 1 features, 2 classes" in out and (said in out) and ("between columns" in out) == bool(said)
    )


def test_columns_that_are_not_used_are_listed(graphveil, tmp_path):
    out = graphveil(*tables(tmp_path))[1]
    assert "not used, columns of edges.csv: amount: a contact is there or not, weights are not used" in out
    assert "not used, columns of people.csv: town" in out
    body = json.loads(graphveil(*tables(tmp_path), "--json")[1])
    assert len(body["unused"]) == 2 and body["assumed"] == []


def test_a_first_line_of_numbers_is_no_header(graphveil, tmp_path):
    (tmp_path / "edges.csv").write_text("0,1\n1,2\n2,3\n")
    code, out, _ = graphveil("import", "--edges", tmp_path / "edges.csv", "--out", tmp_path / "g.npz")
    assert code == 0 and "4 nodes, 3 edges" in out and "no line with the names of the columns" in out
    out = graphveil("import", "--edges", tmp_path / "edges.csv", "--out", tmp_path / "g.npz", "--header")[1]
    assert "3 nodes, 2 edges" in out and "no line with" not in out


def test_ids_are_saved_as_the_ending_says(graphveil, tmp_path):
    asked = tables(tmp_path)
    for ending in ("csv", "parquet"):
        assert graphveil(*asked, "--save-ids", tmp_path / f"ids.{ending}")[0] == 0
    named = pq.read_table(tmp_path / "ids.parquet").to_pydict()
    lines = (tmp_path / "ids.csv").read_text().splitlines()
    assert [line.split(",")[1].strip('"') for line in lines[1:]] == named["id"] == [f"p{n}" for n in range(6)]
    code, _, err = graphveil(*asked, "--save-ids", tmp_path / "ids.xlsx")
    assert code == 2 and "--save-ids writes .csv or .parquet" in err
