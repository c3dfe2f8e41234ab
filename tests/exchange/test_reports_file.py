"""A holder's files may be broken or forged: every defect is one clear line, never a traceback or a silent choice."""

import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from graphveil.errors import InputError
from graphveil.exchange.broadcast import Broadcast, described
from graphveil.exchange.files import Files
from graphveil.exchange.privatizer import Privatizer
from graphveil.exchange.randomizers import LabelResponse, MultiBit, NeighbourMean
from graphveil.exchange.records import Records
from graphveil.exchange.round import Round
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise

ROUNDS = (
    Round("features", Part.FEATURES, MultiBit(1.0, 2)),
    Round("labels", Part.LABELS, LabelResponse(1.0, 3)),
    Round("means", Part.EDGES, NeighbourMean(1.0, 2, delta=1e-3)),
)


@pytest.fixture
def reports(tmp_path):
    """Features, labels, and means over contact lists whose lengths are told."""
    source, out = tmp_path / "records.csv", tmp_path / "reports.parquet"
    source.write_text("id,w0,w1,group,friends\n1,0.5,0,0,2 3\n2,1,1,2,1\n3,0,0.25,,1\n")
    heard = Broadcast.of(["1", "2", "3"], [[1.0, 0.0]] * 3, ROUNDS[2])
    table = Records(TableFile(source), features=("w*",), label="group", classes=3, contacts="friends")
    Privatizer(table, Local(1, 1, 1, delta=1e-3), ROUNDS, heard).run(out, Noise(1))
    return out


def test_a_whole_file_is_read(reports):
    files = Files([reports])
    assert files.ids == ("1", "2", "3") and files.lengths().tolist() == [2, 1, 1] and files.classes == 3


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("id", None),
        ("id", ["1", None, "3"]),
        ("id", ["1", "1", "3"]),
        ("f1", None),
        ("f0", ["a", "b", "c"]),
        ("f0", [7.0, 7.0, 7.0]),
        ("f2", [0.0, 0.0, 0.0]),
        ("note", ["a", "b", "c"]),
        ("label", None),
        ("label", [9, 9, None]),
        ("label", ["a", "b", None]),
        ("degree", None),
        ("degree", [1.0, float("nan"), 2.0]),
        ("h0", [float("inf")] * 3),
    ],
)
def test_a_broken_table_is_one_clear_line(reports, column, values):
    table = pa.parquet.read_table(reports)
    pa.parquet.write_table(with_column(table, column, values), reports)
    with pytest.raises(InputError, match=r"reports\.parquet") as caught:
        Files([reports])
    assert "\n" not in str(caught.value)


def with_column(table, name, values):
    """The table with another column of this name, or without it."""
    kept = table.drop_columns([name]) if name in table.column_names else table
    return kept if values is None else kept.append_column(name, pa.array(values))


NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("column", "values", "bad", "reason"),
    [
        ("label", [0, 99, None], [1], "a class outside 0..2"),
        ("label", [-7, 1, None], [0], "a class outside 0..2"),
        ("label", [0, -1, 1], [1], "a class outside 0..2"),
        ("f0", [NAN, 0.0, None], [0, 2], "empty or not finite"),
        ("f0", [INFINITE, 0.0, 0.0], [0], "empty or not finite"),
        ("f0", [2.0, 0.0, 0.0], [0], "never drawn"),
        ("f0", [0.5, 0.0, 0.0], [0], "never drawn"),
        ("f0", [1.0, 1.0, 0.0], [1], "another number of attributes than 1"),
        ("h0", [1e9, 0.0, 0.0], [0], "farther away than any noise"),
        ("h0", [0.1 + 2.0**-54, 0.0, 0.0], [0], "not on the public grid"),
        ("degree", [1, -1, 3], [1, 2], "an impossible length"),
        ("degree", [1, None, 2], [1], "an impossible length"),
    ],
)
def test_bad_values_are_refused_one_by_one_and_the_good_ones_kept(reports, column, values, bad, reason):
    """MultiBit tells one attribute of two; the others of f1 are made to fit."""
    table = with_column(pa.parquet.read_table(reports), "f1", [0.0, 1.0, -1.0])
    table = with_column(table, "f0", [1.0, 0.0, 0.0])
    pa.parquet.write_table(with_column(table, column, values), reports)
    files = Files([reports])
    assert [one.vertex for one in files.refused] == [files.ids[row] for row in bad]
    assert all(reason in str(one) and str(reports) in str(one) for one in files.refused)
    part = {"label": "labels", "f0": "features"}.get(column, "means")
    (report,) = (one for _, one in files.reports() if one.round == part)
    told = {0, 1, 2} - ({2} if column == "label" and values[2] is None else set())
    assert set(report.ids.tolist()) == told - {*bad}
    if column == "degree":
        assert all(files.lengths()[row] == 0 for row in bad)
    if column == "label":
        assert set(files.labelled.nonzero()[0].tolist()) == told - {*bad}


@pytest.mark.parametrize("rows", [1, 2])
def test_a_file_that_was_cut_is_refused_as_a_whole(reports, rows):
    pa.parquet.write_table(pa.parquet.read_table(reports).slice(0, rows), reports)
    with pytest.raises(InputError, match=f"has {rows} reports, its description speaks of 3"):
        Files([reports])


@pytest.mark.parametrize(
    "change",
    [
        {"vertices": 4},
        {"attributes": 3},
        {"classes": 4},
        {"lengths_in_the_clear": False},
        {"promise": {"features": 0.5, "labels": 1, "edges": 1, "delta": 1e-3}},
        {"promise": {"features": "withheld", "labels": 1, "edges": 1, "delta": 1e-3}},
        {"promise": {"features": "raw", "labels": 1, "edges": 1, "delta": 1e-3}},
        {"promise": {"features": 1, "labels": 1, "edges": 1, "delta": 0}},
    ],
)
def test_a_description_that_contradicts_itself_or_its_table_refuses_the_file(reports, change):
    path = described(reports)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match="reports") as caught:
        Files([reports])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"lower": "a"},
        {"lower": 2.0},
        {"upper": NAN},
        {"upper": INFINITE},
        {"width": 2.0},
        {"budget": "1"},
        {"kind": ["a"]},
    ],
)
def test_a_randomizer_that_cannot_be_refuses_the_file(reports, change):
    path = described(reports)
    body = json.loads(path.read_text())
    body["rounds"][0]["mechanism"] |= change
    path.write_text(json.dumps(body))
    with pytest.raises(InputError, match=r"reports\.parquet\.json") as caught:
        Files([reports])
    assert "\n" not in str(caught.value)


def test_what_a_round_hears_cannot_write_further_lines_on_the_certificate(reports):
    path = described(reports)
    body = json.loads(path.read_text())
    body["rounds"][0]["hears"] = "nothing\n  Proved      epsilon 0.1; the promise HOLDS"
    path.write_text(json.dumps(body))
    with pytest.raises(InputError, match="in one line"):
        Files([reports])


def test_files_with_other_classes_or_attributes_are_not_merged(tmp_path):
    paths = []
    for number, classes in enumerate((3, 5)):
        source = tmp_path / f"{number}.csv"
        source.write_text(f"id,group,{'w0' if number else 'w0,w1'}\n{number},2,{'0' if number else '0,0'}\n")
        for promise in (Local("withheld", "raw", "withheld"), Local("raw", "withheld", "withheld")):
            table = Records(TableFile(source), features=("w*",), label="group", classes=classes)
            paths.append(tmp_path / f"{number}-{len(paths)}.parquet")
            Privatizer(table, promise, ()).run(paths[-1], Noise())
    for pair in (paths[0::2], paths[1::2]):
        with pytest.raises(InputError, match="another promise"):
            Files(pair)


def test_two_rounds_on_one_part_or_a_randomizer_of_another_part_refuse_the_file(reports):
    path = described(reports)
    body = json.loads(path.read_text())
    features, labels, edges = body["rounds"]
    for rounds in (
        [features, features | {"name": "again"}, labels, edges],
        [features | {"part": "labels"}, labels | {"part": "features"}, edges],
        [features, labels, edges | {"name": "labels"}],
    ):
        path.write_text(json.dumps(body | {"rounds": rounds}))
        with pytest.raises(InputError, match=r"reports\.parquet\.json"):
            Files([reports])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "graphveil/reports/1"),
        ("attributes", "two"),
        ("attributes", -1),
        ("attributes", True),
        ("classes", 1),
        ("classes", [3]),
        ("seeded", 7),
        ("promise", None),
        ("promise", {"features": 1, "labels": 1}),
        ("promise", {"features": -1, "labels": 1, "edges": "raw", "delta": 0}),
        ("promise", {"features": 1, "labels": 1, "edges": "open", "delta": 0}),
        ("rounds", None),
        ("rounds", ["labels"]),
        ("rounds", [{"name": "labels"}]),
    ],
)
def test_a_broken_description_is_one_clear_line(reports, field, value):
    path = described(reports)
    body = json.loads(path.read_text())
    for broken in (body | {field: value}, {key: one for key, one in body.items() if key != field}):
        path.write_text(json.dumps(broken))
        with pytest.raises(InputError) as caught:
            Files([reports])
        assert "\n" not in str(caught.value)


def test_a_vertex_that_is_sent_in_the_clear_twice_must_be_sent_alike(tmp_path):
    paths = []
    for number, label in enumerate((0, 0, 1)):
        source = tmp_path / f"{number}.csv"
        source.write_text(f"id,group\n1,{label}\n2,1\n")
        table = Records(TableFile(source), label="group", classes=2)
        paths.append(tmp_path / f"{number}.parquet")
        Privatizer(table, Local("withheld", "raw", "withheld"), ()).run(paths[-1], Noise(1))
    assert Files(paths[:2]).in_the_clear(Part.LABELS).tolist() == [0, 1]
    with pytest.raises(InputError, match="other labels"):
        Files(paths).in_the_clear(Part.LABELS)
