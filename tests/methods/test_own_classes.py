"""Contact lists private and nothing else: classes from public features, and what noisy counts of them say."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import graphveil as gv
from graphveil.errors import InputError
from graphveil.exchange.randomizers import LabelHistogram
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.methods.common.logistic import softmax_regression
from graphveil.methods.graph_privatizer import GraphPrivatizer
from graphveil.methods.local import LocalRecipe
from graphveil.methods.local.counts import ACTIVITIES, class_likelihoods, class_rates, geometric_laplace, shares
from graphveil.methods.local.own_classes import own_scores, views
from graphveil.privacy.facts import PublicFacts
from graphveil.runs.verify import verify_run

LISTS_ONLY = gv.Local("raw", "raw", 4)


@pytest.fixture(scope="module")
def graph():
    """Features that say little, contacts that say much."""
    data = powerlaw_sbm(nodes=400, classes=3, features=4, homophily=0.9, seed=1)
    data.x = data.x + 2 * torch.randn(data.x.shape, generator=torch.Generator().manual_seed(0))
    return random_split(data, seed=1, fractions=(0.5, 0.25, 0.25))


@pytest.fixture(scope="module")
def model(graph):
    return LocalRecipe(epochs=30).fit(graph, LISTS_ONLY, seed=2)


def test_counts_add_to_what_features_say(model, graph):
    known = np.flatnonzero(~graph.test_mask.numpy())
    coins = np.random.default_rng(0)
    own = own_scores(graph.x.numpy(), known, graph.y.numpy()[known], 3, 3, coins).argmax(axis=1)
    features_only = float(np.mean(own == graph.y.numpy(), where=graph.test_mask.numpy()))
    assert model.score(graph) > features_only + 0.1


def test_the_certificate_is_for_one_entry_and_says_what_an_edge_costs_and_what_is_not_protected(model, tmp_path):
    certificate = model.certificate
    assert certificate.holds and certificate.epsilon == pytest.approx(4.0) == certificate.per_list
    assert certificate.per_edge == pytest.approx(8.0) and certificate.per_vertex is None
    text = str(certificate)
    assert "THE FEATURES OF EVERY VERTEX" in text and "THE LABEL OF EVERY VERTEX" in text
    assert "one entry of the contact list of one vertex, added or removed" in text
    assert "(added or removed; exchanged: twice that): 4" in text and "in all lists (added or removed): 8" in text
    assert not any("how many contacts" in line for line in certificate.public)
    assert certificate.facts.mean_degree is None
    model.save(tmp_path / "run")
    assert verify_run(tmp_path / "run") == ([], certificate.epsilon)
    assert gv.load_model(tmp_path / "run").certificate == certificate


def test_with_equal_reports_other_lists_of_other_lengths_give_the_same_broadcast_and_scores(graph, monkeypatch):
    fixed = np.rint(np.random.default_rng(0).normal(2.0, 3.0, (graph.num_nodes, 3)))
    heard = []
    monkeypatch.setattr(LabelHistogram, "randomize", lambda self, records, bins, rng: (heard.append(bins), fixed)[1])
    other = graph.clone()
    other.edge_index = graph.edge_index[:, graph.edge_index.sum(dim=0) % 3 > 0]
    other.y = torch.where(graph.test_mask, (graph.y + 1) % 3, graph.y)  # labels that nobody has told
    one, two = (LocalRecipe(epochs=3).fit(data, LISTS_ONLY, seed=3) for data in (graph, other))
    assert np.array_equal(heard[0], heard[1]) and np.array_equal(one.predictor.scores, two.predictor.scores)
    assert np.array_equal(heard[0][~graph.test_mask], graph.y[~graph.test_mask]), "known labels are told as they are"


def test_the_plan_follows_from_sizes_and_knows_each_reading_of_the_edge_budget():
    facts = PublicFacts(1000, 20, 4, False, {"train": 500, "calibration": 250, "query": 250})
    scale = lambda options, promise: LocalRecipe(**options).plan(facts, promise).release("histogram").mechanism.scale
    assert scale({}, LISTS_ONLY) == pytest.approx(1 / 4, rel=1e-6)
    assert scale({"histogram_rounds": 2}, LISTS_ONLY) == pytest.approx(1 / 2, rel=1e-6)
    assert scale({"edge_unit": "edge"}, LISTS_ONLY) == pytest.approx(1 / 2, rel=1e-6)
    half = LocalRecipe(edge_unit="edge").plan(facts, LISTS_ONLY)
    assert half.costs([half.release("histogram")])["edge"] == pytest.approx(4.0)
    exchanged = gv.Local("raw", "raw", 4, relation="replace")
    assert scale({}, exchanged) == pytest.approx(2 / 4, rel=1e-6)
    plan = LocalRecipe().plan(facts, LISTS_ONLY)
    assert plan.epsilon() == pytest.approx(4.0) and plan.release("histogram").mechanism.bins == 4


def test_an_exchange_may_be_promised_instead_with_public_lengths_and_no_total(graph):
    certificate = LocalRecipe(epochs=2).fit(graph, gv.Local("raw", "raw", 4, relation="replace"), seed=1).certificate
    assert certificate.epsilon is None and not certificate.holds
    assert certificate.per_list == pytest.approx(4.0) and certificate.per_edge == pytest.approx(8.0)
    assert any("how many contacts" in line for line in certificate.public)


def test_a_second_round_hears_better_classes_and_shares_the_budget(graph):
    model = LocalRecipe(epochs=10, histogram_rounds=2).fit(graph, LISTS_ONLY, seed=1)
    assert [one.mechanism.epsilon for one in model.certificate.releases] == [pytest.approx(2.0)] * 2
    assert model.certificate.per_edge == pytest.approx(8.0)


@pytest.mark.parametrize("promise", [gv.Local("raw", 3, 4), gv.Local("raw", "raw", "raw"), gv.Local(2, "raw", 4)])
def test_features_are_read_only_where_nothing_but_lists_is_protected(graph, promise):
    with pytest.raises(InputError, match="features"):
        LocalRecipe().fit(graph, promise)


def test_methods_whose_noise_covers_an_exchange_refuse_the_other_relation(graph):
    with pytest.raises(InputError, match="local / local / replace"):
        GraphPrivatizer().fit(graph, LISTS_ONLY)


@pytest.mark.parametrize("mean", [0.01, 0.7, 1 / np.expm1(0.5), 30.0])  # the third one has q = e^(-1/scale)
def test_the_density_of_a_geometric_count_with_noise_is_the_sum_over_all_counts(mean):
    scale, n = 2.0, np.arange(2000)
    values = np.array([-7.3, -0.2, 0.0, 0.4, 1.0, 5.7, 60.25])
    q = mean / (1 + mean)
    noise = np.exp(-np.abs(values[:, None] - n) / scale) / (2 * scale)
    expected = (noise * (1 - q) * q**n).sum(axis=1)
    assert np.exp(geometric_laplace(values, np.array(mean), scale)) == pytest.approx(expected, rel=1e-6)


def test_likelihoods_find_classes_that_attract_others_and_are_not_those_of_shares():
    """Class 0 lists class 1 and the other way round: shares point to the wrong class, likelihoods to the right one."""
    coins = np.random.default_rng(0)
    labels = np.arange(600) % 2
    counts = coins.poisson(np.where(labels[:, None] == [0, 1], 0.3, 4.0)) + coins.laplace(0, 1.0, (600, 2))
    known = np.arange(300)
    right = class_likelihoods(counts, 1.0, known, labels[known], 2)[300:].argmax(axis=1) == labels[300:]
    wrong = shares(counts, 1.0)[300:].argmax(axis=1) == labels[300:]
    assert right.mean() > 0.85 and wrong.mean() < 0.2
    rates = class_rates(counts, known, labels[known], 2)
    assert np.abs(rates - [[0.3, 4.0], [4.0, 0.3]]).max() < 0.6
    assert 1.0 in ACTIVITIES and shares(np.array([[-3.0, -1.0]]), 1.0).tolist() == [[0.0, 0.0]]


def test_a_class_without_an_owner_has_everybodys_rate_and_a_finite_likelihood():
    counts = np.random.default_rng(0).normal(1.0, 1.0, (20, 3))
    known, labels = np.arange(10), np.zeros(10, dtype=np.int64)
    assert np.isfinite(class_likelihoods(counts, 0.5, known, labels, 3)).all()
    assert np.allclose(class_rates(counts, known, labels, 3)[2], np.maximum(counts.mean(axis=0), 0.01))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, torch.as_tensor], ids=["dense", "sparse", "tensor"])
def test_the_score_of_a_labelled_vertex_never_saw_its_own_label(form):
    coins = np.random.default_rng(1)
    rows = coins.random((120, 30)) * (coins.random((120, 30)) < 0.2)
    known = np.arange(90)
    labels = (rows[:90, :15].sum(axis=1) > rows[:90, 15:].sum(axis=1)).astype(np.int64)
    other = labels.copy()
    other[7] = 1 - other[7]
    one, two = (own_scores(form(rows), known, told, 2, 3, np.random.default_rng(2)) for told in (labels, other))
    assert np.array_equal(one[7], two[7]) and not np.array_equal(one, two)
    assert (one[known].argmax(axis=1) == labels).mean() > 0.8


def test_views_are_unit_rows_and_weight_up_what_is_rare():
    words = sp.csr_matrix(np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], float))
    plain, weighted = (view.toarray() for view in views(words))
    assert plain[1, 0] == pytest.approx(plain[1, 1]) and weighted[1, 1] > 2 * weighted[1, 0] > 0
    assert np.allclose(np.linalg.norm(plain, axis=1), [1, 1, 1, 0])
    _, scaled = views(np.array([[1.0, 100.0], [2.0, 300.0], [3.0, 200.0]]))
    assert np.abs(scaled).max() <= 1 and scaled.sum(axis=0) == pytest.approx(0.0, abs=0.5)


def test_softmax_regression_is_that_of_scikit_learn():
    linear = pytest.importorskip("sklearn.linear_model")
    coins = np.random.default_rng(0)
    rows, labels = coins.normal(size=(200, 5)), coins.integers(0, 3, 200)
    ours = softmax_regression(rows, labels, 3, 0.5)(rows)
    theirs = linear.LogisticRegression(C=2.0, tol=1e-8, max_iter=1000).fit(rows, labels).predict_log_proba(rows)
    assert np.abs(ours - theirs).max() < 0.02
    assert np.isfinite(softmax_regression(rows, labels, 4, 0.5)(rows)).all(), "a class without a row"


def test_cora_reaches_its_target_at_edge_epsilon_2(cora):
    """targets.csv: 83.0 on 50/25/25; seeds 0 to 5 gave 84.8 to 87.9; below 81 something is broken."""
    data = random_split(cora, seed=5, fractions=(0.5, 0.25, 0.25))
    assert LocalRecipe().fit(data, gv.Local("raw", "raw", 2), seed=5).score(data) > 0.81
