"""The method ``local``: rounds from public facts, nothing but reports used, accuracy with public and private edges."""

from itertools import product

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.errors import InputError
from graphveil.exchange.randomizers import LabelHistogram
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.methods.local import LocalRecipe, heads
from graphveil.methods.local.algorithm import NoisyCounts, noisy_degrees
from graphveil.runs.verify import verify_run

PUBLIC, PRIVATE = gv.Local("withheld", 3, "raw"), gv.Local("withheld", 3, 8)


@pytest.fixture(scope="module")
def graph():
    return random_split(powerlaw_sbm(nodes=400, classes=3, features=4, seed=1), seed=1, fractions=(0.5, 0.25, 0.25))


@pytest.fixture(scope="module", params=["public", "private"])
def model(request, graph):
    return LocalRecipe(epochs=30).fit(graph, PUBLIC if request.param == "public" else PRIVATE, seed=2)


def test_it_learns_from_noisy_labels(model, graph):
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    assert model.score(graph) > majority + 0.15


def test_the_certificate_adds_up_the_rounds(model):
    certificate = model.certificate
    private = "edges" not in certificate.promise.raw
    assert certificate.holds and certificate.epsilon == pytest.approx(11.0 if private else 3.0, abs=1e-6)
    assert certificate.per_edge == (pytest.approx(16.0) if private else None)
    assert any("how many contacts" in line for line in certificate.public) == private


def test_a_saved_run_loads_predicts_the_same_and_verifies(model, graph, tmp_path):
    model.save(tmp_path / "run")
    loaded = gv.load_model(tmp_path / "run")
    assert torch.equal(loaded.predict_proba(graph), model.predict_proba(graph))
    assert loaded.certificate == model.certificate
    assert verify_run(tmp_path / "run") == ([], model.certificate.epsilon)


@pytest.mark.parametrize(
    "edit", [{"epsilon": 1.0}, {"costs": {"vertex": 0.1}}, {"raw": ["labels"]}, {"warnings": ["all is well"]}]
)
def test_an_edited_certificate_is_noticed_even_with_a_new_digest(model, tmp_path, edit):
    import json

    from graphveil.files import write_json
    from graphveil.methods.model import file_digests
    from graphveil.privacy.certificate import digest

    run = tmp_path / "run"
    model.save(run)
    body = json.loads((run / "certificate.json").read_text()) | edit
    unsigned = {key: value for key, value in body.items() if key != "digest"}
    write_json(run / "certificate.json", unsigned | {"digest": digest(unsigned)})
    write_json(run / "manifest.json", file_digests(run))
    assert verify_run(run)[0]


def test_scores_do_not_depend_on_anything_withheld(graph):
    """Other features, other test labels: the same bytes."""
    other = graph.clone()
    other.x = torch.rand_like(other.x)
    other.y = torch.where(other.test_mask, (other.y + 1) % 3, other.y)
    one, two = (LocalRecipe(epochs=5).fit(data, PUBLIC, seed=3).predictor.scores for data in (graph, other))
    assert np.array_equal(one, two)


def test_the_evidence_of_a_labelled_vertex_never_saw_its_own_report(graph, monkeypatch):
    seen = []
    original = heads.train_heads

    def spy(evidence, *arguments, **options):
        seen.append(evidence.seen)
        return original(evidence, *arguments, **options)

    monkeypatch.setattr(heads, "train_heads", spy)
    vertex = int(torch.where(graph.train_mask)[0][0])
    other = graph.clone()
    other.y = graph.y.clone()
    other.y[vertex] = (other.y[vertex] + 1) % 3
    for data in (graph, other):
        LocalRecipe(epochs=1).fit(data, gv.Local("withheld", "raw", "raw"), seed=3)
    assert np.array_equal(seen[0][vertex], seen[1][vertex])
    assert not np.array_equal(seen[0], seen[1])


def test_two_histogram_rounds_share_the_budget_and_the_edge_unit_halves_it(graph):
    two = LocalRecipe(epochs=1, histogram_rounds=2).fit(graph, PRIVATE, seed=1).certificate
    assert [release.mechanism.epsilon for release in two.releases[1:]] == [pytest.approx(4.0)] * 2
    assert two.per_list == pytest.approx(8.0)
    edge = LocalRecipe(epochs=1, histogram_rounds=1, edge_unit="edge").fit(graph, PRIVATE, seed=1).certificate
    assert edge.per_edge == pytest.approx(8.0) and edge.per_list == pytest.approx(4.0)


BINS = np.array([0, 0, 1, 1, 2, 2])
CORNERS = [np.array(r) for r in product((-50.0, 0.4, 50.0), repeat=3)]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_an_edge_that_comes_or_goes_costs_epsilon_in_both_lists_if_lengths_are_hidden(epsilon):
    """All graphs of two vertices and a third: the worst product of ratios over both lists is attained and is epsilon."""
    randomizer = LabelHistogram(epsilon, 3, "hidden")
    worst = 0.0
    for u, v in ((0, 2), (1, 5), (3, 4)):
        for rest in ([], [4], [2, 3, 5]):
            lists = {one: np.array([w for w in rest if w not in (u, v)], int) for one in (u, v)}
            longer = {u: np.append(lists[u], v), v: np.append(lists[v], u)}
            ratio = lambda one, a, b: max(randomizer.log_ratio(a[one], b[one], r, BINS) for r in CORNERS)
            for a, b in ((lists, longer), (longer, lists)):
                worst = max(worst, ratio(u, a, b) + ratio(v, a, b))
    assert 0.99 * epsilon <= worst <= epsilon + 1e-9
    assert randomizer.edge_units * randomizer.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert 2 * LabelHistogram(epsilon, 3).epsilon == pytest.approx(2 * epsilon, rel=1e-12)


def test_noisy_degrees_are_learnt_from_the_reports_alone(graph, monkeypatch):
    """With the reports held fixed, other lists of other lengths change nothing: no shape, no round, no score."""
    fixed = np.rint(np.random.default_rng(0).normal(5.0, 3.0, (graph.num_nodes, 4)))
    monkeypatch.setattr(LabelHistogram, "randomize", lambda self, records, broadcast, rng: fixed[:, : self.bins])
    other = graph.clone()
    other.edge_index = graph.edge_index[:, graph.edge_index.sum(dim=0) % 3 > 0]
    noisy = LocalRecipe(epochs=3, degrees="noisy")
    models = [noisy.fit(data, gv.Local("withheld", "raw", 8), seed=3) for data in (graph, other)]
    assert np.array_equal(models[0].predictor.scores, models[1].predictor.scores)
    assert models[0].certificate == models[1].certificate
    public = [LocalRecipe(epochs=3).fit(data, gv.Local("withheld", "raw", 8), seed=3) for data in (graph, other)]
    assert not np.array_equal(public[0].predictor.scores, public[1].predictor.scores)


def test_noisy_degrees_cost_half_as_much_per_edge_and_the_certificate_says_what_is_hidden(graph, tmp_path):
    model = LocalRecipe(epochs=30, degrees="noisy", histogram_rounds=2).fit(graph, PRIVATE, seed=2)
    certificate = model.certificate
    assert certificate.per_edge == pytest.approx(8.0) and certificate.per_list == pytest.approx(8.0)
    assert certificate.holds and "adding or removing it" in str(certificate)
    assert not any("how many contacts" in line for line in certificate.public)
    majority = float(torch.bincount(graph.y).max()) / len(graph.y)
    assert model.score(graph) > majority + 0.15
    model.save(tmp_path / "run")
    assert verify_run(tmp_path / "run") == ([], certificate.epsilon)


def test_degrees_from_noisy_sums_are_nearer_than_the_sums_and_unbiased_on_average():
    """2000 lists of 5 or 25 contacts, Laplace noise of variance 50 on each of 4 counts: known error of the shrunken sum."""
    coins = np.random.default_rng(1)
    degrees = np.repeat([5.0, 25.0], 1000)
    rounds = [NoisyCounts(degrees[:, None] / 4 + coins.laplace(0, 5.0, (2000, 4)), 50.0) for _ in range(2)]
    one, two = noisy_degrees(rounds[:1]), noisy_degrees(rounds)
    error = lambda found: float(np.mean((found - degrees) ** 2))
    assert error(one) < 0.8 * error(rounds[0].counts.sum(axis=1)) and error(two) < 0.8 * error(one)
    assert one.min() >= 0 and abs(one.mean() - 15.0) < 6 * np.sqrt(200 / 2000)
    constant = noisy_degrees([NoisyCounts(np.full((10, 4), 2.0), 50.0)])
    assert np.allclose(constant, 8.0)


def test_several_holders_give_the_same_kind_of_result_and_their_own_lines(graph):
    holders = np.where(np.arange(400) < 100, "small", "large")
    certificate = LocalRecipe(epochs=1).fit(graph, PUBLIC, seed=1, holders=holders).certificate
    assert certificate.per_holder == {"large": pytest.approx(900.0), "small": pytest.approx(300.0)}


@pytest.mark.parametrize(
    ("promise", "word"),
    [
        (gv.Local(1, 3, "raw"), "features"),
        (gv.Local("withheld", "withheld", "raw"), "labels"),
        (gv.Local("withheld", 3, "withheld"), "edges"),
        (gv.NodeLevel(1.0), "local method"),
    ],
)
def test_promises_it_cannot_use_are_refused_before_anything_is_sent(graph, promise, word):
    with pytest.raises(InputError, match=word):
        LocalRecipe().fit(graph, promise)


def test_cora_reaches_its_target_at_label_epsilon_3(cora):
    """targets.csv: 83.0 on 50/25/25; seeds 103 to 105 gave 84.6, 83.8 and 82.7; below 80 something is broken."""
    data = random_split(cora, seed=104, fractions=(0.5, 0.25, 0.25))
    assert LocalRecipe().fit(data, PUBLIC, seed=104).score(data) > 0.80


@pytest.mark.parametrize(
    "options", [{"degrees": "secret"}, {"dispersion": 2.0}, {"histogram_rounds": 3}, {"edge_unit": "arc"}]
)
def test_options_it_does_not_know_are_refused(graph, options):
    with pytest.raises(InputError, match=next(iter(options))):
        LocalRecipe(**options).fit(graph, PRIVATE)
