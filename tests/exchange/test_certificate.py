"""Local promises and certificates: sums per vertex, edge and holder, and raw parts that cannot be overlooked."""

import json
import math

import numpy as np
import pytest

import graphveil as gv
from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.randomizers import (
    BucketResponse,
    Contacts,
    EdgeListResponse,
    LabelHistogram,
    LabelResponse,
    MultiBit,
    NeighbourReplacement,
    Piecewise,
    Rest,
)
from graphveil.exchange.round import Round, check_within
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Part
from graphveil.privacy.mechanisms import mechanism_from_json, mechanism_to_json
from graphveil.privacy.plan import Plan

FACTS = PublicFacts(100, 8, 3)
FEATURES = Round("features", Part.FEATURES, MultiBit(3.0, 8))
LABELS = Round("labels", Part.LABELS, LabelResponse(2.0, 3))


def certify(promise, *rounds, **options):
    plan = Plan(promise, FACTS, tuple(round.release(100) for round in rounds), claim=options.pop("claim", None))
    about = {"method": "test", "mode": "sound", "parameters": {}} | options
    return Certificate.of(plan, plan.steps, **about)


def test_features_and_label_of_a_vertex_add_up_and_raw_edges_are_shouted():
    certificate = certify(gv.Local(3, 2, "raw"), FEATURES, LABELS)
    assert certificate.epsilon == pytest.approx(5.0, abs=1e-9) and certificate.per_vertex == certificate.epsilon
    assert certificate.per_edge is None and certificate.per_list is None
    assert certificate.holds and certificate.to_json()["promise"]["edges"] == "raw"
    assert "SENT IN THE CLEAR: THE CONTACT LIST OF EVERY VERTEX" in str(certificate)


@pytest.mark.parametrize("promise", [gv.Local("raw", 2, "raw"), gv.Local(3, "raw", "withheld")])
def test_raw_features_or_labels_leave_no_epsilon(promise):
    certificate = certify(promise, *(r for r in (FEATURES, LABELS) if promise.share(r.part) < math.inf))
    assert certificate.epsilon is None and certificate.per_vertex is None and not certificate.holds
    assert certificate.to_json()["epsilon"] is None
    assert "IN THE CLEAR" in str(certificate) and "NO FINITE VALUE" in str(certificate)


@pytest.mark.parametrize(
    ("randomizer", "swap", "edge"),
    [
        (LabelHistogram(1.0, 4), 1, 2),
        (LabelHistogram(1.0, 4, "hidden"), 1, 1),
        (BucketResponse(1.0, 4), 1, 1),
        (EdgeListResponse(1.0, 100), 2, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_cost_of_a_list_entry_and_of_an_undirected_edge_are_stated_apart(randomizer, swap, edge):
    certificate = certify(gv.Local("withheld", 2, swap), LABELS, Round("edges", Part.EDGES, randomizer))
    assert certificate.per_list == pytest.approx(swap, abs=1e-9)
    assert certificate.per_edge == pytest.approx(edge, abs=1e-9)
    assert certificate.epsilon == pytest.approx(2 + swap, abs=1e-9) and certificate.holds


def test_two_rounds_on_the_same_part_add_up():
    rounds = [Round(f"histogram-{i}", Part.EDGES, LabelHistogram(0.5, 4)) for i in (1, 2)]
    certificate = certify(gv.Local("withheld", "withheld", 1.0), *rounds)
    assert certificate.per_list == pytest.approx(1.0) and certificate.holds
    assert not certify(gv.Local("withheld", "withheld", 0.9), *rounds).holds


def test_a_holder_pays_for_all_its_vertices():
    certificate = certify(gv.Local(3, 2, "raw"), FEATURES, LABELS, holders={"east": 40, "west": 60})
    assert certificate.per_holder["east"] == pytest.approx(200) and certificate.per_holder["west"] == pytest.approx(300)
    assert "features and labels of all 40 vertices of holder 'east'" in str(certificate)


def test_published_mechanisms_without_an_epsilon_have_none_on_the_certificate():
    raw = Round("features", Part.FEATURES, Piecewise(1.0, 8, sampled=1, rest=Rest.RAW))
    certificate = certify(gv.Local(1, 2, "raw"), raw, LABELS, mode="published", claim=3.0)
    assert certificate.epsilon is None and certificate.epsilon_claimed == 3.0 and not certificate.holds
    assert "HAS NO FINITE EPSILON: 7 of 8 attributes" in str(certificate)
    assert certificate.warnings[1].endswith("any delta is at least 0.875")
    edges = Round("edges", Part.EDGES, NeighbourReplacement(1.0, Contacts.of([[1], [0]])))
    certificate = certify(gv.Local("withheld", 2, 1.0), LABELS, edges)
    assert certificate.per_edge is None and certificate.epsilon is None
    assert "lists" not in json.dumps(certificate.to_json()["releases"])  # private contact lists never reach the file


def test_a_certificate_survives_json():
    certificate = certify(gv.Local(3, 2, "raw"), FEATURES, LABELS, seed=4, holders={"a": 100})
    body = json.loads(json.dumps(certificate.to_json(), allow_nan=False))
    back = Certificate.from_json(body)
    assert back.to_json() == certificate.to_json() and str(back) == str(certificate)
    assert "seeded" in str(certificate)


def test_promises_name_what_they_cover():
    assert gv.Local(3, 3, "raw").covers == "features and label of one vertex"
    assert gv.Local("withheld", 3, 1).covers == "features, label and one entry of the contact list of one vertex"
    assert gv.Local("withheld", 3, 1).epsilon == 4 and gv.Local("raw", 3, 1).epsilon == math.inf
    assert gv.Local("2.5", 3, "raw").features == 2.5


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "open", 40, None, np.array([1.0])])
def test_unusable_budgets_are_refused_with_what_to_do(bad):
    with pytest.raises(InputError, match="labels: "):
        gv.Local("withheld", bad, "raw")


@pytest.mark.parametrize(
    ("method", "told"),
    [(gv.LocalRecipe(), True), (gv.LocalRecipe(degrees="noisy"), False), (gv.RrEdges(epochs=1), False)],
)
def test_lengths_of_lists_reach_the_collector_only_where_they_are_public(monkeypatch, method, told):
    seen = []
    train = type(method).train

    def watching(self, session):
        seen.append(session.degrees)
        return train(self, session)

    monkeypatch.setattr(type(method), "train", watching)
    features = 1.0 if method.name == "rr-edges" else "withheld"
    data = gv.load_dataset("csbm", seed=0, nodes=60)
    certificate = method.fit(data, gv.Local(features, 3.0, 2.0), seed=0).certificate
    assert (seen[0] is not None) == told
    change = "rewired" if told else "added or removed"
    assert f"one undirected edge, in all lists ({change})" in str(certificate)


def test_lists_alone_are_promised_where_features_and_labels_are_raw():
    """The relation decides what epsilon is for; it is kept by JSON, and never guessed for parts that are randomised."""
    promise = gv.Local("raw", "raw", 2)
    assert promise.relation == "zero-out" and promise.epsilon == 2.0
    assert promise.covers == "one entry of the contact list of one vertex, added or removed"
    assert gv.Local.from_json(promise.to_json()) == promise == promise.at(0.0)
    exchange = gv.Local("raw", "raw", 2, relation="replace")
    assert exchange.epsilon == float("inf") and gv.Local.from_json(exchange.to_json()) == exchange != promise
    assert gv.Local("withheld", "raw", 2, relation="zero-out").epsilon == 2.0
    for others in (("withheld", "raw", 2), (3, "raw", 2), ("raw", "raw", "raw"), ("raw", "raw", "withheld")):
        assert gv.Local(*others).relation == "replace"
    for parts in ((3, "raw", 2), ("raw", 1, 2), ("raw", "raw", "raw"), ("raw", "raw", "withheld")):
        with pytest.raises(InputError, match="contact lists alone"):
            gv.Local(*parts, relation="zero-out")


def test_a_field_that_came_later_is_written_only_where_it_says_something():
    """Certificates of exchanged entries stay as they were: files of earlier versions verify."""
    exchanged, grown = LabelHistogram(1.0, 3, "hidden"), LabelHistogram(1.0, 3, "hidden", "zero-out")
    assert set(mechanism_to_json(exchanged)) == {"kind", "budget", "bins", "lengths"}
    assert mechanism_to_json(grown)["relation"] == "zero-out"
    assert [mechanism_from_json(mechanism_to_json(one)) for one in (exchanged, grown)] == [exchanged, grown]


def test_a_round_for_another_relation_than_promised_is_not_answered():
    histogram = lambda relation: Round("edges", Part.EDGES, LabelHistogram(1.0, 3, "hidden", relation))
    allowed = {"replace": gv.Local("withheld", "withheld", 1), "zero-out": gv.Local("raw", "raw", 1)}
    for relation, promise in allowed.items():
        check_within(promise, [histogram(relation)])
        other = "replace" if relation == "zero-out" else "zero-out"
        with pytest.raises(PrivacyError, match=f"for the relation {other}, {relation} is promised"):
            check_within(promise, [histogram(other)])


def test_what_a_round_costs_is_said_of_one_entry_not_of_a_list():
    for relation in ("replace", "zero-out"):
        assert LabelHistogram(2.0, 3, "hidden", relation).words() == "label-histogram, epsilon 2 per list entry"


def test_no_plan_has_a_round_for_another_relation_than_promised():
    """Whoever wrote the method: an entry that is exchanged costs twice what one that comes or goes does."""
    grown = Round("edges", Part.EDGES, LabelHistogram(1.0, 3, "hidden", "zero-out")).release(10)
    facts = PublicFacts(10, 2, 3)
    assert Plan(gv.Local("raw", "raw", 1), facts, (grown,)).epsilon() == pytest.approx(1.0)
    with pytest.raises(PrivacyError, match="for the relation zero-out, replace is promised"):
        Plan(gv.Local("withheld", "withheld", 1), facts, (grown,))
