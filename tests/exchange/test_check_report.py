"""What a collector refuses: whatever a client's randomizer cannot have made, one report at a time, by every transport."""

import numpy as np
import pytest
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.collector import Collector
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
    NeighbourReplacement,
    Piecewise,
    Rest,
    checks,
)
from graphveil.exchange.randomizers.checks import reasons
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise

SLOTS = 40
ROWS = np.random.default_rng(0).random((SLOTS, 4))
LISTS = Contacts.of([np.flatnonzero(np.random.default_rng(v).random(SLOTS) < 0.2) for v in range(SLOTS)])
BINS = np.arange(SLOTS) % 3
NAN, INFINITE = float("nan"), float("inf")
HONEST = [
    (Part.FEATURES, MultiBit(1.0, 4), ROWS, None),
    (Part.FEATURES, MultiBit(9.0, 4), sp.csr_matrix(ROWS), None),
    (Part.FEATURES, MultiBit(9.0, 4), ROWS, None),
    (Part.FEATURES, Piecewise(1.0, 4), ROWS, None),
    (Part.FEATURES, Piecewise(9.0, 4, half=1 << 10), ROWS, None),
    (Part.FEATURES, Piecewise(1.0, 4, sampled=2, rest=Rest.RAW), ROWS, None),
    (Part.FEATURES, LaplaceRows(1.0, 4), ROWS, None),
    (Part.FEATURES, LaplaceRows(1.0, 4, norm=2.0), ROWS, None),
    (Part.FEATURES, Direction(1.0, 4, projected=None), ROWS, None),
    (Part.FEATURES, Direction(1.0, 4, projected=7), ROWS, None),
    (Part.LABELS, LabelResponse(1.0, 3), BINS, None),
    (Part.EDGES, LabelHistogram(1.0, 3), LISTS, BINS),
    (Part.EDGES, LabelHistogram(0.01, 3, "hidden"), LISTS, BINS),
    (Part.EDGES, NeighbourMean(1.0, 4), LISTS, ROWS),
    (Part.EDGES, BucketResponse(1.0, 3, owned=False), LISTS, BINS),
    (Part.EDGES, EdgeListResponse(0.5, SLOTS), LISTS, None),
]
IDS = [f"{type(randomizer).__name__} {number}" for number, (_, randomizer, _, _) in enumerate(HONEST)]


@pytest.mark.parametrize(("part", "randomizer", "records", "broadcast"), HONEST, ids=IDS)
def test_what_a_client_reports_is_taken_before_and_after_the_wire(part, randomizer, records, broadcast):
    for _ in range(20):
        values = randomizer.randomize(records, broadcast, Noise())
        report = Report("round", np.arange(SLOTS), values)
        for sent in (report, Report.from_bytes(report.to_bytes())):
            assert reasons(randomizer.check_report(sent.values, SLOTS)) == {}
    collector = Collector([Round("round", part, randomizer)], SLOTS)
    collector.accept(report)
    assert collector.refused == [] and collector.reported("round").all()


FORGED = [
    (LabelResponse(1.0, 3), np.array([0, 99, -7, 2]), [1, 2]),
    (LabelResponse(1.0, 3), np.array([0.0, 1.0, 2.0, 1.0]), [0, 1, 2, 3]),
    (LabelResponse(1.0, 3), np.array([[0], [1], [2], [1]]), [0, 1, 2, 3]),
    (MultiBit(1.0, 2), np.array([[1, 0], [NAN, 0], [0, INFINITE], [0, -1]]), [1, 2]),
    (MultiBit(1.0, 2), np.array([[1, 0], [2, 0], [0.5, 0], [1, 1]]), [1, 2, 3]),
    (MultiBit(1.0, 2), np.array([[0, 0], [1, 0], [0, 0], [0, 1]]), [0, 2]),
    (MultiBit(1.0, 2), np.zeros((4, 2)), [0, 1, 2, 3]),
    (MultiBit(1.0, 2), np.array([[1, 0, 0]] * 4), [0, 1, 2, 3]),
    (MultiBit(1.0, 2), sp.csr_matrix(np.array([[1, 0], [1, 1], [3, 0], [0, -1]])), [1, 2]),
    (MultiBit(1.0, 2), np.array([["a", "b"]] * 4), [0, 1, 2, 3]),
    (MultiBit(1.0, 2), Contacts.of([[0], [1], [], [2]]), [0, 1, 2, 3]),
    (Piecewise(1.0, 2), np.array([[1e-3, 0], [1e9, 0], [0, 0], [NAN, 0]]), [0, 1, 2, 3]),
    (Piecewise(1.0, 2, sampled=1, rest=Rest.RAW), np.array([[0.5, 0.5], [1e9, 0], [3.0, 3.0], [NAN, 0]]), [1, 2, 3]),
    (LaplaceRows(1.0, 2), np.array([[0.0, 0.0], [1e9, 0], [0, -1e9], [2.0**-80, 0]]), [1, 2, 3]),
    (LabelHistogram(1.0, 2), np.array([[0.0, 0.0], [1e9, 0], [NAN, 0], [2.0**-80, 0]]), [1, 2, 3]),
    (LabelHistogram(1.0, 2), np.zeros((4, 3)), [0, 1, 2, 3]),
    (NeighbourMean(1.0, 2, 1e-3), np.array([[0.0, 0.0], [1e9, 0], [NAN, 0], [2.0**-80, 0]]), [1, 2, 3]),
    (Direction(1.0, 2, projected=None), np.array([[1.0, 0.0], [1.0, 0.1], [0, 0], [NAN, 0]]), [1, 2, 3]),
    (BucketResponse(1.0, 2), Contacts.of([[0, 0, 3], [4], [-1], [2, 1]]), [1, 2, 3]),
    (BucketResponse(1.0, 2), Contacts(np.array([0, 9, 1, 2, 3]), np.array([0, 1, 2])), [0, 1, 2, 3]),
    (BucketResponse(1.0, 2), np.zeros((4, 2)), [0, 1, 2, 3]),
    (EdgeListResponse(1.0, 4), Contacts.of([[0, 3], [0, 4], [-1, 2], [2, 2]]), [1, 2, 3]),
    (NeighbourReplacement(1.0), Contacts.of([[0], [1], [2], [3]]), [0, 1, 2, 3]),
]
NAMES = [f"{type(randomizer).__name__} {number}" for number, (randomizer, _, _) in enumerate(FORGED)]


@pytest.mark.parametrize(("randomizer", "values", "bad"), FORGED, ids=NAMES)
def test_values_that_no_client_can_have_made_are_refused_one_by_one(randomizer, values, bad):
    part = Part.LABELS if isinstance(randomizer, LabelResponse) else Part.FEATURES
    collector = Collector([Round("round", part, randomizer)], 4)
    collector.accept(Report("round", np.arange(4), values, "forger"))
    assert [int(one.vertex) for one in collector.refused] == bad
    assert np.flatnonzero(~collector.reported("round")).tolist() == bad
    assert all(one.source == "forger" and one.round == "round" and one.reason for one in collector.refused)


def test_a_holder_that_sends_nonsense_does_not_silence_the_others():
    collector = Collector([Round("labels", Part.LABELS, LabelResponse(1.0, 3))], 4)
    collector.accept(Report("labels", np.array([0, 1]), np.array([99, 98])))
    collector.accept(Report("labels", np.array([1, 2, 3]), np.array([0, 3, 2])))
    assert collector.values("labels").tolist() == [-1, 0, -1, 2] and len(collector.refused) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("indices", np.array([0, 7], dtype=np.int32)),
        ("indptr", np.array([0, 5, 2], dtype=np.int32)),
        ("ids", np.array([0.0, 1.0])),
        ("ids", np.array([[0], [1]])),
    ],
)
def test_bytes_that_are_no_report_are_one_clear_line(name, value):
    from safetensors.numpy import load, save

    content = Report("labels", np.array([0, 1]), sp.csr_matrix(np.eye(2))).to_bytes()
    forged = save(load(content) | {name: value}, {"report": '{"holder": "a", "round": "labels"}'})
    with pytest.raises(InputError, match="no report"):
        Report.from_bytes(forged)


@pytest.mark.parametrize(
    "randomizer",
    [
        MultiBit(1.0, 10**6),
        Piecewise(1.0, 10**6, sampled=1),
        Piecewise(1.0, 10**6, sampled=1, rest=Rest.RAW),
        LaplaceRows(1.0, 10**6, norm=1.0),
        Direction(1.0, 10**6, projected=None),
    ],
    ids=repr,
)
def test_a_wide_sparse_report_is_checked_without_its_zeros(randomizer, monkeypatch):
    """Ten thousand lines of a few bytes each must not become a table of eighty gigabytes."""

    def never(*_, **__):
        raise AssertionError("a dense table of sparse reports")

    monkeypatch.setattr(sp.csr_matrix, "toarray", never)
    monkeypatch.setattr(sp.csr_matrix, "todense", never)
    many = 10_000
    rows = sp.csr_matrix((np.full(many, 1e30), (np.arange(many), np.arange(many))), (many, 10**6))
    assert len(reasons(randomizer.check_report(rows, SLOTS))) == many


def test_dense_reports_are_counted_as_sparse_ones_are(monkeypatch):
    monkeypatch.setattr(checks, "BLOCK", 8)  # one row of five at a time
    table = np.random.default_rng(0).integers(-2, 3, (7, 5)).astype(np.float64)
    table[3, 2] = np.nan

    def large(values):
        return ~(np.abs(values) <= 1)

    assert checks.counted(table, 5, large).tolist() == checks.counted(sp.csr_matrix(table), 5, large).tolist()
    assert checks.counted(table, 4, large).tolist() == [0] * 7  # of another width: nothing is read
