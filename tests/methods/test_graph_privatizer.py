"""GraphPrivatizer: published runs only where everybody's lists are at hand, sound reports are exactly epsilon, raw is LPGNN."""

import json

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.client import Client
from graphveil.exchange.randomizers import BucketResponse, Contacts, LabelResponse, NeighbourReplacement
from graphveil.exchange.randomizers.categories import owns
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.methods.graph_privatizer.algorithm import bucket_counts, fit_buckets, inhabited, released_bins
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise
from graphveil.runs.verify import verify_run

QUICK = {"epochs": 20, "feature_steps": 4, "hidden": 16}
FACTS = PublicFacts(400, 6, 3)


@pytest.fixture(scope="module")
def graph():
    data = powerlaw_sbm(nodes=400, classes=3, features=6, seed=1)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


@pytest.mark.parametrize("strategy", ["t", "m"])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "distance"])
def test_published_has_no_epsilon_and_names_its_gaps(graph, tmp_path, strategy, metric):
    method = gv.GraphPrivatizer(mode="published", strategy=strategy, metric=metric, alpha=0.5, **QUICK | {"epochs": 2})
    model = method.fit(graph, gv.Local(3, 3, 1.0), seed=1)
    certificate = model.certificate
    assert certificate.epsilon is None and certificate.epsilon_claimed == 7.0 and not certificate.holds
    differing = ["G2"] if strategy == "t" else []
    assert [gap.code for gap in certificate.gaps] == ["G1", *differing, "G3", "G4", "G5"]
    assert "calls local and which is not" in str(certificate) and "no client could" in str(certificate)
    model.save(tmp_path / "run")
    assert verify_run(tmp_path / "run") == ([], None)
    body = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert all(release["mechanism"].get("lists") is None for release in body["releases"])  # private lists stay here


def test_a_certificate_that_hides_a_gap_does_not_verify(graph, tmp_path):
    gv.GraphPrivatizer(mode="published", **QUICK | {"epochs": 1}).fit(graph, gv.Local(3, 3, 1.0), seed=1).save(
        tmp_path / "run"
    )
    body = json.loads((tmp_path / "run" / "certificate.json").read_text())
    body["gaps"] = body["gaps"][1:]
    (tmp_path / "run" / "certificate.json").write_text(json.dumps(body))
    assert any("'gaps' is recorded" in line for line in verify_run(tmp_path / "run")[0])


def test_no_client_can_run_the_published_replacement():
    rounds = gv.GraphPrivatizer(mode="published").rounds(FACTS, gv.Local(3, 3, 1.0))
    client = Client([0, 1], {Part.EDGES: Contacts.of([[1], [0]])}, rounds, Noise(0))
    with pytest.raises(PrivacyError, match="no client can run it"):
        client.report("edges", np.ones((2, 2)))


@pytest.mark.parametrize("options", [{"mechanism": "bucket"}, {"mechanism": "krr"}, {"mechanism": "mean"}])
def test_sound_mode_never_sees_everybodys_lists(graph, options):
    seen = []

    class Watched(gv.GraphPrivatizer):
        def train(self, session):
            seen.append((session.answers.everybodys_lists, session.raw_edges))
            with pytest.raises(PrivacyError, match="published mode only"):
                session.ask_everybody("edges")
            return super().train(session)

    Watched(**QUICK | options | {"epochs": 1}).fit(graph, gv.Local(3, 3, 1.0, delta=1e-6), seed=1)
    assert seen == [(None, None)]


@pytest.mark.parametrize(
    ("options", "edge"),
    [
        ({}, 4.0),
        ({"edge_rounds": 2}, 4.0),
        ({"mechanism": "krr"}, 4.0),
        ({"mechanism": "mean"}, None),
        ({"mechanism": "mean", "edge_rounds": 2}, None),
    ],
)
def test_sound_mode_costs_what_was_promised_and_verifies(graph, tmp_path, options, edge):
    promise = gv.Local(3, 3, 4.0, delta=1e-6 if "mean" in options.values() else 0.0)
    model = gv.GraphPrivatizer(**QUICK | options).fit(graph, promise, seed=1)
    certificate = model.certificate
    assert certificate.holds and certificate.epsilon == pytest.approx(10.0, abs=1e-6) and not certificate.gaps
    assert certificate.per_list == pytest.approx(4.0, abs=1e-6)
    assert certificate.per_edge == (None if edge is None else pytest.approx(edge, abs=1e-6))
    assert certificate.delta <= 1e-6 * (1 + 1e-9)
    model.save(tmp_path / "run")
    assert verify_run(tmp_path / "run")[0] == []


def test_sound_buckets_learn_from_edges(graph):
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    model = gv.GraphPrivatizer(**QUICK | {"epochs": 60}).fit(graph, gv.Local(3, 3, 8.0), seed=1)
    assert model.score(graph) > majority + 0.15


def test_which_member_of_a_bucket_was_reported_does_not_matter(graph):
    """Members are coins that know their own released label: a model that reads them fools released validation labels."""

    class OtherMembers(gv.GraphPrivatizer):
        def train(self, session):
            ask = session.ask

            def with_other_members(name, broadcast=None):
                answer = ask(name, broadcast)
                if name != "edges":
                    return answer
                order = np.argsort(broadcast, kind="stable")
                following = np.empty_like(order)  # the next member of the same bucket, round and round
                for bucket in np.unique(broadcast):
                    members = order[broadcast[order] == bucket]
                    following[members] = np.roll(members, -1)
                return Contacts(answer.starts, following[answer.targets])

            session.ask = with_other_members
            return super().train(session)

    scores = [
        method(**QUICK).fit(graph, gv.Local(3, 3, 8.0), seed=1).predictor.scores
        for method in (gv.GraphPrivatizer, OtherMembers)
    ]
    assert np.array_equal(*scores)


@pytest.mark.parametrize("mode", ["sound", "published"])
@pytest.mark.parametrize("method", [gv.GraphPrivatizer, gv.RrEdges])
def test_raw_edges_are_lpgnn(graph, method, mode):
    """The infinity column of the paper's tables; no gap is left, because all of them are about private edges."""
    promise = gv.Local(3, 3, "raw")
    ours = method(mode=mode, backbone="sage", **QUICK).fit(graph, promise, seed=4)
    lpgnn = gv.Lpgnn(mode=mode, backbone="sage", **QUICK).fit(graph, promise, seed=4)
    assert np.array_equal(ours.predictor.scores, lpgnn.predictor.scores)
    assert ours.certificate.holds and ours.certificate.gaps == ()


def test_a_swap_of_an_owned_contact_moves_one_report_and_costs_epsilon_exactly():
    """An edge stands in two lists, only its owner reports it: {0, v} becomes {0, w}, both owned by 0."""
    ids, response = np.arange(9), BucketResponse(1.0, 3)
    bucket_of = np.array([0, 1, 1, 1, 1, 2, 2, 2, 2])
    owned = [v for v in range(1, 9) if owns(np.array([0]), np.array([v]))[0]]
    v, w = next(x for x in owned if x < 5), next(x for x in owned if x >= 5)
    for contact in (v, w):
        lists = Contacts.of([[contact] if slot == 0 else [0] if slot == contact else [] for slot in ids])
        reported = response.own(lists, ids)
        assert reported.targets.tolist() == [contact] and reported.owners.tolist() == [0]
    ratios = [response.log_ratio(v, w, report, bucket_of) for report in ids]
    assert max(ratios) == pytest.approx(1.0, abs=1e-9) and max(ratios) <= response.epsilon + 1e-12


def test_several_holders_report_every_owned_edge_once(graph):
    """The lists that reach the collector hold one entry per undirected edge, whoever keeps the vertices."""
    lengths = []

    class Watched(gv.GraphPrivatizer):
        def train(self, session):
            found = super().train(session)
            lengths.append(len(session.collector.values("edges").targets))
            return found

    holders = np.arange(graph.num_nodes) % 3
    method = Watched(**QUICK | {"epochs": 1})
    certificate = method.fit(graph, gv.Local(3, 3, 1.0), seed=1, holders=holders).certificate
    assert lengths == [graph.edge_index.shape[1] // 2]
    assert certificate.per_holder["0"] == pytest.approx(6 * 134, abs=1e-4)


def test_directed_lists_are_reported_whole():
    rounds = gv.GraphPrivatizer().rounds(PublicFacts(400, 6, 3, directed=True), gv.Local(3, 3, 1.0))
    response = rounds[-1].randomizer
    lists = Contacts.of([[1, 2, 3], [0]])
    assert response.own(lists, np.array([0, 1])).targets.tolist() == [1, 2, 3, 0]
    assert response.edge_units == 2


def test_buckets_come_from_released_labels_only():
    reports = np.array([2, -1, 0, 0, -1])
    assert released_bins(reports, 4).tolist() == [2, 3, 0, 0, 3]
    filled = inhabited(released_bins(reports, 4), 4)
    assert sorted(set(filled.tolist())) == [0, 1, 2, 3] and (filled == released_bins(reports, 4)).sum() == 4


def test_the_fit_finds_the_shares_behind_the_channel():
    """4 000 people with 12 contacts each, half of them with a known class: shares within 0.05."""
    coins = np.random.default_rng(0)
    truth = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    classes = coins.integers(3, size=4_000)
    buckets = np.array([coins.choice(3, size=12, p=truth[c]) for c in classes])
    response = LabelResponse(1.5, 3)
    noisy = response.randomize(buckets, None, Noise(1))
    counts = np.stack([(noisy == b).sum(axis=1) for b in range(3)], axis=1).astype(float)
    likelihoods = np.where(np.arange(4_000)[:, None] % 2, np.eye(3)[classes] * 0.97 + 0.01, 1 / 3)
    fit = fit_buckets(counts, response.channel, likelihoods, steps=100)
    assert np.abs(fit.bins - truth).max() < 0.05
    unknown = np.arange(4_000) % 2 == 0
    assert (fit.log_likelihood.argmax(axis=1) == classes)[unknown].mean() > 0.6


def test_counts_and_arcs_of_reported_lists():
    lists = Contacts.of([[1, 1, 0], [], [0]])
    assert bucket_counts(lists, np.array([0, 1, 1]), 2).tolist() == [[1, 2], [0, 0], [1, 0]]
    assert lists.arcs.T.tolist() == [[0, 2], [1, 0]]  # once each, without loops, contact -> owner


def test_sparse_and_dense_rows_give_the_same_candidates():
    import scipy.sparse as sp

    rows = np.random.default_rng(0).integers(-1, 2, size=(6, 5))
    lists = Contacts.of([[1, 2], [0, 3], [0, 4], [1, 5], [2], [3]])
    for alpha in (0.0, 0.5):
        randomizer = NeighbourReplacement(1.0, lists, alpha=alpha, threshold=0.1)
        one, two = randomizer.support(rows), randomizer.support(sp.csr_matrix(rows))
        assert np.array_equal(one.targets, two.targets) and np.array_equal(one.starts, two.starts)


@pytest.mark.parametrize(
    ("options", "promise", "word"),
    [
        ({"mode": "published", "strategy": "x"}, gv.Local(3, 3, 1), "strategy"),
        ({"mode": "published", "metric": "manhattan"}, gv.Local(3, 3, 1), "metric"),
        ({"mode": "published", "reading": "both"}, gv.Local(3, 3, 1), "reading"),
        ({"mode": "published", "mechanism": "bucket"}, gv.Local(3, 3, 1), "no option 'mechanism'"),
        ({"strategy": "t"}, gv.Local(3, 3, 1), "no option 'strategy'"),
        ({"mechanism": "magic"}, gv.Local(3, 3, 1), "mechanism"),
        ({"mechanism": "mean"}, gv.Local(3, 3, 1), "delta"),
        ({"mechanism": "krr", "edge_rounds": 2}, gv.Local(3, 3, 1), "one round"),
        ({"edge_rounds": 3}, gv.Local(3, 3, 1), "edge_rounds"),
        ({"mode": "published", "alpha": 1.5}, gv.Local(3, 3, 1), "alpha"),
        ({"backbone": "gin"}, gv.Local(3, 3, 1), "gin"),
        ({}, gv.Local(3, 3, "withheld"), "needs edges"),
        ({}, gv.Local("withheld", 3, 1), "features and labels"),
    ],
)
def test_impossible_requests_are_refused_before_anything_is_sent(graph, options, promise, word):
    with pytest.raises(InputError, match=word):
        gv.GraphPrivatizer(**options).fit(graph, promise)
