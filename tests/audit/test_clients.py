"""Clients on neighbouring records: the same people report, others' reports stay, and what is sent has the stated law.

The comparison with equal coins is exact; a law is rejected without cause with probability at most 4e-9 per round.
"""

import pytest

import graphveil as gv
from graphveil.audit import audit_method
from graphveil.audit.local.clients import CHECK, on_neighbouring_records
from graphveil.audit.local.replay import listen
from graphveil.audit.result import GREEN, RED
from graphveil.methods.graph_privatizer import GraphPrivatizer
from graphveil.methods.local import LocalRecipe
from graphveil.methods.lpgnn import Lpgnn
from graphveil.methods.rr_edges import RrEdges
from tests.audit.healthy import remembered
from tests.audit.mutants.local import (
    class_0_is_no_label,
    features_centred_by_the_true_mean,
    label_rides_on_the_list,
    truer_of_two_draws,
)

BOTH, LISTS = gv.Local(1.0, 1.0, "raw"), gv.Local("withheld", 1.0, 1.0)
LPGNN, RECIPE = Lpgnn(epochs=1, hidden=4), LocalRecipe(epochs=1)


def verdict(method, promises):
    return audit_method(method, promises[0])


def audited_with(plant, method, promise):
    assert remembered(verdict, method, promise).verdict == GREEN
    with plant():
        return audit_method(method, promise)


def test_a_client_that_treats_class_0_as_no_label_turns_the_audit_red():
    found = audited_with(class_0_is_no_label, LPGNN, BOTH)
    assert found.verdict == RED
    assert any(f.check == CHECK and "other people report" in f.detail for f in found.failures)


def test_a_client_that_centres_features_by_the_true_mean_turns_the_audit_red():
    found = audited_with(features_centred_by_the_true_mean, LPGNN, BOTH)
    assert found.verdict == RED
    assert any(f.check == CHECK and "somebody else's report" in f.detail for f in found.failures)


def test_a_client_that_draws_twice_and_sends_the_truer_report_turns_the_audit_red():
    """Nobody else's report changes: only the law of whole reports shows it."""
    found = audited_with(truer_of_two_draws, LPGNN, BOTH)
    assert {(f.check, f.release) for f in found.failures} == {("law", "labels")}


def test_a_report_on_contacts_that_carries_the_label_along_turns_the_audit_red():
    with label_rides_on_the_list():
        found = audit_failures(RECIPE, LISTS)
    assert any(f.check == CHECK and "on something else" in f.detail for f in found)


def audit_failures(method, promise):
    from graphveil.audit.local.audit import local_graph

    data = local_graph(0)
    heard = listen(method, data, promise, 0)
    graph = method.validated(data, "raise")
    return list(on_neighbouring_records(method, graph, heard.server.plan, heard.answers.broadcasts, 0))


@pytest.mark.parametrize("method", [LPGNN, RECIPE, GraphPrivatizer(epochs=1), RrEdges(epochs=1)], ids=lambda m: m.name)
def test_clients_on_neighbouring_records_differ_in_their_own_report_only(method):
    promise = gv.Local("withheld" if method is RECIPE else 1.0, 1.0, "raw" if method is LPGNN else 1.0)
    assert not [str(failure) for failure in audit_failures(method, promise)]
