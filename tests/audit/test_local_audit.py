"""Local methods: exact ratios of what is really sent, round by round."""

import math

import pytest

import graphveil as gv
from graphveil.audit import audit_method
from graphveil.audit.everything import LOCAL_PROMISES, promises_of
from graphveil.audit.result import GREEN, RED
from graphveil.errors import InputError
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.graph_privatizer import GraphPrivatizer
from graphveil.methods.lga_pgnn import LgaPgnn
from graphveil.methods.lpgnn import Lpgnn
from graphveil.methods.registry import method_class, method_names
from graphveil.privacy.local import LOCAL

LOCAL_METHODS = [name for name in method_names() if LOCAL in method_class(name)().supports]


@pytest.mark.parametrize("name", LOCAL_METHODS)
def test_every_sound_local_method_attains_its_epsilon_and_never_exceeds_it(name):
    promises = promises_of(method_class(name)(), 4.0)
    assert promises, f"{name} takes none of {LOCAL_PROMISES}"
    for promise in promises:
        found = audit_method(method_class(name)(), promise)
        assert found.verdict == GREEN, (promise, found.failures)
        assert found.observed == pytest.approx(promise.epsilon, rel=1e-6)


def test_published_graph_privatizer_is_infinite():
    found = audit_method(GraphPrivatizer(mode="published"), gv.Local(1.0, 1.0, 1.0))
    assert found.verdict == RED and math.isinf(found.observed) and found.claimed == 3.0
    assert "G1" in found.codes and found.witnesses


def test_published_graph_privatizer_with_public_edges_is_not_blamed_for_its_edges():
    found = audit_method(GraphPrivatizer(mode="published"), gv.Local(1.0, 1.0, "raw"))
    assert found.verdict == GREEN and not found.witnesses


def test_published_lga_pgnn_is_infinite_and_its_zero_reading_is_not():
    raw = audit_method(LgaPgnn(mode="published", reading="raw", epochs=1), gv.Local(1.0, 1.0, "raw"))
    assert raw.verdict == RED and math.isinf(raw.observed) and raw.claimed == 1.0
    printed = audit_method(LgaPgnn(mode="published", epochs=1), gv.Local(1.0, 1.0, "raw"))
    assert (
        printed.verdict == RED and 1.0 < printed.observed < math.inf
    )  # epsilon for each attribute, and one is claimed
    zero = audit_method(LgaPgnn(epochs=1), gv.Local(1.0, 1.0, "raw"))
    assert zero.verdict == GREEN


def test_labels_in_the_clear_are_infinite_and_said_so():
    found = audit_method(Lpgnn(), gv.Local(1.0, "raw", "raw"))
    assert math.isinf(found.observed) and any("LABEL" in note for note in found.notes)


def test_a_curators_method_has_no_local_audit():
    with pytest.raises(InputError, match="curator"):
        audit_method(DpMlp(), gv.Local(1.0, 1.0, "raw"))
