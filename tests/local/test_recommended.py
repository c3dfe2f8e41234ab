"""The method ``local``: rounds from public facts, nothing but reports used, accuracy with public and private edges."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, random_split
from graphveil.local import heads
from graphveil.local.recommended import LocalRecipe
from graphveil.methods.registry import verify_run

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
    "edit", [{"epsilon": 1.0}, {"per_edge": 0.1}, {"raw": ["labels"]}, {"warnings": ["all is well"]}]
)
def test_an_edited_certificate_is_noticed_even_with_a_new_digest(model, tmp_path, edit):
    import json

    from graphveil.methods.model import write_json
    from graphveil.methods.registry import file_digests
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
        seen.append(evidence)
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
    assert [release.epsilon for release in two.releases[1:]] == [pytest.approx(4.0)] * 2
    assert two.per_list == pytest.approx(8.0)
    edge = LocalRecipe(epochs=1, histogram_rounds=1, edge_unit="edge").fit(graph, PRIVATE, seed=1).certificate
    assert edge.per_edge == pytest.approx(8.0) and edge.per_list == pytest.approx(4.0)


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
