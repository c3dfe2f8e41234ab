"""Everything that must be refused, with the right status, and nothing of it stored."""

import io
import json
import pickle
import struct
import time
import zipfile
from dataclasses import replace

import pyarrow as pa
import pyarrow.ipc
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete, func, select

from graphveil.exchange import wire_arrow
from graphveil.exchange.randomizers import MultiBit
from graphveil.exchange.round import Round
from graphveil.exchange.wire import Defect, Stage
from graphveil.privacy.local import Local, Part
from graphveil.service import access
from graphveil.service.app import create_app
from graphveil.service.schema import owners, refusals, reports
from graphveil.service.tokens import caller_of, create_token, revoke_token
from tests.service.conftest import Caller, unlimited

GOOD = {"id": "a", "label": 1, "contacts": ["b"]}
ARROW = "application/vnd.apache.arrow.stream"


def stream(table, **options):
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def table(**columns):
    return pa.table({"id": ["a"], "label": [1], "contacts": ["b"]} | columns)


def stored(service):
    with service.store.reading() as connection:
        return [connection.execute(select(func.count()).select_from(one)).scalar_one() for one in (reports, owners)]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    with TestClient(create_app(unlimited(tmp_path_factory.mktemp("service")))) as client:
        found = Caller(client)
        found.create()
        yield found


@pytest.fixture
def service(running):
    """The collection without reports."""
    with running.store.writing() as connection:
        for one in (reports, owners, refusals):
            connection.execute(delete(one))
    return running


def test_what_is_good_is_taken(service):
    """Otherwise nothing below says anything."""
    assert service.send([GOOD]).json()["stored"] == 1
    found = service.send(stream(table()), kind=ARROW)
    assert found.json() == {"stored": 0, "repeated": 1, "refused": []}, found.text
    assert stored(service) == [1, 1]


BODIES = {
    "not JSON": (b'{"id": "a", ', 422),
    "no UTF-8": (b'{"id": "\xff\xfe"}', 422),
    "NaN": (b'{"id": "a", "label": NaN, "contacts": []}', 422),
    "infinite": (b'{"id": "a", "label": 1e999, "contacts": []}', 422),
    "out of the alphabet": ([GOOD | {"label": 3}], 422),
    "below the alphabet": ([GOOD | {"label": -1}], 422),
    "half a class": ([GOOD | {"label": 0.5}], 422),
    "a truth value": ([GOOD | {"label": True}], 422),
    "a huge number": (b'{"id": "a", "label": ' + b"9" * 5000 + b', "contacts": []}', 422),
    "a number beyond all floats": (b'{"id": "a", "label": ' + b"9" * 400 + b', "contacts": []}', 422),
    "a nest": (b"[" * 100_000, 422),
    "a list": ([[GOOD]], 422),
    "no id": ([{"label": 1, "contacts": []}], 422),
    "an id that is a number": ([GOOD | {"id": 7}], 422),
    "an id of two words": ([GOOD | {"id": "a b"}], 422),
    "an id with a null": ([GOOD | {"id": "a\x00"}], 422),
    "half a surrogate": (b'{"id": "\\ud800", "label": 1, "contacts": []}', 422),
    "a long id": ([GOOD | {"id": "a" * 129}], 422),
    "another field": ([GOOD | {"features": [1.0]}], 422),
    "a field that is missing": ([{"id": "a", "label": 1}], 422),
    "contacts that are text": ([GOOD | {"contacts": "b c"}], 422),
    "itself as a contact": ([GOOD | {"contacts": ["a"]}], 422),
    "nothing": (b"", 400),
    "empty lines": (b"\n\n\n", 400),
    "too many records": (b"1\n" * 10_001, 400),
    "too many bytes": (b" " * (8 << 20) + b"1", 413),
    "pickle": (pickle.dumps(GOOD), 422),
}


@pytest.mark.parametrize("name", BODIES)
def test_lines_that_are_no_report(service, name):
    content, status = BODIES[name]
    found = service.send(content)
    assert found.status_code == status, found.text
    assert stored(service) == [0, 0]


def bomb():
    """A million times nothing, packed well."""
    rows = pa.table({"id": ["a" * 128] * 9_000, "label": [1] * 9_000, "contacts": ["b " * 20_000] * 9_000})
    return stream(rows, compression="zstd")


def hidden_bomb():
    """The same in the old format, where the compression stands in the metadata and not in the header."""
    rows = pa.table({"id": ["a" * 128] * 900, "label": [1] * 900, "contacts": ["b " * 2_000] * 900})
    sink, packed = io.BytesIO(), {"ARROW:experimental_compression": "zstd"}
    old = pa.ipc.IpcWriteOptions(compression="zstd", metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(sink, rows.schema, options=old) as writer:
        writer.write_batch(rows.to_batches()[0], custom_metadata=packed)
    content = bytearray(sink.getvalue())
    (message,) = (one for one in pa.ipc.MessageReader.open_stream(bytes(content)) if one.type == "record batch")
    header = message.metadata.to_pybytes()
    root = struct.unpack_from("<I", header, 0)[0]
    union = wire_arrow._field(header, root, 2)
    batch = union + struct.unpack_from("<I", header, union)[0]
    fields = batch - struct.unpack_from("<i", header, batch)[0]  # the offsets of its fields, 4 bytes behind its sizes
    struct.pack_into("<H", content, bytes(content).index(header) + fields + 4 + 2 * wire_arrow.COMPRESSION, 0)
    return bytes(content)


def zipped():
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("reports", b"0" * 10_000_000)
    return sink.getvalue()


STREAMS = {
    "not Arrow": (b"ARROW1\0\0" + b"\xff" * 64, 400),
    "half of it": (stream(table())[:-40][:200], 400),
    "a damaged one": (bytes(b ^ (n % 37 == 5) for n, b in enumerate(stream(table()))), 400),
    "pickle": (pickle.dumps(table()), 400),
    "a zip file": (zipped(), 400),
    "compressed": (bomb(), 400),
    "compressed in secret": (hidden_bomb(), 400),
    "a dictionary": (stream(table(contacts=pa.array(["b"]).dictionary_encode())), 400),
    "nested columns": (stream(table(contacts=[["b"]])), 400),
    "no label column is fine, another is not": (stream(table(degree=[1])), 400),
    "NaN": (stream(table(label=[float("nan")])), 422),
    "a null id": (stream(table(id=pa.array([None], pa.string()))), 422),
    "out of the alphabet": (stream(table(label=[3])), 422),
    "too many rows": (
        stream(pa.table({"id": pa.nulls(10_001), "label": pa.nulls(10_001), "contacts": pa.nulls(10_001)})),
        400,
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_that_are_no_reports(service, name):
    content, status = STREAMS[name]
    found = service.send(content, kind=ARROW)
    assert found.status_code == status, found.text
    assert stored(service) == [0, 0]


def test_columns_of_nothing_do_not_become_numbers():
    """An empty column has no bytes at all, and would be a column of doubles when it is read."""
    wide = Stage("first", Local(2, "withheld", "withheld"), (Round("x", Part.FEATURES, MultiBit(2.0, 300)),), 300, 2)
    ids = pa.array([str(n) for n in range(2_000)])
    content = stream(pa.table({"id": ids} | {f"f{n}": pa.nulls(2_000) for n in range(300)}))
    with pytest.raises(Defect, match="more numbers than bytes"):
        list(wire_arrow.arrow_records(content, wide, 10_000))


@pytest.mark.parametrize("kind", ["", "text/plain", "application/octet-stream", "application/x-pickle"])
def test_other_kinds_of_bodies(service, kind):
    assert service.send([GOOD], kind=kind).status_code == 415
    assert stored(service) == [0, 0]


def test_packed_bodies_are_not_unpacked(service):
    for encoding in ("gzip", "deflate", "br", "zstd"):
        headers = {"Content-Encoding": encoding, "Content-Type": "application/x-ndjson"}
        found = service("POST", "/v1/collections/demo/reports", "east", content=zipped(), headers=headers)
        assert found.status_code == 415
    assert stored(service) == [0, 0]


def test_a_body_that_does_not_say_its_length_is_cut_off(service):
    found = service.send(b"", kind="application/x-ndjson")
    assert found.status_code == 400
    endless = (b"1\n" * 50_000 for _ in range(200))
    headers = {"Content-Type": "application/x-ndjson"}
    found = service("POST", "/v1/collections/demo/reports", "east", content=endless, headers=headers)
    assert found.status_code == 413 and stored(service) == [0, 0]


def test_nobody_makes_the_service_read_a_huge_body(service):
    huge = b'{"name": "' + b"a" * (9 << 20) + b'"}'
    for token in (None, "operator"):
        for path in ("/v1/collections", "/v1/collections/demo/jobs", "/v1/collections/demo/predict"):
            assert service("POST", path, token, content=huge).status_code == 413
            found = service("POST", path, token, content=(huge[:1_000_000] for _ in range(20)))
            assert found.status_code in (400, 401, 413), path  # 401: not a byte of it was read
    assert len(service("GET", "/v1/collections").json()) == 1


def test_tokens_that_are_no_good(service):
    east = service.tokens["east"]
    revoked = create_token(service.store, "holder", "north", collection="demo")
    revoke_token(service.store, revoked)
    for token in ("gv_", "x", east[:-1], east + "x", east.replace("gv_", "gw_"), revoked, "gv_' OR 1=1 --_x"):
        assert service.send([GOOD], token).status_code == 401
    assert service("POST", "/v1/collections/demo/reports", content=json.dumps(GOOD)).status_code == 401
    found = service("POST", "/v1/collections/demo/reports", headers={"Authorization": f"Basic {east}"})
    assert found.status_code == 401 and found.headers["WWW-Authenticate"] == "Bearer"
    assert stored(service) == [0, 0]


def test_roles_do_what_they_are_for_and_nothing_else(service):
    for role in ("analyst", "operator"):
        assert service.send([GOOD], role).status_code == 403
    body = {"name": "other", "method": "local", "labels": 3, "edges": "raw", "classes": 3}
    for role in ("east", "analyst"):
        assert service("POST", "/v1/collections", role, json=body).status_code == 403
        assert service("POST", "/v1/collections/demo/close", role).status_code == 403
    assert service("POST", "/v1/collections/demo/jobs", "east", json={}).status_code == 403
    assert stored(service) == [0, 0] and len(service("GET", "/v1/collections").json()) == 1


def test_a_record_belongs_to_who_sent_it_first_and_another_value_is_not_taken(service):
    service.send([GOOD])
    other = service.send([GOOD], "west")
    assert other.status_code == 403 and other.json()["refused"][0]["reason"] == "a record of another holder"
    again = service.send([GOOD | {"label": 2}])
    assert again.status_code == 409 and "budget" in again.json()["refused"][0]["reason"]
    both = service.send([GOOD | {"id": "c"}, GOOD | {"id": "c", "label": 0}])
    assert both.json()["stored"] == 1 and both.json()["refused"][0]["line"] == 2
    assert stored(service) == [2, 2]
    device = create_token(service.store, "holder", "east", record="d", collection="demo")
    assert service.send([GOOD | {"id": "e"}], device).status_code == 403
    assert service.send([GOOD | {"id": "d"}], device).status_code == 200


TRICKS = [
    "' OR '1'='1",
    "demo'; DROP TABLE reports; --",
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "demo/..%2fdemo",
    "a" * 5000,
]


@pytest.mark.parametrize("trick", TRICKS)
def test_sql_and_path_tricks_are_only_text(service, trick):
    here = f"/v1/collections/{trick}"
    asked = [("GET", here, "east"), ("POST", f"{here}/jobs", "operator"), ("POST", f"{here}/reports", "east")]
    for method, path, role in asked:
        found = service(method, path, role, content="{}", headers={"Content-Type": "application/json"})
        assert found.status_code in (404, 405, 307, *([403] if role == "east" else [])), found.text
    assert service.send([GOOD], stage=trick).status_code in (404, 422)
    found = service.send([GOOD | {"id": trick.replace(" ", "_")[:100]}])
    assert found.status_code == 200 or "%" in trick  # an id is a value, whatever it looks like
    body = {"name": trick, "method": "local", "labels": 3, "edges": "raw", "classes": 3}
    assert service("POST", "/v1/collections", "operator", json=body).status_code == 422
    with service.store.reading() as connection:
        assert connection.execute(select(func.count()).select_from(reports)).scalar_one() <= 1


def test_a_caller_who_is_too_quick_has_to_wait(tmp_path, monkeypatch):
    settings = unlimited(tmp_path)
    with TestClient(create_app(replace(settings, rate=0.5, burst=3, stranger_rate=0.5, stranger_burst=3))) as client:
        service = Caller(client)
        service.create()
        codes = [service.send([GOOD]).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 429]
        last = service.send([GOOD])
        assert last.status_code == 429 and int(last.headers["Retry-After"]) >= 1
        assert service.send([GOOD | {"id": "w"}], "west").status_code == 200  # others are not held up
        asked = []
        monkeypatch.setattr(access, "caller_of", lambda store, token: asked.append(token) or caller_of(store, token))
        assert [service.send([GOOD], "x").status_code for _ in range(5)] == [401, 401, 401, 429, 429]
        assert asked == ["x"] * 3  # whoever has sent too many bad ones costs no look at the store
        time.sleep(access.REMEMBERED)
        assert service.send([GOOD | {"id": "w"}], "west").status_code == 200  # who was good before is looked up again


def test_refusals_are_counted_by_reason_without_what_was_sent(service):
    service.send([GOOD | {"label": 3, "id": "private-name"}])
    with service.store.reading() as connection:
        rows = [tuple(row) for row in connection.execute(select(refusals.c.reason, refusals.c.reports))]
    assert rows == [("label: outside 0..2", 1)] and "private-name" not in str(rows)
