"""The fourteen conditions P1 to P14 without which Ballot's proof does not carry over to code, each as a test."""

import math
import warnings

import numpy as np
import pytest
import torch

from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.audit.central.replay import Recorder, Replayer
from graphveil.errors import InputError, PrivacyError
from graphveil.graph import DenseRows, Graph, Lists
from graphveil.graph.validate import validate
from graphveil.methods.ballot import Ballot
from graphveil.methods.ballot.tally import Poll, ballot_sum, centred_votes
from graphveil.methods.common.labels import label_rows
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import EdgeLevel, KNeighborLevel, NodeLevel

RECORD = NodeLevel(4.0, 1e-4)
FAST = {"steps": 4, "combiner_steps": 3, "epochs": 2}
HOMOPHILOUS = {**FAST, "assume": "homophilous", "least_votes": 0.5}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def data():
    return worst_case_graph(1)[0]


def fit(data, promise=RECORD, **options):
    return Ballot(**{**HOMOPHILOUS, **options}).fit(data, promise, seed=0)


def same_releases(one, other):
    return all(np.array_equal(value, other.predictor.arrays()[name]) for name, value in one.predictor.arrays().items())


def moved(before, after, promise=RECORD, **options):
    """How far every release moves between two data sets on one history."""
    method, recorder = Ballot(**{**HOMOPHILOUS, **options}), Recorder()
    method.fit(before, promise, seed=0, tape=recorder)
    replayer = Replayer(recorder.events, None)
    method.fit(after, promise, seed=0, tape=replayer, on_bad_rows="zero")
    replayer.finish()
    largest: dict[str, float] = {}
    for measured in replayer.measured:
        largest[measured.release.name] = max(largest.get(measured.release.name, 0.0), measured.distance)
    return largest


def blanked(data, r):
    other = data.clone()
    other.x[r], other.y[r] = 0.0, -1
    other.edge_index = data.edge_index[:, data.edge_index[0] != r]
    return other


def test_p1_delta_and_noise_at_edge_level_come_from_the_public_number_of_nodes(data):
    fewer = data.clone()
    fewer.edge_index = data.edge_index[:, 10:]
    one, other = (Ballot(**FAST).fit(d, EdgeLevel(1.0), seed=0).certificate for d in (data, fewer))
    assert one.delta == other.delta == 10.0 ** -(math.ceil(math.log10(data.num_nodes)) + 1)
    assert [r.mechanism for r in one.releases] == [r.mechanism for r in other.releases]


def test_p2_repeated_edges_and_self_loops_change_nothing(data):
    crowded = data.clone()
    loops = torch.arange(data.num_nodes).repeat(2, 1)
    crowded.edge_index = torch.cat([data.edge_index, data.edge_index[:, :30], data.edge_index[:, :30], loops], dim=1)
    assert same_releases(fit(data), fit(crowded))


def test_p2_no_column_of_ballots_is_longer_than_one(data):
    graph = validate(data)
    receivers = graph.masks["calibration"] | graph.masks["query"]
    for sender in range(graph.nodes):
        votes = np.zeros((graph.nodes, 1))
        votes[sender] = 1.0
        assert (
            np.linalg.norm(ballot_sum(graph, lambda block, votes=votes: votes[block.slots], receivers, 1)) <= 1 + 1e-12
        )


def test_p3_shapes_do_not_depend_on_who_carries_the_last_class(data):
    only = worst_case_graph(1)[1]["only member of a class"]
    moved(data, blanked(data, only))  # raises Diverged if a shape changed


def test_p3_query_labels_are_read_by_nothing_but_a_released_accuracy(data):
    relabelled = data.clone()
    relabelled.y[data.test_mask] = (data.y[data.test_mask] + 1) % data.num_classes
    assert same_releases(fit(data), fit(relabelled))
    differing: set[str] = set()
    for seed in range(3):  # as many of the few may be right by chance
        recorder, other = Recorder(), Recorder()
        for source, tape in ((data, recorder), (relabelled, other)):
            Ballot(**HOMOPHILOUS, release_accuracy=True).fit(source, RECORD, seed=seed, tape=tape)
        events = zip(recorder.events, other.events, strict=True)
        differing |= {a.name for a, b in events if not np.array_equal(a.clean, b.clean)}
    assert differing == {"accuracy"}


def test_p4_rows_close_to_the_centre_cannot_exceed_the_clipping_norm():
    """Identical rows are as close to their private mean as its noise; in float32 gradients reached 242 to 493 clips."""
    data = worst_case_graph(1)[0]
    data.x = torch.ones(data.num_nodes, 2, dtype=torch.float32) * torch.tensor([0.6, 0.8])
    r = int(data.train_mask.nonzero()[0])
    assert moved(data, blanked(data, r), NodeLevel(1000.0, 1e-4))["own"] <= 0.5 * (1 + 1e-9)


def test_p5_tiny_entries_make_unit_rows_and_one_nan_row_counts_as_absent():
    data = worst_case_graph(1)[0]
    tiny = data.clone()
    tiny.x = torch.full((data.num_nodes, 1433), 3e-23, dtype=torch.float32)
    r = int(data.train_mask.nonzero()[0])
    assert moved(tiny, blanked(tiny, r))["mean"] <= 1 + 1e-9
    poisoned = data.clone()
    poisoned.x[r, 0] = math.nan
    poisoned.edge_index = blanked(data, r).edge_index
    assert all(distance == 0 for distance in moved(blanked(data, r), poisoned).values())


def test_p6_absent_slots_send_no_gradient_and_no_ballot(data):
    train = int(data.train_mask.nonzero()[0])
    query = int(data.test_mask.nonzero()[0])
    for r in (train, query):
        gone = blanked(data, r)
        gone.edge_index = data.edge_index  # the list stays, but nobody is there to send
        graph = validate(gone)
        votes = centred_votes(graph, np.full((graph.nodes, 3), 1 / 3) + np.eye(3)[graph.labels] * 0.1)
        assert not votes[r].any() and not label_rows(graph)[r].any()
    without = validate(blanked(data, train))
    assert without.labels[train] == -1 and not without.present[train]


def test_p6_a_blank_slot_that_keeps_more_than_k_edges_stays_within_the_k_neighbor_bound(data):
    hub = 0
    kept = blanked(data, hub)
    sender, receiver = data.edge_index
    first = receiver[sender == hub][0]
    gone = ((sender == hub) & (receiver == first)) | ((sender == first) & (receiver == hub))
    kept.edge_index = data.edge_index[:, ~gone]
    assert moved(data, kept, KNeighborLevel(1, 4.0, 1e-4))["votes"] <= 1 + 1e-9  # a training node


def test_p7_overlapping_masks_are_refused(data):
    data.val_mask = data.val_mask | data.train_mask
    with pytest.raises(InputError, match="disjoint"):
        Ballot(**FAST).fit(data, RECORD)


def test_p8_a_quarter_million_votes_in_one_row_move_by_the_vote_that_is_taken_away():
    """In float32 one vote can cross a power of two and change how 200 later ones are rounded: 2 instead of 1."""
    votes = 2**18 + 200
    senders = np.arange(1, votes + 1)
    receivers = np.zeros(votes + 1, dtype=bool)
    receivers[0] = True
    values = np.ones((votes + 1, 1))
    values[-200:] = 4000**-0.5

    lists = Lists.from_edge_index(np.stack([senders, np.zeros(votes, dtype=int)]), votes + 1)
    nobody = dict.fromkeys(("train", "calibration", "query"), np.zeros(votes + 1, dtype=bool))
    graph = Graph(DenseRows(torch.zeros(votes + 1, 0)), np.full(votes + 1, -1), lists, nobody, 2)
    told = lambda block: values[block.slots]
    full = ballot_sum(graph, told, receivers, 1)
    values[1] = 0.0
    assert full[0, 0] - ballot_sum(graph, told, receivers, 1)[0, 0] == 1.0


def test_p9_predictions_are_for_the_node_itself_unless_declared_or_paid(data):
    model = fit(data)
    assert model.predict(data).shape == (data.num_nodes,)
    for access in ("public-graph", "charge"):
        with pytest.raises(PrivacyError):
            model.predict(data, access=access)
    assert torch.equal(fit(data, query_features="public").predict(data, access="public-graph"), model.predict(data))


def test_p9_published_predictions_depend_on_releases_only(data):
    model = fit(data, publish="noisy")
    shown = model.predict_proba(data, access="charge")
    other = data.clone()
    other.x = torch.randn_like(data.x)
    assert torch.equal(model.predict_proba(other, access="charge"), shown)
    assert not torch.equal(model.predict_proba(other), model.predict_proba(data))
    assert any(release.name == "published" for release in model.certificate.releases)


def test_p10_the_certificate_prints_the_promise_not_the_spend_of_the_run(data):
    quiet, full = fit(data, assume="auto", audible=1e9).certificate, fit(data).certificate
    assert quiet.epsilon == full.epsilon and math.isclose(full.epsilon, 4.0, rel_tol=1e-9)
    assert len(quiet.releases) < len(full.releases)


@pytest.mark.parametrize("mode", [HOMOPHILOUS, {**FAST, "assume": "structural"}], ids=["homophilous", "structural"])
def test_p11_training_and_calibration_records_spend_everything_and_query_records_keep_a_part(data, mode):
    certificate = Ballot(**mode).fit(data, RECORD, seed=0).certificate
    spent = {
        kind: sum(release.loss(kind).mu ** 2 for release in certificate.releases) / certificate.implied["mu"] ** 2
        for kind in ("train", "calibration", "query")
    }
    assert 1 - 1e-6 < spent["train"] <= 1 and 1 - 1e-6 < spent["calibration"] <= 1
    assert spent["query"] <= 0.99 * 0.512 + 0.01


def test_p12_opposite_rows_move_the_mean_by_the_declared_two_under_replace(data):
    r = int(data.train_mask.nonzero()[0])
    opposite = data.clone()
    opposite.x[r] = -data.x[r]
    promise = NodeLevel(4.0, 1e-4, relation="replace")
    assert moved(data, opposite, promise)["mean"] == pytest.approx(2.0, abs=1e-5)
    plan = Ballot().plan(PublicFacts.of(data), promise)
    assert set(plan.step("mean").sensitivity.values()) == {2.0}


def test_p13_the_bound_of_the_test_is_positive_under_any_noise():
    rng = np.random.default_rng(0)
    for noise in (0.0, 1e-9, 1.0, 1e6):
        poll = Poll.of(rng.normal(-5.0, 1.0, (20, 3)) * max(noise, 1.0), noise)
        assert poll.mass > 0 and poll.bound > 0 and math.isclose(poll.priors.sum(), 1.0)


def test_p13_dense_and_sparse_storage_give_the_same_predictions(data):
    sparse = data.clone()
    sparse.x = data.x.to_sparse_csr()
    assert torch.allclose(fit(data).predict_proba(data), fit(sparse).predict_proba(sparse), atol=1e-9)


def test_p14_mu_and_epsilon_at_a_hundredth_of_delta_are_printed(data):
    certificate = fit(data).certificate
    mu = certificate.implied["mu"]
    assert certificate.implied["epsilon at delta/100"] == pytest.approx(gaussian_epsilon(mu, 1e-6))
    assert "epsilon at delta/100" in str(certificate) and f"mu = {mu:.6g}" in str(certificate)
