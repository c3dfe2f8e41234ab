"""Clients repeat themselves byte for byte; collectors take every vertex once; several holders, several rounds."""

import numpy as np
import pytest
import scipy.sparse as sp

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.client import Client
from graphveil.exchange.collector import Collector
from graphveil.exchange.randomizers import Contacts, LabelHistogram, LabelResponse, MultiBit, Piecewise
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise

ROUNDS = (
    Round("features", Part.FEATURES, MultiBit(2.0, 4)),
    Round("labels", Part.LABELS, LabelResponse(1.0, 3)),
    Round("histogram", Part.EDGES, LabelHistogram(1.0, 4), hears="the released labels"),
)
LISTS = [[1, 2], [0], [0, 3], [2], [], [0, 1, 2]]


def records(ids=range(6)):
    ids = list(ids)
    rows = np.random.default_rng(0).random((6, 4))
    labels = np.array([0, 1, -1, 2, 1, -1])
    return {Part.FEATURES: rows[ids], Part.LABELS: labels[ids], Part.EDGES: Contacts.of([LISTS[i] for i in ids])}


def client(ids=range(6), seed=None, **options):
    return Client(list(ids), records(ids), ROUNDS, Noise(seed), **options)


@pytest.mark.parametrize("name", ["features", "labels"])
def test_a_report_that_is_asked_for_again_is_the_same_byte_for_byte(name):
    one = client()
    assert one.report(name).to_bytes() == one.report(name).to_bytes()
    assert one.report(name).to_bytes() != client().report(name).to_bytes() or name == "labels"


def test_a_restarted_client_repeats_the_reports_in_its_memory(tmp_path):
    broadcast = np.array([0, 1, 3, 2, 1, 3])
    first = client(memory=tmp_path)
    sent = [first.report("features").to_bytes(), first.report("histogram", broadcast).to_bytes()]
    again = client(memory=tmp_path)
    assert [again.report("features").to_bytes(), again.report("histogram", broadcast).to_bytes()] == sent
    with pytest.raises(PrivacyError, match="another broadcast"):
        client(memory=tmp_path).report("histogram", broadcast[::-1].copy())
    with pytest.raises(InputError, match="other vertices"):
        client(ids=[0, 1], memory=tmp_path).report("features")


def test_a_second_broadcast_for_an_answered_round_is_refused():
    one = client()
    one.report("histogram", np.array([0, 1, 3, 2, 1, 3]))
    with pytest.raises(PrivacyError, match="twice"):
        one.report("histogram", np.array([0, 1, 3, 2, 1, 2]))


def test_a_client_answers_only_planned_rounds_and_only_with_what_it_gives():
    with pytest.raises(PrivacyError, match="does not answer"):
        client().report("salary")
    silent = Client([0], {Part.LABELS: [1]}, ROUNDS, Noise(0))
    with pytest.raises(PrivacyError, match="withholds"):
        silent.report("features")


def test_people_without_a_label_send_no_label_report():
    assert client().report("labels").ids.tolist() == [0, 1, 3, 4]


def test_one_vertex_is_a_client_too():
    one = Client(3, {Part.FEATURES: np.ones(4), Part.LABELS: 2, Part.EDGES: np.array([2])}, ROUNDS, Noise(1))
    assert one.report("features").values.shape == (1, 4)
    assert len(one.report("labels")) == 1
    assert one.report("histogram", np.zeros(6, dtype=int)).values.shape == (1, 4)


@pytest.mark.parametrize(
    "values", [np.arange(6.0).reshape(3, 2), sp.csr_matrix(np.eye(3, dtype=np.int8)), Contacts.of([[1], [], [0, 2]])]
)
def test_reports_survive_the_wire(values):
    report = Report("labels", np.array([4, 0, 2]), values, "clinic")
    back = Report.from_bytes(report.to_bytes())
    assert back.round == "labels" and back.holder == "clinic" and back.ids.tolist() == [4, 0, 2]
    assert all(np.array_equal(back.row(i), report.row(i)) for i in range(3))
    assert back.to_bytes() == report.to_bytes()
    with pytest.raises(InputError, match="no report"):
        Report.from_bytes(b"nonsense")


def test_the_collector_puts_reports_of_several_holders_in_the_order_of_the_slots():
    collector = Collector(ROUNDS, 6)
    east, west = client([4, 1], holder="east", seed=1), client([0, 5, 2], holder="west", seed=2)
    for one in (east, west):
        collector.accept(one.report("features"))
        collector.accept(one.report("labels"))
    assert collector.reported("features").tolist() == [True, True, True, False, True, True]
    rows = collector.values("features").toarray()
    assert np.array_equal(rows[4], east.report("features").row(0)) and not rows[3].any()
    labels = collector.values("labels")
    assert labels[3] == labels[2] == labels[5] == -1 and labels[1] >= 0
    heard = np.where(labels < 0, 3, labels)
    collector.accept(east.report("histogram", heard))
    assert np.array_equal(collector.values("histogram")[1], east.report("histogram", heard).row(1))
    found = collector.estimate()
    assert found["labels"].tolist() == labels.tolist() and found["histogram"].shape == (6, 4)
    assert found["features"].shape == (6, 4)
    assert np.allclose(found["features"][0], ROUNDS[0].randomizer.estimate(rows[0]))


def test_a_resent_report_is_ignored_and_another_one_of_the_same_vertex_is_refused():
    collector = Collector(ROUNDS, 6)
    one = client(seed=1)
    collector.accept(one.report("features"))
    collector.accept(one.report("features"))
    assert collector.resent == 6
    before = collector.values("features").toarray()
    with pytest.raises(InputError, match="another report"):
        collector.accept(client([2, 3, 4, 5], holder="elsewhere", seed=9).report("features"))
    assert np.array_equal(collector.values("features").toarray(), before)


@pytest.mark.parametrize(
    ("ids", "values", "word"), [([0, 9], np.zeros(2), "outside"), ([1, 1], np.zeros(2), "same vertex")]
)
def test_impossible_reports_are_refused(ids, values, word):
    with pytest.raises(InputError, match=word):
        Collector(ROUNDS, 6).accept(Report("labels", np.array(ids), values))
    with pytest.raises(InputError, match="no round"):
        Collector(ROUNDS, 6).accept(Report("salary", np.array([0]), np.zeros(1)))


def test_a_holder_without_vertices_or_with_a_vertex_twice_is_refused():
    with pytest.raises(InputError, match="no vertices"):
        Client([], {}, ROUNDS, Noise(0))
    with pytest.raises(InputError, match="same vertex"):
        Client([1, 1], {}, ROUNDS, Noise(0))
    with pytest.raises(InputError, match="records for"):
        Client([1, 2], {Part.LABELS: [0]}, ROUNDS, Noise(0))


def test_piecewise_reports_of_many_vertices_are_estimated_without_bias():
    """Six sigma per coordinate: false-alarm rate below 1e-8 in all."""
    randomizer = Piecewise(3.0, 2)
    rounds = (Round("features", Part.FEATURES, randomizer),)
    rows = np.tile([0.5, -0.25], (20_000, 1))
    collector = Collector(rounds, len(rows))
    collector.accept(Client(range(len(rows)), {Part.FEATURES: rows}, rounds, Noise(3)).report("features"))
    error = 6 * np.sqrt(randomizer.variance(rows[0]) / len(rows))
    assert np.all(np.abs(collector.estimate()["features"].mean(axis=0) - rows[0]) < error)
