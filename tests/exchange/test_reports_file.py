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
        ("f0", [0.0, float("nan"), 1.0]),
        ("f0", [0.0, None, 1.0]),
        ("f0", ["a", "b", "c"]),
        ("label", None),
        ("label", [0, 3, None]),
        ("label", [0, -7, None]),
        ("label", ["a", "b", None]),
        ("degree", None),
        ("degree", [1, -1, 2]),
        ("degree", [1, None, 2]),
        ("degree", [1.0, float("nan"), 2.0]),
        ("h0", [0.0, float("inf"), 1.0]),
    ],
)
def test_a_broken_table_is_one_clear_line(reports, column, values):
    table = pa.parquet.read_table(reports)
    at = table.column_names.index(column)
    table = table.remove_column(at) if values is None else table.set_column(at, column, pa.array(values))
    pa.parquet.write_table(table, reports)
    with pytest.raises(InputError, match=r"reports\.parquet") as caught:
        Files([reports])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "graphveil/reports/1"),
        ("attributes", "two"),
        ("attributes", -1),
        ("attributes", True),
        ("classes", 1),
        ("classes", [3]),
        ("seed", {}),
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
