"""Roster in lock step: both worlds on one history, both forms of edge cover, every decision; and the audit as users run it."""

import math

import numpy as np
import pytest

from graphveil.audit import audit_method
from graphveil.audit.central.audit import OWN_LISTS
from graphveil.audit.central.conformance import check_private_method
from graphveil.audit.central.neighbours import changed_lists, neighbours, worst_case_graph
from graphveil.audit.central.replay import Replayer
from graphveil.audit.result import GREEN
from graphveil.methods.roster import Roster
from graphveil.methods.roster.statements import ONE_EDGE, WITH_EDGES
from graphveil.privacy.accounting.loss import gaussian_mu
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import KNeighborLevel, NodeLevel
from tests.audit.test_ballot_audit import Louder, realised
from tests.methods.roster_runs import MODES, decided, roster
from tests.methods.test_roster import with_list

PROMISES = {
    "record": NodeLevel(4.0, 1e-4),
    "replace": NodeLevel(4.0, 1e-4, relation="replace"),
    "k = 1": KNeighborLevel(1, 4.0, 1e-4),
    "k = 5": KNeighborLevel(5, 4.0, 1e-4),
}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("cover", [True, False])
@pytest.mark.parametrize("promise", PROMISES)
def test_the_realised_mu_never_exceeds_the_promise_on_any_history(promise, cover):
    """Every decision the test could take, without noise and with far too much, short steps and long ones."""
    data, names = worst_case_graph(1)
    for number, mode in enumerate(MODES):
        method = roster(steps=2, edge_cover=cover, learning_rate=(0.1, 5.0)[number % 2])
        with decided(mode):
            worst = realised(method, PROMISES[promise], data, names, (0.0, 20.0)[number // 2], seed=number)
        assert max(worst.values()) <= 1 + 1e-9, (mode, worst)


def test_a_labelled_hub_and_a_query_person_pay_nearly_all_of_the_promise():
    """The accounting is tight under record: an audit that never came close would prove little."""
    data, names = worst_case_graph(1)
    for cover in (True, False):
        with decided("agreement"):
            worst = realised(roster(edge_cover=cover), PROMISES["record"], data, {"hub": names["hub"]}, 1.0, seed=0)
        assert worst["train"] > 0.97 and worst["calibration"] > 0.97


def edges_in_lock_step(cover, mode, promise, rate, factor=1.0):
    """The largest realised mu of one undirected edge that vanishes from both lists, and the certificate of the run."""
    data, _ = worst_case_graph(1)
    edges, rng = data.edge_index.numpy(), np.random.default_rng(0)
    chosen = np.unique(edges[:, edges[0] < edges[1]], axis=1).T
    with decided(mode):
        method, recorder = roster(steps=2, edge_cover=cover, learning_rate=rate), Louder(factor)
        model, worst = method.fit(data, promise, seed=0, tape=recorder), 0.0
        for a, b in rng.permutation(chosen)[:12]:
            gone = ((edges[0] == a) & (edges[1] == b)) | ((edges[0] == b) & (edges[1] == a))
            other = data.clone()
            other.edge_index = data.edge_index[:, ~gone]
            replayer = Replayer(recorder.events, None)
            method.fit(other, promise, seed=0, tape=replayer)
            worst = max(worst, sum((m.distance / m.release.mechanism.sigma) ** 2 for m in replayer.measured))
    return math.sqrt(worst), model.certificate


@pytest.mark.parametrize("promise", ["record", "replace", "k = 1"])
@pytest.mark.parametrize("cover", [True, False])
def test_one_undirected_edge_costs_at_most_what_the_certificate_prints(cover, promise):
    for mode, rate in (("lists", 5.0), ("agreement", 1.0)):
        spent, certificate = edges_in_lock_step(cover, mode, PROMISES[promise], rate, factor=5.0)
        assert 0 < spent <= gaussian_mu(certificate.implied[ONE_EDGE], 1e-4)
        if cover:
            assert certificate.implied[ONE_EDGE] <= 4.0 * (1 + 1e-9)


@pytest.mark.parametrize("cover", [True, False])
def test_a_person_who_vanishes_with_edges_costs_at_most_what_the_record_certificate_prints(cover):
    """Rows of contacts included: the figure is printed under record, where they are released."""
    data, names = worst_case_graph(1)
    for k in (1, 5):
        with decided("agreement"):
            method, recorder = roster(steps=2, edge_cover=cover, learning_rate=1.0), Louder(1.0)
            model = method.fit(data, PROMISES["record"], seed=k, tape=recorder)
            for neighbour in neighbours(data, names, KNeighborLevel(k, 4.0, 1e-4), k):
                replayer = Replayer(recorder.events, neighbour.record)
                method.fit(neighbour.data, PROMISES["record"], seed=k, tape=replayer)
                spent = sum((m.distance / m.release.mechanism.sigma) ** 2 for m in replayer.measured)
                assert math.sqrt(spent) <= model.certificate.implied[WITH_EDGES.format(k)]


@pytest.mark.parametrize(("cover", "mode"), [(True, "agreement"), (False, "lists")])
def test_both_forms_conform_for_every_guarantee(cover, mode):
    method = roster(edge_cover=cover, learning_rate=1.0)
    with decided(mode):
        report = check_private_method(method)
    assert len(report.promises) == len(method.supports) == 3


@pytest.mark.parametrize("promise", PROMISES)
def test_an_audit_finds_no_violation_and_comes_close_where_the_bounds_are_attained(promise):
    """Under record the observed epsilon is close to the claim; the worst k edges are in the declared pair, not in this graph."""
    found = audit_method(Roster(), PROMISES[promise], runs=1, samples=300_000, draws=2000, outside=False)
    assert found.verdict == GREEN
    assert max(entry.epsilon for entry in found.accounting) >= 0.9 * found.claimed
    if promise in ("record", "replace"):
        assert found.observed >= 0.9 * found.claimed
    assert (OWN_LISTS in found.notes) == promise.startswith("k")


def test_lists_that_change_are_told_from_those_that_do_not():
    data, _ = worst_case_graph(1)
    assert changed_lists(data, data).size == 0
    assert changed_lists(data, with_list(data, 4, [7, 8])).tolist() == [4]
    assert PublicFacts.of(data).nodes == data.num_nodes
