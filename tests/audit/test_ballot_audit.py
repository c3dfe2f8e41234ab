"""Ballot in lock step: both worlds on one history, every mode, every kind of canary, adaptive shares included.

On a fixed history the releases are Gaussian with known scales, so the realised mu of a pair of worlds is exact:
``sum (distance / sigma)^2 <= mu^2`` must hold for every history, not on average.
"""

import math

import numpy as np
import pytest

from graphveil.audit.central.conformance import check_private_method
from graphveil.audit.central.neighbours import neighbours, worst_case_graph
from graphveil.audit.central.replay import Recorder, Replayer
from graphveil.graph import load_dataset
from graphveil.methods.ballot import Ballot
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import EdgeLevel, KNeighborLevel, NodeLevel

SMALL = {"steps": 5, "combiner_steps": 4, "epochs": 2}
MODES = {
    "homophilous": {"assume": "homophilous", "least_votes": 0.5},
    "structural": {"assume": "structural"},
    "features": {"audible": 0.0, "heterophily": 1e9, "structural": "off", "publish": "noisy", "release_accuracy": True},
    "unheard": {"audible": 1e9},
}
PROMISES = {
    "record": NodeLevel(4.0, 1e-4),
    "replace": NodeLevel(4.0, 1e-4, relation="replace"),
    "node": NodeLevel(4.0, 1e-4, adjacency="node"),
    "k": KNeighborLevel(2, 4.0, 1e-4),
    "k replace": KNeighborLevel(2, 4.0, 1e-4, relation="replace"),
    "bounded": NodeLevel(4.0, 1e-4, adjacency="bounded-degree", max_degree=12),
    "bounded replace": NodeLevel(4.0, 1e-4, adjacency="bounded-degree", max_degree=12, relation="replace"),
}


class Louder(Recorder):
    """Histories an ordinary run would hardly see: the noise is multiplied by a factor, 0 included."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def emit(self, release: Release, clean, perturb):  # type: ignore[no-untyped-def]
        return super().emit(release, clean, lambda: clean + self.factor * (perturb() - clean))


def realised(method, promise, data, names, factor, seed):
    """The largest realised mu by kind of record over all neighbours, in units of the promised mu."""
    recorder = Louder(factor)
    plan = method.fit(data, promise, seed=seed, tape=recorder).certificate.promise
    mu = method.plan(_facts(data), plan).mu
    weaker = method.plan(_facts(data), plan).weaker
    worst: dict[str, float] = {}
    for neighbour in neighbours(data, names, promise, seed, weaker):
        replayer = Replayer(recorder.events, neighbour.record)
        method.fit(neighbour.data, promise, seed=seed, tape=replayer)
        replayer.finish()
        spent = sum((m.distance / m.release.mechanism.sigma) ** 2 for m in replayer.measured)
        worst[neighbour.kind] = max(worst.get(neighbour.kind, 0.0), math.sqrt(spent) / mu)
    return worst


def _facts(data):
    from graphveil.privacy.facts import PublicFacts

    return PublicFacts.of(data)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.filterwarnings("ignore")
def test_the_realised_mu_never_exceeds_the_promise_on_any_history(mode, promise):
    """Without noise and with far too much; histories of ordinary noise are those of conformance and of adaptive shares."""
    data, names = worst_case_graph(1)
    method = Ballot(**{**SMALL, **MODES[mode]})
    for factor in (0.0, 20.0):
        worst = realised(method, PROMISES[promise], data, names, factor, seed=3)
        assert max(worst.values()) <= 1 + 1e-9, worst


@pytest.mark.filterwarnings("ignore")
def test_a_training_hub_pays_nearly_all_of_the_promise_in_homophilous_mode():
    """The accounting is tight: an audit that never came close would prove little."""
    data, names = worst_case_graph(1)
    hub = {"hub": names["hub"]}
    method = Ballot(**{**SMALL, **MODES["homophilous"], "learning_rate": 1e-6})
    assert realised(method, PROMISES["record"], data, hub, 0.0, seed=0)["train"] > 0.9


@pytest.mark.parametrize("promise", [PROMISES["record"], PROMISES["k"]], ids=["record", "k"])
def test_adaptive_shares_stay_within_the_promise_for_every_kind(promise):
    """Default thresholds on a graph large enough that modes and shares depend on the noise; worlds chosen at random."""
    data = load_dataset("csbm", seed=0, nodes=400)
    rng = np.random.default_rng(0)
    kinds = {"train": data.train_mask, "calibration": data.val_mask, "query": data.test_mask}
    seen = set()
    for history in range(6):
        names = {kind: int(rng.choice(np.flatnonzero(mask.numpy()))) for kind, mask in kinds.items()}
        recorder = Louder(float(rng.choice([0.3, 1.0, 3.0])))
        method = Ballot(steps=5, combiner_steps=4)
        model = method.fit(data, promise, seed=history, tape=recorder)
        seen.add((model.predictor.mode, tuple(round(e.mechanism.sigma, 9) for e in recorder.events)))
        mu = model.certificate.implied["mu"]
        for neighbour in neighbours(data, names, promise, history):
            replayer = Replayer(recorder.events, neighbour.record)
            method.fit(neighbour.data, promise, seed=history, tape=replayer)
            replayer.finish()
            spent = sum((m.distance / m.release.mechanism.sigma) ** 2 for m in replayer.measured)
            assert math.sqrt(spent) <= mu * (1 + 1e-9), (neighbour.story, neighbour.kind)
    assert len(seen) > 1, "all histories took the same path with the same shares: nothing adaptive was tested"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_one_edge_never_costs_more_than_the_promise(directed):
    data, names = worst_case_graph(2)
    promise = EdgeLevel(4.0, 1e-5, directed=directed)
    worst = realised(Ballot(epochs=2), promise, data, names, 1.0, seed=0)
    assert 0.999 < max(worst.values()) <= 1 + 1e-9


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_conforms_for_every_guarantee(mode):
    method = Ballot(**{**SMALL, **MODES[mode]})
    report = check_private_method(method)
    assert len(report.promises) == len(method.supports)


def test_one_undirected_edge_costs_at_most_the_record_promise():
    """The implied sentence of the certificate, in lock step: an edge that vanishes from both lists, between all kinds."""
    data, _ = worst_case_graph(1)
    promise, edges = PROMISES["record"], data.edge_index.numpy()
    for mode in ("homophilous", "structural"):
        method = Ballot(**{**SMALL, **MODES[mode], "least_votes": 0.6})
        recorder = Louder(1.0)
        model = method.fit(data, promise, seed=0, tape=recorder)
        for a, b in edges.T[edges[0] < edges[1]]:
            gone = ((edges[0] == a) & (edges[1] == b)) | ((edges[0] == b) & (edges[1] == a))
            other = data.clone()
            other.edge_index = data.edge_index[:, ~gone]
            replayer = Replayer(recorder.events, None)
            method.fit(other, promise, seed=0, tape=replayer)
            spent = sum((m.distance / m.release.mechanism.sigma) ** 2 for m in replayer.measured)
            assert math.sqrt(spent) <= model.certificate.implied["mu"] * (1 + 1e-9)


@pytest.mark.parametrize("mode", ["homophilous", "structural"])
def test_a_receiver_that_vanishes_with_its_edges_costs_at_most_the_printed_figure(mode):
    """mu sqrt(1 + share of rows D^2) for calibration and query nodes of degree D >= 2: the sentence of the certificate."""
    data, _ = worst_case_graph(1)
    method, recorder = Ballot(**{**SMALL, **MODES[mode], "least_votes": 0.6}), Louder(1.0)
    model = method.fit(data, PROMISES["record"], seed=0, tape=recorder)
    edges = data.edge_index.numpy()
    checked = 0
    for r in np.flatnonzero((data.val_mask | data.test_mask).numpy()):
        degree = int((edges[0] == r).sum())
        if degree < 2:
            continue
        gone = data.clone()
        gone.x[r], gone.y[r] = 0.0, -1
        gone.edge_index = data.edge_index[:, (edges != r).all(axis=0)]
        replayer = Replayer(recorder.events, None)
        method.fit(gone, PROMISES["record"], seed=0, tape=replayer)
        spent = sum((m.distance / m.release.mechanism.sigma) ** 2 for m in replayer.measured)
        limit = model.certificate.implied["mu"] * math.sqrt(1 + method.of_rows(structural=True) * degree**2)
        assert math.sqrt(spent) <= limit
        checked += 1
    assert checked > 3
