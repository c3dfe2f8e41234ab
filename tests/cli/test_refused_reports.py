"""Reports that no client can have made are refused one by one by ``collect`` and ``train --reports``; broken files as a whole."""

import json

import pyarrow as pa
import pyarrow.csv
import pytest

from graphveil.graph import read_npz

PEOPLE = 12
FLAGS = ("--features-epsilon", 1, "--features", "w*", "--labels-epsilon", 3, "--label", "group", "--classes", 3)


@pytest.fixture
def reports(graphveil, tmp_path):
    """Twelve people in a ring, all parts of their records."""
    source, out = tmp_path / "records.csv", tmp_path / "reports.csv"
    rows = [f"{n},0.5,1,{n % 3},{(n + 1) % PEOPLE} {(n - 1) % PEOPLE}" for n in range(PEOPLE)]
    source.write_text("id,w0,w1,group,friends\n" + "\n".join(rows) + "\n")
    assert (
        graphveil("privatize", source, "--out", out, *FLAGS, "--edges-epsilon", "raw", "--contacts", "friends")[0] == 0
    )
    return out


def forge(path, column, changes):
    """Write other values into some cells."""
    types = {"contacts": pa.string(), "id": pa.string()}
    table = pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(column_types=types))
    values = table[column].to_pylist()
    for row, value in changes.items():
        values[row] = value
    pyarrow.csv.write_csv(table.set_column(table.column_names.index(column), column, pa.array(values)), path)


def collected(graphveil, reports, *flags):
    return graphveil("collect", reports, "--out", reports.with_suffix(".npz"), *flags)


BAD = [
    ("label", {2: 99, 5: -7}, "a class outside 0..2"),
    ("f0", {2: float("nan"), 5: float("inf")}, "not finite"),
    ("f0", {2: 0.5, 5: 3.0}, "never drawn"),
    ("contacts", {2: "1 77", 5: "nobody"}, "unknown neighbour"),
]


@pytest.mark.parametrize(("column", "changes", "reason"), BAD)
def test_collect_refuses_bad_values_keeps_the_others_and_prints_the_counts(graphveil, reports, column, changes, reason):
    forge(reports, column, changes)
    code, out, err = collected(graphveil, reports, "--json")
    body = json.loads(out)
    assert code == 0, err
    assert body["accepted"] == 3 * PEOPLE - 2 and body["refused"] == 2 and body["vertices"] == PEOPLE
    assert all(reason in line and reports.name in line for line in body["refusals"])
    assert "'2'" in body["refusals"][0] and "'5'" in body["refusals"][1]
    certificate = json.loads(reports.with_suffix(".json").read_text())
    assert "2 of 36 reports were refused: no client can have made them" in certificate["assumptions"]
    code, out, _ = collected(graphveil, reports)
    assert "34 reports accepted, 2 refused:" in out and reason in out
    labels = read_npz(reports.with_suffix(".npz")).y
    assert (labels[[2, 5]] == -1).all() == (column == "label") and ((labels >= -1) & (labels < 3)).all()


@pytest.mark.parametrize(("column", "changes", "reason"), BAD)
def test_train_refuses_bad_values_too_and_prints_the_counts(graphveil, reports, column, changes, reason):
    forge(reports, column, changes)
    flags = ("train", "lpgnn", "--reports", reports, "--set", "epochs=2")
    code, out, err = graphveil(*flags, "--json")
    assert code == 0, err
    body = json.loads(out)
    assert body["accepted"] == 34 and body["refused"] == 2 and reason in body["refusals"][0]
    assert any("2 of 36 reports were refused" in line for line in body["assumptions"])
    assert "34 reports accepted, 2 refused:" in graphveil(*flags)[1]


def test_counts_are_printed_where_nothing_is_refused(graphveil, reports):
    assert "36 reports accepted, 0 refused\n" in collected(graphveil, reports)[1]


def lines(reports, change):
    reports.write_text("\n".join(change(reports.read_text().splitlines())) + "\n")


def described(reports, change):
    path = reports.with_name(reports.name + ".json")
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))


BROKEN = {
    "a file cut to 5 of 12 rows": (lambda r: lines(r, lambda rows: rows[:6]), "has 5 reports"),
    "a wrong count of vertices": (lambda r: described(r, lambda body: body.update(vertices=13)), "speaks of 13"),
    "no promise": (lambda r: described(r, lambda body: body.pop("promise")), "'promise'"),
    "an extra column": (
        lambda r: lines(r, lambda rows: [rows[0] + ',"f2"', *(row + ",0" for row in rows[1:])]),
        "does not speak of",
    ),
    "another width": (lambda r: described(r, lambda body: body.update(attributes=3)), "not for these features"),
    "only bad reports": (lambda r: forge(r, "label", dict.fromkeys(range(PEOPLE), 7)), "none of its 12 reports"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_as_a_whole_in_one_line(graphveil, reports, name):
    change, word = BROKEN[name]
    change(reports)
    for words in (
        ("collect", reports, "--out", reports.with_suffix(".npz")),
        ("train", "lpgnn", "--reports", reports, "--set", "epochs=2"),
    ):
        code, out, err = graphveil(*words)
        assert code == 2 and out == "" and len(err.strip().splitlines()) == 1, err
        assert word in err and reports.name in err
    assert not reports.with_suffix(".npz").exists()
