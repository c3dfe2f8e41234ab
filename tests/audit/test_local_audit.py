"""Local methods: exact ratios of what is really sent, round by round."""

import math
from itertools import permutations
from unittest.mock import patch

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit import audit_method
from graphveil.audit.everything import LOCAL_PROMISES, promises_of
from graphveil.audit.result import GREEN, RED, Failure
from graphveil.errors import InputError
from graphveil.exchange.randomizers import Contacts, NeighbourReplacement
from graphveil.exchange.randomizers.replacement import Strategy
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.graph_privatizer import GraphPrivatizer
from graphveil.methods.lga_pgnn import LdpGnn, LgaPgnn
from graphveil.methods.lpgnn import Lpgnn
from graphveil.methods.registry import describe, method_class, method_names
from graphveil.methods.rr_edges import RrEdges
from graphveil.privacy.local import LOCAL

LOCAL_METHODS = [name for name in method_names() if LOCAL in method_class(name)().supports]


def on_card(name):
    """The codes that ``graphveil methods NAME`` prints."""
    return {gap["code"] for gap in describe(name)["gaps"]}


@pytest.mark.parametrize("name", LOCAL_METHODS)
def test_every_sound_local_method_attains_its_epsilon_and_never_exceeds_it(name):
    promises = promises_of(method_class(name)(), 4.0)
    assert promises, f"{name} takes none of {LOCAL_PROMISES}"
    for promise in promises:
        found = audit_method(method_class(name)(), promise)
        assert found.verdict == GREEN, (promise, found.failures)
        assert found.observed == pytest.approx(promise.epsilon, rel=1e-6)


def shown(value):
    """Sets have another order in every process: the id of a case leaves them out."""
    return "" if isinstance(value, set) else getattr(value, "__name__", str(value))


OF_EDGES = {"G1", "G2", "G3", "G4", "G5"}


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({}, OF_EDGES),
        ({"reading": "code"}, OF_EDGES),
        ({"reading": "text"}, OF_EDGES),
        ({"metric": "euclidean"}, OF_EDGES),
        ({"metric": "distance"}, OF_EDGES),
        ({"reading": "text", "metric": "euclidean", "alpha": 0.5, "threshold": 0.4}, OF_EDGES),
        ({"strategy": "m"}, OF_EDGES - {"G2"}),
    ],
    ids=shown,
)
def test_every_reading_of_published_graph_privatizer_is_infinite(options, codes):
    found = audit_method(GraphPrivatizer(mode="published", epochs=1, **options), gv.Local(1.0, 1.0, 1.0))
    assert found.verdict == RED and math.isinf(found.observed) and found.claimed == 3.0 and not found.unexpected
    assert set(found.codes) == codes <= on_card("graph-privatizer") and found.witnesses
    assert {(failure.check, failure.release) for failure in found.failures} == {("exact ratio", "edges")}


@pytest.mark.parametrize("strategy", ["t", "m"])
def test_normalisers_differ_only_where_there_may_be_several_candidates(strategy):
    """Two contacts with candidates that share a report: beyond epsilon with strategy t (G2), never with m."""
    lists = Contacts.of([[1, 2, 3], [0, 2], [0, 1], [0, 4], [3]])
    rows = np.random.default_rng(3).random((5, 4))
    randomizer = NeighbourReplacement(1.0, lists, Strategy(strategy))
    assert randomizer.support(rows).degrees.all()
    masses = np.exp([[randomizer.log_density(u, out, rows) for out in range(5)] for u in range(5)])
    shared = [(a, b) for a, b in permutations(masses, 2) if np.any(a * b > 0)]
    worst = max(np.log(a[a * b > 0] / b[a * b > 0]).max() for a, b in shared)
    assert worst > 1.05 if strategy == "t" else worst == pytest.approx(1.0)


def test_a_contact_without_a_candidate_above_the_threshold_is_sent_as_it_is():
    """Gap G3: that report has probability 1, and is impossible if the contact is exchanged for another such one."""
    lists = Contacts.of([[1, 2], [0, 2], [0, 1]])
    randomizer = NeighbourReplacement(1.0, lists, Strategy.THRESHOLD, threshold=1.0)
    rows = np.eye(3)
    assert not randomizer.support(rows).degrees.any()
    masses = [[math.exp(randomizer.log_density(u, out, rows)) for out in range(3)] for u in range(3)]
    assert np.array_equal(masses, np.eye(3))


@pytest.mark.parametrize("reading", ["code", "text", "listening"])
def test_published_rr_edges_is_infinite(reading):
    """Its readings turn what was reported into arcs; what is reported is the same."""
    found = audit_method(RrEdges(mode="published", epochs=1, reading=reading), gv.Local(1.0, 1.0, 1.0))
    assert found.verdict == RED and math.isinf(found.observed) and not found.unexpected
    assert set(found.codes) == {"G4", "G5", "G6"} == on_card("rr-edges")


def test_published_lpgnn_holds():
    found = audit_method(Lpgnn(mode="published", epochs=1), gv.Local(1.0, 1.0, "raw"))
    assert found.verdict == GREEN and found.codes == ()


def test_published_graph_privatizer_with_public_edges_is_not_blamed_for_its_edges():
    found = audit_method(GraphPrivatizer(mode="published"), gv.Local(1.0, 1.0, "raw"))
    assert found.verdict == GREEN and not found.witnesses


@pytest.mark.parametrize(
    ("method", "options", "features", "codes"),
    [
        (LgaPgnn, {}, 6.0, {"L2"}),  # six attributes
        (LgaPgnn, {"reading": "zero"}, 1.0, set()),
        (LgaPgnn, {"reading": "raw"}, math.inf, {"L3"}),
        (LdpGnn, {}, 6.0, {"L2"}),
        (LdpGnn, {"sampled": 2}, math.inf, {"L2", "L3"}),
        (LdpGnn, {"per_dimension": "eps_over_m"}, 1.0, set()),
        (LdpGnn, {"reading": "zero", "per_dimension": "eps"}, 1.0, set()),  # m* is 1 at epsilon 1
        (LdpGnn, {"reading": "zero", "per_dimension": "eps", "sampled": 3}, 3.0, {"L2"}),
        (LdpGnn, {"reading": "raw", "sampled": "all"}, 1.0, set()),
    ],
    ids=shown,
)
def test_readings_of_lga_pgnn_cost_what_they_do_and_name_their_own_gaps(method, options, features, codes):
    """The claim is for the features; labels cost their epsilon beyond it (L5), and no reading touches edges (L4)."""
    found = audit_method(method(mode="published", epochs=1, **options), gv.Local(1.0, 1.0, "raw"))
    measured = {entry.name: entry.epsilon for entry in found.evidence}
    assert measured["round features"] == pytest.approx(features) and measured["round labels"] == pytest.approx(1.0)
    assert found.verdict == RED and found.claimed == 1.0 and not found.unexpected
    assert found.observed == pytest.approx(features + 1.0)
    assert set(found.codes) == codes | {"L4", "L5"} <= on_card(found.method)
    assert {entry.code for entry in found.witnesses} == codes | {"L4"}


def test_labels_in_the_clear_add_no_gap_to_the_zero_reading():
    found = audit_method(LgaPgnn(mode="published", reading="zero", epochs=1), gv.Local(1.0, "raw", "raw"))
    assert math.isinf(found.observed) and found.codes == ("L4", "L5")


def test_a_bug_in_a_published_mode_is_not_put_down_to_its_known_gaps():
    with patch("graphveil.audit.local.audit._memory", lambda heard: [Failure("memory", "labels", "fresh noise")]):
        found = audit_method(LdpGnn(mode="published", epochs=1), gv.Local(1.0, 1.0, "raw"))
    assert found.unexpected and "unexplained memory" in found.codes


def double_features(of):
    """A method whose features cost, and are declared to cost, twice what was asked."""
    honest = of.randomizer
    return patch.object(of, "randomizer", lambda self, facts, budget: honest(self, facts, 2 * budget))


@pytest.mark.parametrize("method", [LgaPgnn, LdpGnn])
def test_features_that_cost_twice_what_was_asked_are_no_gap_of_the_labels(method):
    """The zero reading has L4 and L5 alone: neither looks like that, though the sum is above the claim in any case."""
    honest = method(mode="published", reading="zero", epochs=1)
    with double_features(type(honest)):
        found = audit_method(honest, gv.Local(1.0, 1.0, "raw"))
    assert ("budget", "features") in {(failure.check, failure.release) for failure in found.failures}
    assert found.unexpected and "unexplained budget" in found.codes


def test_one_part_cannot_spend_what_another_left_over():
    """The sum is as promised; features took the budget of the labels."""
    rounds = LdpGnn.rounds
    halved = lambda self, facts, promise: rounds(self, facts, gv.Local(1.0, promise.labels / 2, "raw"))
    with double_features(LdpGnn), patch.object(LdpGnn, "rounds", halved):
        found = audit_method(LdpGnn(epochs=1), gv.Local(1.0, 2.0, "raw"))
    assert found.observed == pytest.approx(3.0) == found.claimed
    assert found.verdict == RED and found.unexpected
    assert [(failure.check, failure.release) for failure in found.failures] == [("budget", "features")]


def test_the_zero_reading_is_what_sound_mode_does():
    found = audit_method(LgaPgnn(epochs=1), gv.Local(1.0, 1.0, "raw"))
    assert found.verdict == GREEN and found.codes == ()


def test_labels_in_the_clear_are_infinite_and_said_so():
    found = audit_method(Lpgnn(), gv.Local(1.0, "raw", "raw"))
    assert math.isinf(found.observed) and any("LABEL" in note for note in found.notes)


def test_a_curators_method_has_no_local_audit():
    with pytest.raises(InputError, match="curator"):
        audit_method(DpMlp(), gv.Local(1.0, 1.0, "raw"))
