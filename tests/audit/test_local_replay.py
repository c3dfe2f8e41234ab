"""The replay of a local run: which parts of the other graph differ, and what gives a leaking server away."""

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.local.audit import audit_local, local_graph
from graphveil.audit.local.replay import LEAK, listen, replay, unseen_changed
from graphveil.audit.result import RED
from graphveil.graph.validate import validate
from graphveil.methods.local import LocalRecipe
from graphveil.methods.lpgnn import Lpgnn
from graphveil.methods.rr_edges import RrEdges
from graphveil.privacy.local import Local, Part
from tests.audit.mutants import NAMED
from tests.audit.mutants.local import inside


@pytest.fixture(scope="module")
def graph():
    return validate(local_graph(0))


def arcs(graph):
    return {tuple(arc) for arc in graph.lists.edge_index().T.tolist()}


def test_everything_changes_that_is_not_raw(graph):
    other = unseen_changed(graph, Local(1.0, 1.0, 1.0), lengths_public=True)
    labelled = graph.labels >= 0
    assert (other.labels[labelled] != graph.labels[labelled]).all() and ((other.labels >= 0) == labelled).all()
    assert other.labels.max() < graph.classes
    assert not np.array_equal(np.asarray(other.rows.values), np.asarray(graph.rows.values))
    assert np.array_equal(other.lists.out_degrees, graph.lists.out_degrees)
    assert len(arcs(other) & arcs(graph)) < len(arcs(graph)) / 2
    assert all(sender != receiver for sender, receiver in arcs(other))
    hidden = unseen_changed(graph, Local(1.0, 1.0, 1.0), lengths_public=False)
    assert (hidden.lists.out_degrees != graph.lists.out_degrees).mean() > 0.5


def test_raw_parts_stay_as_they_are(graph):
    other = unseen_changed(graph, Local("raw", "raw", "raw"), lengths_public=True)
    assert other.rows is graph.rows and other.labels is graph.labels and other.lists is graph.lists


@pytest.mark.parametrize(
    ("name", "where"),
    [("second broadcast of clean labels", "histogram-2"), ("true degrees where they are hidden", "model")],
)
def test_a_server_that_reads_past_the_reports_leaks(name, where):
    mutant = NAMED[name]
    with mutant.plant():
        found = audit_local(mutant.method(), mutant.promise)
    assert found.verdict == RED and {failure.check for failure in found.failures} == {LEAK}
    assert where in {failure.release for failure in found.failures}


class Chooser(LocalRecipe):
    """Asks one or two rounds of histograms as the hidden lengths say."""

    def facts_for(self, graph, promise):
        self.histogram_rounds = 1 + int(graph.lists.arcs == validate(local_graph(0)).lists.arcs)
        return super().facts_for(graph, promise)


class Peeking(Lpgnn):
    """Adds the clean labels to the scores."""

    def train(self, session):
        predictor = super().train(session)
        labels = inside(session).clients[0]._records[Part.LABELS]
        predictor.scores[labels >= 0, labels[labels >= 0]] += 1e-9
        return predictor


@pytest.mark.parametrize(
    ("method", "promise", "where"),
    [
        (Chooser(epochs=2, degrees="noisy"), gv.Local("withheld", 1.0, 1.0), "rounds"),
        (Peeking(epochs=2, hidden=4), gv.Local(1.0, 1.0, "raw"), "model"),
    ],
)
def test_leaks_through_rounds_and_scores_are_seen(method, promise, where):
    data = local_graph(0)
    found = replay(method, data, promise, 0, listen(method, data, promise, 0))
    assert where in {failure.release for failure in found}


@pytest.mark.parametrize(
    ("method", "promise"),
    [
        (LocalRecipe(epochs=2, degrees="noisy", histogram_rounds=2), gv.Local("withheld", "raw", 1.0)),
        (RrEdges(epochs=2, hidden=4), gv.Local("raw", 1.0, 4.0)),
    ],
)
def test_servers_of_reports_only_do_not_leak(method, promise):
    data = local_graph(1)
    assert replay(method, data, promise, 1, listen(method, data, promise, 1)) == []
