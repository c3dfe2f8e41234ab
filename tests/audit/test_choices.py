"""Choices that read private labels: with every release frozen, the model must be the same on any private data."""

from contextlib import nullcontext

import numpy as np
import pytest

from graphveil.audit import audit_method
from graphveil.audit.central.conformance import Outcome, awkward_graph, only_releases
from graphveil.audit.central.neighbours import everybody_changed
from graphveil.audit.central.replay import Recording
from graphveil.audit.result import RED
from graphveil.audit.settings import audit_settings
from graphveil.graph.validate import validate
from graphveil.methods.ballot import Ballot
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.dpdgc import Dpdgc
from graphveil.methods.gap import Gap
from graphveil.methods.nip_gnn import NipGnn
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import EdgeLevel, NodeLevel
from tests.audit.mutants.central import epoch_chosen_on_validation_labels, weights_chosen_on_validation_labels

RECORD = NodeLevel(4.0, 1e-4)


@pytest.mark.parametrize(
    ("method", "planted"),
    [
        *((method, epoch_chosen_on_validation_labels) for method in (Ballot(), DpMlp(), Gap(), Dpdgc(), NipGnn())),
        (DpMlp(network="paper", batch_size=5), epoch_chosen_on_validation_labels),
        (DpMlp(), weights_chosen_on_validation_labels),
        (Gap(), weights_chosen_on_validation_labels),
    ],
    ids=lambda one: getattr(one, "__name__", repr(one)),
)
def test_choosing_on_true_validation_labels_is_seen_with_the_settings_of_an_audit(method, planted):
    """One run is enough in at least nine cases of ten, whatever the noise: three runs miss it in one case of a thousand.

    Between two candidates (the last weights or their average) fewer exchanges turn the choice than between all epochs.
    """
    method = method.set_params(**audit_settings(method))
    data, _ = awkward_graph(method)
    plan, seen = method.plan(method.facts(data), RECORD), []
    for plant in (nullcontext, *[planted] * 3):
        with plant():
            run = Recording(method, plan, data, len(seen))
            model = run.run(data, run.recorder)
            seen.append([failure.check for failure in only_releases(run, model, Outcome.of(model, data))])
    assert not seen[0] and any("leak" in found for found in seen[1:])


def test_choosing_on_true_validation_labels_turns_the_audit_red():
    method = DpMlp(network="paper", batch_size=5, epochs=6, hidden=4)
    with epoch_chosen_on_validation_labels():
        found = [audit_method(method, RECORD, runs=1, samples=4000, draws=200, outside=False, seed=s) for s in (2, 3)]
    assert RED in [audit.verdict for audit in found]


@pytest.mark.parametrize("promise", [RECORD, EdgeLevel(4.0, 1e-4)], ids=lambda promise: promise.level.value)
def test_everybody_changed_has_the_same_public_facts_and_nothing_private_in_common(promise):
    data, _ = awkward_graph(DpMlp())
    degrees = lambda one: np.sort(np.bincount(one.edge_index[0].numpy(), minlength=one.num_nodes)).tolist()
    for other in everybody_changed(data, promise):
        assert PublicFacts.of(validate(other)) == PublicFacts.of(validate(data)) and degrees(other) == degrees(data)
        assert not np.array_equal(other.edge_index, data.edge_index)
        public = promise.level == "edge"
        assert bool((other.x == data.x).all()) == public and bool((other.y == data.y).all()) == public
