"""Clients on neighbouring records: the same people report, others' reports stay, and what is sent has the stated law.

The comparison with equal coins is exact; a law is rejected without cause with probability at most 4e-9 per round.
"""

from unittest.mock import patch

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit import audit_method
from graphveil.audit.local.clients import CHECK, on_neighbouring_records
from graphveil.audit.local.replay import listen
from graphveil.audit.result import GREEN, RED
from graphveil.exchange.client import Client
from graphveil.exchange.report import Report
from graphveil.methods.graph_privatizer import GraphPrivatizer
from graphveil.methods.local import LocalRecipe
from graphveil.methods.lpgnn import Lpgnn
from graphveil.methods.rr_edges import RrEdges
from graphveil.privacy.local import Part
from tests.audit.healthy import remembered

BOTH, LISTS = gv.Local(1.0, 1.0, "raw"), gv.Local("withheld", 1.0, 1.0)
LPGNN, RECIPE = Lpgnn(epochs=1, hidden=4), LocalRecipe(epochs=1)


def verdict(method, promises):
    return audit_method(method, promises[0])


def audited_with(randomize, method, promise):
    assert remembered(verdict, method, promise).verdict == GREEN
    with patch.object(Client, "_randomize", randomize(Client._randomize)):
        return audit_method(method, promise)


def with_records(self, part, records):
    """The same client with other records of one part."""
    other = Client(self.ids, {**self._records, part: records}, self.rounds.values(), self._noise, self.holder)
    other.memory = self.memory
    return other


def class_0_is_no_label(original):
    def randomize(self, round, broadcast):
        labels = self._records[Part.LABELS] if round.part is Part.LABELS else None
        changed = self if labels is None else with_records(self, Part.LABELS, np.where(labels == 0, -1, labels))
        return original(changed, round, broadcast)

    return randomize


def test_a_client_that_treats_class_0_as_no_label_turns_the_audit_red():
    found = audited_with(class_0_is_no_label, LPGNN, BOTH)
    assert found.verdict == RED
    assert any(f.check == CHECK and "other people report" in f.detail for f in found.failures)


def features_centred(original):
    def randomize(self, round, broadcast):
        if round.part is not Part.FEATURES:
            return original(self, round, broadcast)
        rows = self._records[Part.FEATURES]
        return original(with_records(self, Part.FEATURES, rows - rows.mean(axis=0)), round, broadcast)

    return randomize


def test_a_client_that_centres_features_by_the_true_mean_turns_the_audit_red():
    found = audited_with(features_centred, LPGNN, BOTH)
    assert found.verdict == RED
    assert any(f.check == CHECK and "somebody else's report" in f.detail for f in found.failures)


def the_cheaper_of_two_draws(original):
    """The report that says more about the record is sent: the ratio of what is sent is larger than that of one draw."""

    def randomize(self, round, broadcast):
        first, second = (original(self, round, broadcast) for _ in range(2))
        if round.part is not Part.LABELS:
            return first
        true = self._records[Part.LABELS][np.isin(self.ids, first.ids)]
        return Report(first.round, first.ids, np.where(first.values == true, first.values, second.values), first.holder)

    return randomize


def test_a_client_that_draws_twice_and_sends_the_truer_report_turns_the_audit_red():
    """Nobody else's report changes: only the law of whole reports shows it."""
    found = audited_with(the_cheaper_of_two_draws, LPGNN, BOTH)
    assert {(f.check, f.release) for f in found.failures} == {("law", "labels")}


def labels_decide_the_list(original):
    def randomize(self, round, broadcast):
        report = original(self, round, broadcast)
        if round.part is not Part.EDGES:
            return report
        return Report(
            report.round, report.ids, report.values + 1e-6 * self._records[Part.LABELS][:, None], report.holder
        )

    return randomize


def test_a_report_on_contacts_that_carries_the_label_along_turns_the_audit_red():
    with patch.object(Client, "_randomize", labels_decide_the_list(Client._randomize)):
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
