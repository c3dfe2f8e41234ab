"""A record is randomised once for a service: whoever is asked again sends the same bytes, whatever the file is called."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.privatizer import Privatizer
from graphveil.exchange.protocol import Protocol
from graphveil.exchange.randomizers import LabelHistogram, LabelResponse, MultiBit
from graphveil.exchange.records import Records
from graphveil.exchange.round import Round
from graphveil.exchange.upload import Service, Upload
from graphveil.exchange.wire import WireRecord, parsed, record_of
from graphveil.exchange.wire_reports import Columns
from graphveil.graph.formats.tables import TableFile
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Noise

FEATURES = Round("features", Part.FEATURES, MultiBit(2.0, 3))
LABELS = Round("labels", Part.LABELS, LabelResponse(1.0, 4))
COUNTS = Round("histogram", Part.EDGES, LabelHistogram(2.0, 4), "the released labels")
PROTOCOL = Protocol("demo", "none", {}, Local(2, 1, 2), PublicFacts(100, 3, 4), (FEATURES, LABELS, COUNTS))
ALLOWED = Local(2, 1, "withheld")


def records(folder, name, ids):
    coins = np.random.default_rng(0)
    table = {"id": [f"p{n}" for n in ids]} | {f"w{n}": coins.random(len(ids)) for n in range(3)}
    table |= {"label": pa.array(np.arange(len(ids)) % 4, mask=np.arange(len(ids)) % 3 == 0)}
    table |= {"friends": [f"p{(n + 1) % 5} p{(n + 2) % 5}" for n in ids]}
    pa.parquet.write_table(pa.table(table), folder / name)
    return Records(TableFile(folder / name), "id", ("w*",), "label", "friends", 4)


def sent(source, memory, allowed=ALLOWED, stage=None, heard=None, seed=None):
    asked = PROTOCOL.stage() if stage is None else stage
    job = Privatizer(source, asked.promise, asked.rounds, heard)
    return b"\n".join(line for lines, _, _ in Upload(job, asked, allowed, memory).lines(Noise(seed)) for line in lines)


def test_the_same_record_gives_the_same_bytes_from_any_file(tmp_path):
    one = sent(records(tmp_path, "a.parquet", range(50)), tmp_path / "memory").splitlines()
    two = sent(records(tmp_path, "b.parquet", range(25, 75)), tmp_path / "memory").splitlines()
    assert two[:25] == one[25:] and len(set(two[25:])) == 25
    other = sent(records(tmp_path, "a.parquet", range(50)), tmp_path / "elsewhere").splitlines()
    assert other != one  # another memory has other draws, so the bytes above were remembered


def test_what_a_seed_has_drawn_is_never_sent_as_if_it_had_not_been(tmp_path):
    """A service that was away has not heard of the seed: whoever sends again without one would make a certificate hold."""
    source = records(tmp_path, "a.parquet", range(9))
    first = sent(source, tmp_path / "memory", seed=1)
    with pytest.raises(PrivacyError, match="with a seed"):
        sent(source, tmp_path / "memory")
    assert sent(source, tmp_path / "memory", seed=2) == first  # and with any seed it is said to be seeded


def test_what_is_sent_is_what_the_stage_asks_for_and_no_value_is_kept(tmp_path):
    lines = sent(records(tmp_path, "a.parquet", range(9)), tmp_path / "memory").splitlines()
    stage = PROTOCOL.stage()
    told = [record_of(parsed(line), stage) for line in lines]
    assert [one.id for one in told] == [f"p{n}" for n in range(9)]
    assert [one.label is None for one in told] == [n % 3 == 0 for n in range(9)]
    kept = b"".join(path.read_bytes() for path in (tmp_path / "memory").iterdir() if path.suffix != ".part")
    assert b"p7" not in kept  # digests of ids, under a key


def test_a_newcomer_who_asked_first_reports_later_with_the_same_features(tmp_path):
    source = records(tmp_path, "a.parquet", range(20))
    asked = sent(source, tmp_path / "memory", Local(2, "withheld", "withheld"), PROTOCOL.asking()).splitlines()
    later = sent(source, tmp_path / "memory").splitlines()
    assert all("label" not in json.loads(line) for line in asked)
    assert [json.loads(line)["features"] for line in asked] == [json.loads(line)["features"] for line in later]


def test_files_and_services_do_not_both_draw(tmp_path):
    source, memory = records(tmp_path, "a.parquet", range(20)), tmp_path / "memory"
    sent(source, memory)
    with pytest.raises(PrivacyError, match="for a service"):
        Privatizer(source, Local(2, 1, "withheld"), (FEATURES, LABELS)).run(tmp_path / "out.csv", Noise(), None, memory)
    other = tmp_path / "other"
    Privatizer(source, Local(2, 1, "withheld"), (FEATURES, LABELS)).run(tmp_path / "out.csv", Noise(), None, other)
    with pytest.raises(PrivacyError, match="already"):
        sent(source, other)


def test_another_law_or_another_broadcast_is_a_second_look(tmp_path):
    source, memory = records(tmp_path, "a.parquet", range(5)), tmp_path / "memory"
    sent(source, memory)
    wider = Protocol(
        "demo",
        "none",
        {},
        Local(2, 2, 2),
        PROTOCOL.facts,
        (FEATURES, Round("labels", Part.LABELS, LabelResponse(2.0, 4))),
    )
    with pytest.raises(PrivacyError, match="another way"):
        sent(source, memory, Local(2, 2, "withheld"), wider.stage())
    edges = Local("withheld", "withheld", 2)
    told = [Broadcast.of([f"p{n}" for n in range(5)], np.arange(5) % bins, COUNTS) for bins in (4, 3)]
    first = sent(source, memory, edges, PROTOCOL.stage("histogram", told[0]), told[0])
    assert sent(source, memory, edges, PROTOCOL.stage("histogram", told[0]), told[0]) == first
    with pytest.raises(PrivacyError, match="hearing something else"):
        sent(source, memory, edges, PROTOCOL.stage("histogram", told[1]), told[1])


def test_a_collection_that_asks_for_more_than_the_owner_allows_gets_nothing(tmp_path):
    source = records(tmp_path, "a.parquet", range(5))
    with pytest.raises(PrivacyError, match="allowed"):
        sent(source, tmp_path / "memory", Local(1, 1, "withheld"))
    raw = Protocol("demo", "none", {}, Local(2, 1, "raw"), PROTOCOL.facts, (FEATURES, LABELS))
    with pytest.raises(PrivacyError, match="in the clear"):
        sent(source, tmp_path / "memory", ALLOWED, raw.stage())
    assert not (tmp_path / "memory").exists()


def test_a_token_goes_to_encrypted_addresses_only():
    assert Service("http://127.0.0.1:8000/v1/collections/demo", "t") and Service("https://x.org/v1/collections/d", "t")
    for url in ("http://x.org/v1/collections/demo", "ftp://x.org/v1/collections/demo", "https://x.org/"):
        with pytest.raises(InputError, match="--to"):
            Service(url, "t")


def test_a_protocol_survives_the_way():
    again = Protocol.from_json(json.loads(json.dumps(PROTOCOL.to_json())))
    assert again == PROTOCOL and again.stages == ("first", "histogram")
    assert PROTOCOL.to_json()["stages"]["first"]["rounds"]["labels"]["keep"] == LABELS.randomizer.keep
    with pytest.raises(InputError, match="no protocol"):
        Protocol.from_json({"schema": "other"})


def test_a_few_records_are_checked_in_full_and_many_as_sparse_rows_with_the_same_result():
    """So many attributes are reported by 1 or -1; another number, or another number of them, is refused."""
    stage = PROTOCOL.stage()
    chosen = FEATURES.randomizer.m
    good = WireRecord("a", tuple(range(chosen)), (1.0,) * chosen)
    bad = [WireRecord("b", (0,), (0.5,)), WireRecord("c", (), ()), WireRecord("d", (0, 1, 2), (1.0, 1.0, -1.0))]
    found = [Columns.of([good, *bad], stage, sparse=sparse).refused(stage) for sparse in (True, False)]
    assert found[0] == found[1] and 0 not in found[0] and {1, 2} <= {*found[0]}
