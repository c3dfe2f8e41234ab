"""The fast forms give the numbers of one query per node; models that do not read the graph give exactly 0."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.attacks import LinkTeller, Perturbation, TorchTarget, influence, sample_pairs
from graphveil.attacks.link_teller import independent_groups
from graphveil.errors import InputError
from graphveil.learn.backbones import build_backbone


@pytest.fixture(scope="module")
def pairs(graph):
    return sample_pairs(graph, "balanced", 60, 0)


def sparse(data):
    copied = data.clone()
    copied.x = (data.x * (data.x > 0)).to_sparse_csr()
    return copied


@pytest.mark.parametrize("method", [gv.Gcn, gv.Sage, gv.Sgc])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_incremental_form_is_one_query_per_node(data, pairs, method, layout):
    asked = data if layout == "dense" else sparse(data)
    model = method(epochs=30, hidden=16).fit(asked, gv.NonPrivate(), seed=0)
    for step in (0.05, 1.0):
        change = Perturbation(step)
        fast = influence(model, asked, pairs.first, pairs.second, change)
        slow = influence(model, asked, pairs.first, pairs.second, change, form="queries")
        assert (fast.form, fast.queries) == ("incremental", 0) and slow.queries == len(np.unique(pairs.second)) + 1
        assert slow.values.max() > 1e-3
        np.testing.assert_allclose(
            fast.values, slow.values, rtol=2e-3, atol=2e-6 / step
        )  # the model answers in float32
        np.testing.assert_array_equal(fast.values == 0, slow.values == 0)


def test_small_blocks_of_probes_give_the_same_numbers(data, gcn, pairs, monkeypatch):
    from graphveil.attacks import incremental

    whole = influence(gcn, data, pairs.first, pairs.second).values
    monkeypatch.setattr(incremental, "BLOCK", 40)
    np.testing.assert_allclose(influence(gcn, data, pairs.first, pairs.second).values, whole, rtol=1e-9)


def test_a_released_noisy_graph_is_what_the_influence_travels_on(data, pairs):
    model = gv.EdgeRand(epochs=10, hidden=8, backbone="gcn").fit(data, gv.EdgeLevel(4.0), seed=0)
    fast = influence(model, data, pairs.first, pairs.second)
    slow = influence(model, data, pairs.first, pairs.second, form="queries")
    np.testing.assert_allclose(fast.values, slow.values, rtol=5e-3, atol=2e-5)


@pytest.mark.parametrize(
    ("method", "promise"),
    [
        (gv.Ballot(), gv.NodeLevel(1.0)),
        (gv.Gap(epochs=5), gv.EdgeLevel(1.0)),
        (gv.DpMlp(), gv.NodeLevel(1.0)),
    ],
    ids=["ballot", "gap", "dp-mlp"],
)
def test_a_model_whose_inference_reads_no_edges_has_influence_zero_and_auc_one_half(data, pairs, method, promise):
    model = method.fit(data, promise, seed=0)
    result = LinkTeller().run(model, data, pairs)
    assert result.facts["form"] == "own row" and result.auc == 0.5 and not result.headline.score.any()
    assert result.facts["queries"] <= 2 * int(np.ceil(np.log2(len(pairs)))) + 1
    assert not influence(model, data, pairs.first, pairs.second, form="queries").values.any()


def test_linkteller_finds_the_edges_of_a_plain_network_and_shows_both_controls(data, gcn, graph):
    for sampling in ("balanced", "degree-matched"):
        result = LinkTeller().run(gcn, data, sample_pairs(graph, sampling, 200, 0))
        assert result.auc > 0.95 and {c.name for c in result.controls} == {"degree product", "label equality"}
        assert result.auc > max(control.figures["auc"] for control in result.controls)


def test_scaling_a_row_is_invisible_to_a_model_that_normalises_rows(data, gcn, pairs):
    scaled = influence(gcn, data, pairs.first, pairs.second, Perturbation(0.5, "scale")).values
    assert scaled.max() < 1e-5 < influence(gcn, data, pairs.first, pairs.second, Perturbation(0.5)).values.max()


@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_grouped_queries_give_the_numbers_of_single_ones(data, pairs, backbone):
    network = build_backbone(backbone, 16, 8, 4).double()
    grouped = influence(TorchTarget(network, hops=2), data, pairs.first, pairs.second)
    single = influence(TorchTarget(network), data, pairs.first, pairs.second)
    assert grouped.form == "grouped queries" and single.form == "queries"
    assert grouped.queries < 0.6 * single.queries and single.values.max() > 1e-6
    np.testing.assert_allclose(grouped.values, single.values, rtol=1e-6, atol=1e-12)


def test_a_target_that_reads_further_than_it_declares_is_refused(data, pairs):
    with pytest.raises(InputError, match="further than the 1 hops"):
        influence(TorchTarget(build_backbone("gcn", 16, 8, 4).double(), hops=1), data, pairs.first, pairs.second)


def test_groups_hold_no_conflict_and_everybody_once():
    import scipy.sparse as sp

    conflicts = sp.random(80, 80, 0.05, random_state=0, format="csr")
    conflicts = sp.csr_matrix(conflicts + conflicts.T)
    conflicts.setdiag(0)
    groups = independent_groups(conflicts)
    assert sorted(np.concatenate(groups).tolist()) == list(range(80)) and len(groups) < 40
    assert all(conflicts[group][:, group].nnz == 0 for group in groups)


class Answers:
    """A target that answers with what it was given."""

    def __init__(self, rows):
        self.rows = rows

    def predict_proba(self, data):
        return self.rows


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (object(), "no predict_proba"),
        (Answers(torch.zeros(3, 2)), "shape"),
        (Answers(torch.full((600, 2), 0.9)), "no probabilities"),
        (Answers(torch.full((600, 2), torch.nan)), "no probabilities"),
    ],
)
def test_targets_without_probabilities_are_refused(data, pairs, target, word):
    with pytest.raises(InputError, match=word):
        LinkTeller().run(target, data, pairs)


def test_a_black_box_is_not_asked_more_often_than_allowed(data, pairs):
    with pytest.raises(InputError, match="max_queries = 5"):
        LinkTeller(max_queries=5).run(TorchTarget(build_backbone("gcn", 16, 8, 4)), data, pairs)


def test_cora_is_open_to_linkteller(cora):
    from graphveil.attacks.target import as_graph

    model = gv.Gcn(epochs=60).fit(cora, gv.NonPrivate(), seed=0)
    result = LinkTeller().run(model, cora, sample_pairs(as_graph(cora), "balanced", 500, 0))
    assert result.auc >= 0.97


def test_an_attacker_with_noisy_rows_asks_with_those_and_only_about_nodes_it_knows(data, graph, gcn, pairs):
    from graphveil.attacks import Knowledge

    rows = np.random.default_rng(0).normal(size=(graph.nodes, graph.features))
    noisy = Knowledge(rows, np.ones(graph.nodes, dtype=bool), released="pure noise")
    result = LinkTeller().run(gcn, data, pairs, noisy)
    changed = data.clone()
    changed.x = torch.from_numpy(rows)
    np.testing.assert_allclose(result.headline.score, influence(gcn, changed, pairs.first, pairs.second).values)
    assert "pure noise" in result.knowledge
    some = Knowledge(rows, np.arange(graph.nodes) < 10)
    with pytest.raises(InputError, match="does not know node"):
        LinkTeller().run(gcn, data, pairs, some)


def test_at_density_precision_is_reported_for_several_beliefs(data, graph, gcn):
    facts = LinkTeller().run(gcn, data, sample_pairs(graph, "density", 100, 0)).facts["at_belief"]
    assert list(facts) == ["0.25", "0.5", "1", "2", "4"]
    assert facts["0.25"]["precision"] >= facts["4"]["precision"] and facts["4"]["recall"] >= facts["0.25"]["recall"]


def test_unknown_forms_and_graphs_without_attributes_are_refused(data, gcn, pairs):
    with pytest.raises(InputError, match="unknown form"):
        influence(gcn, data, pairs.first, pairs.second, form="quick")
    bare = data.clone()
    bare.x = torch.zeros(600, 0)
    with pytest.raises(InputError, match="no attributes"):
        influence(gcn, bare, pairs.first, pairs.second)
    with pytest.raises(InputError, match="step"):
        Perturbation(0.0)
    with pytest.raises(InputError, match="sideways"):
        Perturbation(0.1, "sideways")
