"""Report files mutated at random, tables and descriptions: one clear line or a collection, and nothing taken that cannot be."""

import json
from copy import deepcopy

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from graphveil.errors import GraphveilError
from graphveil.exchange.broadcast import Broadcast, described
from graphveil.exchange.collect import collect
from graphveil.exchange.collector import Collector
from graphveil.exchange.files import Files
from graphveil.exchange.privatizer import Privatizer
from graphveil.exchange.randomizers import (
    BucketResponse,
    Contacts,
    Direction,
    EdgeListResponse,
    LabelHistogram,
    LabelResponse,
    LaplaceRows,
    MultiBit,
    NeighbourMean,
    Piecewise,
)
from graphveil.exchange.randomizers.checks import reasons
from graphveil.exchange.records import Records
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise
from tests.fuzz.budget import bounded

NAMES = [str(n) for n in range(6)]
LABELS = Round("labels", Part.LABELS, LabelResponse(1.0, 3))
KINDS = {
    "multi-bit": (MultiBit(1.0, 3), None, None),
    "laplace": (LaplaceRows(1.0, 3), LabelHistogram(1.0, 2), np.arange(6) % 2),
    "piecewise": (Piecewise(1.0, 3), NeighbourMean(1.0, 2, delta=1e-3), np.eye(6)[:, :2]),
    "direction": (Direction(1.0, 3, projected=4), BucketResponse(1.0, 2, owned=False), np.arange(6) % 2),
    "raw": (None, EdgeListResponse(0.5, 6), np.arange(6)),
}


class Originals(dict):
    def __repr__(self):
        return f"originals of {len(self)} kinds"


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """One good file of every kind, as a table and a description."""
    found = Originals()
    for kind, (features, edges, values) in KINDS.items():
        folder = tmp_path_factory.mktemp(kind)
        (folder / "records.csv").write_text(
            "id,w0,w1,w2,group,friends\n"
            + "".join(f"{n},0.5,{n / 6},1,{n % 3 if n else ''},{(n + 1) % 6} {(n + 2) % 6}\n" for n in range(6))
        )
        rounds = [LABELS]
        rounds += [] if features is None else [Round("features", Part.FEATURES, features)]
        rounds += [] if edges is None else [Round("edges", Part.EDGES, edges)]
        heard = None if edges is None else Broadcast.of(NAMES, values, rounds[-1])
        promise = Local("raw" if features is None else 1, 1, "raw" if edges is None else 1, delta=1e-3)
        table = Records(TableFile(folder / "records.csv"), "id", ("w*",), "group", "friends", 3)
        out = folder / "reports.parquet"
        Privatizer(table, promise, tuple(rounds), heard).run(out, Noise())
        assert collect([out]).certificate is not None
        found[kind] = pyarrow.parquet.read_table(out), json.loads(described(out).read_text()), out
    return found


NUMBERS = st.one_of(
    st.integers(-3, 7), st.integers(), st.floats(), st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e300, 2.0**-60])
)
TEXTS = st.one_of(st.sampled_from(["", "1", "1 2", "2 1", "9", "raw", "nan", "0 0"]), st.text(max_size=5))
VALUES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
JSON = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=4
)


@st.composite
def tables(draw, table):
    """The table after a few accidents."""
    for _ in range(draw(st.integers(0, 3))):
        if not table.num_columns:
            return table
        name = draw(st.sampled_from(table.column_names))
        at = table.column_names.index(name)
        match draw(st.sampled_from(["cell", "cell", "cell", "column", "drop", "rename", "more", "cut", "again"])):
            case "cell" if table.num_rows:
                values = table.column(at).to_pylist()
                values[draw(st.integers(0, len(values) - 1))] = draw(VALUES)
                table = _set(table, at, name, values)
            case "column":
                table = _set(table, at, name, draw(st.lists(NUMBERS, min_size=table.num_rows, max_size=table.num_rows)))
            case "drop":
                table = table.remove_column(at)
            case "rename":
                other = draw(st.sampled_from(["id", "f0", "f7", "h0", "label", "degree", "contacts", "x"]))
                table = table.rename_columns([other if n == name else n for n in table.column_names])
            case "more":
                table = table.append_column(
                    draw(st.sampled_from(["f3", "h2", "degree", "contacts", "x"])), table.column(at)
                )
            case "cut":
                table = table.slice(0, draw(st.integers(0, table.num_rows)))
            case "again":
                table = pa.concat_tables([table, table.slice(0, 1)])
    return table


def _set(table, at, name, values):
    try:
        return table.set_column(at, name, pa.array(values))
    except (pa.ArrowException, OverflowError, ValueError):  # values of several types
        return table.set_column(at, name, pa.array([None if one is None else str(one) for one in values]))


@st.composite
def descriptions(draw, body):
    """The description after a few accidents, at any depth."""
    body = deepcopy(body)
    for _ in range(draw(st.integers(0, 3))):
        inside, key = {"": body}, ""
        while isinstance(inside[key], (dict, list)) and inside[key] and (key == "" or draw(st.booleans())):
            inside = inside[key]
            key = draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else list(range(len(inside)))))
        match draw(st.sampled_from(["set", "set", "swap", "drop"])):
            case "set":
                inside[key] = draw(JSON)
            case "swap":
                inside[key] = deepcopy(
                    draw(st.sampled_from([*body.values()]) if isinstance(body, dict) and body else JSON)
                )
            case "drop" if key != "":
                del inside[key]
        body = inside[""] if key == "" else body
        if not isinstance(body, dict):
            return body
    return body


def survives(path, *others):
    """Collect a file; if it is taken, then nothing that its checks would refuse."""
    for further in others:
        try:
            collect([further, path])
        except GraphveilError as error:
            assert "\n" not in str(error)
    try:
        found, files = collect([path]), Files([path])
    except GraphveilError as error:
        assert "\n" not in str(error)
        return
    table = (
        pyarrow.parquet.read_table(path)
        if path.suffix == ".parquet"
        else pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(column_types={"id": pa.string()}))
    )
    body = json.loads(described(path).read_text())
    assert table.num_rows == body["vertices"] == len(found.ids)
    told = 0
    for _, report in files.reports():
        randomizer = files.rounds[report.round].randomizer
        assert reasons(randomizer.check_report(report.values, len(files.ids))) == {}
        told += len(report)
        if isinstance(report.values, Contacts):
            assert not report.values.targets.size or 0 <= report.values.targets.min() <= report.values.targets.max() < 6
        else:
            assert np.isfinite(report.values.data if sp.issparse(report.values) else report.values).all()
        if randomizer == LABELS.randomizer:
            assert set(report.values.tolist()) <= {0, 1, 2}
    assert found.accepted >= told and found.accepted + len(found.refused) <= 3 * table.num_rows
    assert all("\n" not in str(one) for one in found.refused)
    assert np.isin(found.labels, np.arange(-1, body["classes"])).all()
    assert all(np.isfinite(one).all() for one in found.arrays.values() if one.dtype.kind == "f")
    certificate = found.certificate
    assert not (certificate.holds and (body["seeded"] or certificate.epsilon is None))
    str(certificate)
    json.dumps(certificate.to_json(), allow_nan=False)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@bounded
def test_a_mutated_file_is_refused_in_one_line_or_collected_without_what_cannot_be(
    originals, tmp_path, kind, suffix, data
):
    table, body, _ = originals[kind]
    other = originals[data.draw(st.sampled_from(sorted(KINDS)))][2]
    path = tmp_path / f"reports.{suffix}"
    table = data.draw(tables(table))
    try:
        pyarrow.parquet.write_table(table, path) if suffix == "parquet" else pyarrow.csv.write_csv(table, path)
    except pa.ArrowException:  # a table that cannot be written is no file
        return
    described(path).write_text(json.dumps(data.draw(descriptions(body))))
    survives(path, other)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@given(data=st.data())
@bounded
def test_damaged_bytes_are_one_line(originals, tmp_path, suffix, data):
    table, body, other = originals["laplace"]
    path = tmp_path / f"reports.{suffix}"
    pyarrow.parquet.write_table(table, path) if suffix == "parquet" else pyarrow.csv.write_csv(table, path)
    described(path).write_text(json.dumps(body))
    victim = data.draw(st.sampled_from([path, described(path)]))
    content = bytearray(victim.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        match data.draw(st.sampled_from(["cut", "byte", "insert"])):
            case "cut":
                del content[at:]
            case "byte" if at < len(content):
                content[at] = data.draw(st.integers(0, 255))
            case _:
                content[at:at] = data.draw(st.binary(max_size=4))
    victim.write_bytes(bytes(content))
    survives(path, other)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@bounded
def test_damaged_reports_on_the_wire_are_refused_or_possible(kind, data):
    features, edges, broadcast = KINDS[kind]
    randomizer, records = (features, np.full((6, 3), 0.5)) if features is not None else (edges, Contacts.of([[1]] * 6))
    values = randomizer.randomize(records, broadcast, Noise(1))
    content = bytearray(Report("round", np.arange(6), values).to_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    collector = Collector([Round("round", Part.FEATURES, randomizer)], 6)
    try:
        collector.accept(Report.from_bytes(bytes(content)))
        taken = collector.values("round")
    except GraphveilError as error:
        assert "\n" not in str(error)
        return
    there = np.flatnonzero(collector.reported("round"))
    kept = taken.take(there) if isinstance(taken, Contacts) else taken[there]
    assert reasons(randomizer.check_report(kept, 6)) == {}
