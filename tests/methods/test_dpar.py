"""DPAR in both modes: rows, picks, mixed gradients, and inference on a public graph."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError
from graphveil.graph import SparseRows
from graphveil.graph.validate import validate
from graphveil.methods.dpar import Dpar
from graphveil.methods.dpar.algorithm import clipped_rows
from graphveil.methods.dpar.dropout import dropped, dropped_units
from graphveil.methods.dpar.gradients import Entries, mixed_gradient_sum
from graphveil.methods.dpar.rows import MixedRows, shares_of, top_entries
from graphveil.privacy.accounting.loss import Zcdp, epsilon_of
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import GumbelTop
from graphveil.privacy.noise import ERROR, Noise

SMALL = {"steps": 4, "sources": 6, "hidden": 4, "projection": 3}
NODE = gv.NodeLevel(4.0, adjacency="node")
LOW = gv.NodeLevel(0.2, adjacency="node")  # what is left of it after the division by q' is quick to account


@pytest.fixture
def small():
    return worst_case_graph(seed=5)[0]


@pytest.mark.parametrize("route", ["aggregate", "gradient"])
@pytest.mark.parametrize("select", ["gm", "em0", "em1"])
def test_epsilon_comes_close_to_the_target_and_never_exceeds_it(small, select, route):
    certificate = Dpar(**SMALL, select=select, route=route, batch_size=3).fit(small, NODE).certificate
    assert certificate.holds and 3.9 < certificate.epsilon <= 4.0


def test_clipped_rows_of_any_two_graphs_are_at_most_root_two_m_clips_apart(small):
    """Frobenius sensitivity sqrt(2M) C1: attained by disjoint supports, respected by arbitrary pairs of graphs."""
    method, m = Dpar(**SMALL, inductive=False), 6
    release = method.plan(PublicFacts.of(small), NODE).step("pagerank")
    assert release.sensitivity["train"] == pytest.approx(math.sqrt(2 * m) * method.row_clip)
    rng, sources, slots = np.random.default_rng(0), np.arange(m), np.arange(small.num_nodes)
    worst = 0.0
    for seed in range(20):
        other = worst_case_graph(seed=seed)[0]
        arcs = other.edge_index[:, torch.from_numpy(rng.random(other.edge_index.shape[1]) < rng.random())]
        other.edge_index = arcs
        pair = [clipped_rows(method, validate(data), sources, slots) for data in (small, other)]
        worst = max(worst, float(np.linalg.norm(pair[0] - pair[1])))
    assert 0 < worst <= release.sensitivity["train"]
    corner = np.eye(2)[[0] * m] - np.eye(2)[[1] * m]
    assert np.linalg.norm(corner) * method.row_clip == pytest.approx(release.sensitivity["train"])


def test_gumbel_picks_follow_the_exponential_mechanism():
    """First picks of 40,000 rows against exp(score/scale); five standard errors."""
    scores, rounds = np.array([0.0, 0.5, 1.0, 2.0]), 40_000
    mechanism = GumbelTop(1.0, 2, rounds, 4)
    picked = mechanism.apply(np.tile(scores, (rounds, 1)), Noise(3))
    expected = np.exp(scores) / np.exp(scores).sum()
    found = np.bincount(picked[:, 0], minlength=4) / rounds
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / rounds))
    assert np.all(picked[:, 0] != picked[:, 1])


def test_m_times_k_picks_cost_half_m_k_epsilon_squared():
    assert GumbelTop(0.01, 2, 70, 500).loss(0.001) == Zcdp(pytest.approx(70 * 2 * 0.1**2 / 2))
    choices = GumbelTop.for_mu(0.001, 1.0, 2, 70, 500)
    assert choices.loss(0.001).rho <= 0.5 and choices.loss(0.001) == Zcdp(pytest.approx(0.5, rel=1e-11))
    # the published composition says 20.3 at Gumbel scale 10 C2
    assert epsilon_of([GumbelTop(0.01, 2, 70, 500).loss(0.001)], 1e-3) == pytest.approx(4.1, abs=0.4)


def test_what_the_sampler_of_choices_errs_is_charged():
    """Chances off by ``ERROR`` on either side, as badly as can be: the range of log-ratios is what the loss says."""
    chance = np.array([0.7, 0.2, 0.1])
    there, back = (chance * np.exp(sign * np.array([1.0, -1.0, -1.0]) * ERROR) for sign in (1, -1))
    ratios = np.log(there / back)
    mechanism = GumbelTop(1.0, 1, 1, 3)
    assert 2 * math.sqrt(2 * mechanism.loss(1e-300).rho) == pytest.approx(np.ptp(ratios), rel=1e-2)
    assert mechanism.loss(0.0) == Zcdp(0.0)


def explicit_gradients(parameters, sizes, x, weights, labels):
    features, hidden, classes = sizes
    rows = []
    for i in range(len(x)):
        vector = torch.tensor(parameters, requires_grad=True)
        w1, w2 = vector[: hidden * features].view(hidden, features), vector[hidden * features :].view(classes, hidden)
        logits = (torch.tensor(weights[i])[:, None] * (torch.relu(torch.tensor(x[i]) @ w1.T) @ w2.T)).sum(0)
        loss = torch.nn.functional.cross_entropy(logits[None], torch.tensor([max(labels[i], 0)]))
        rows.append(torch.autograd.grad(loss, vector)[0].numpy() * (labels[i] >= 0))
    return np.array(rows)


def summed(parameters, sizes, x, weights, labels, clip):
    rows = SparseRows(sp.csr_matrix(x.reshape(-1, x.shape[2])))
    entries = Entries(np.repeat(np.arange(len(x)), x.shape[1]), weights.ravel(), rows)
    return mixed_gradient_sum(parameters, sizes, entries, labels, clip)


def test_mixed_gradients_are_clipped_like_explicit_ones():
    rng, sizes = np.random.default_rng(1), (5, 4, 3)
    parameters = rng.normal(size=4 * (5 + 3))
    x, weights, labels = rng.normal(size=(7, 3, 5)), rng.random((7, 3)), np.array([0, 1, 2, -1, 1, 0, 2])
    single = explicit_gradients(parameters, sizes, x, weights, labels)
    norms = np.linalg.norm(single, axis=1)
    for clip in (0.3, 100.0):
        expected = (single * np.minimum(1, clip / np.maximum(norms, 1e-300))[:, None]).sum(0)
        assert np.allclose(summed(parameters, sizes, x, weights, labels, clip), expected, atol=1e-6)
    for i in range(7):
        alone = summed(parameters, sizes, x[[i]], weights[[i]], labels[[i]], 0.3)
        assert np.linalg.norm(alone) <= 0.3


def test_columns_are_capped_and_clipped():
    rng = np.random.default_rng(2)
    rows = MixedRows(rng.integers(0, 5, (30, 3)), rng.random((30, 3)))

    def dense(mixed):
        matrix = np.zeros((30, 5))
        np.add.at(matrix, (np.repeat(np.arange(30), 3), mixed.columns.ravel()), mixed.weights.ravel())
        return matrix

    assert np.all(np.linalg.norm(dense(rows.clipped_columns(0.7, order=2)), axis=0) <= 0.7)
    assert np.all(np.abs(dense(rows.clipped_columns(0.7, order=1))).sum(0) <= 0.7)


def test_a_person_visits_at_most_s_rows_and_keeps_the_own_one():
    rng = np.random.default_rng(2)
    sources = rng.permutation(12)[:8]
    rows = MixedRows(rng.integers(0, 12, (8, 3)), rng.random((8, 3))).with_self(sources, 0.2)
    capped = rows.capped_columns(2, sources).with_own_rows(np.setdiff1d(np.arange(12), sources))
    matrix = capped.matrix(12).toarray()
    owners = np.concatenate([sources, np.setdiff1d(np.arange(12), sources)])
    own = owners[:, None] == np.arange(12)
    before = rows.matrix(12).toarray()
    assert np.allclose(matrix[:8][own[:8]], before[own[:8]]) and np.allclose(matrix[8:], own[8:])
    visits = ((matrix > 0) & ~own).sum(axis=0)
    assert visits.max() == 2 and ((before > 0) & ~own[:8]).sum(axis=0).max() > 2
    heaviest = np.sort(np.where(own[:8], 0, before), axis=0)[-2:].sum(axis=0)
    assert np.where(own, 0, matrix).sum() > 0.8 * heaviest.sum()


def test_top_entries_are_the_largest_as_they_are_and_shares_of_them_add_up_to_one():
    rows = top_entries(np.array([[0.1, -3.0, 0.3, 0.2], [-1.0, -2.0, -3.0, -4.0]]), 2)
    assert set(rows.columns[0]) == {2, 3} and sorted(rows.weights[1]) == [-2.0, -1.0]
    shares = shares_of(rows.weights)
    assert shares[0].sum() == pytest.approx(1) and not shares[1].any()


def test_own_row_predictions_read_no_edges_and_public_graphs_are_propagated(small):
    model = Dpar(**SMALL, inductive=False).fit(small, NODE, seed=0)
    alone = small.clone()
    alone.edge_index = small.edge_index[:, :0]
    assert torch.equal(model.predict_proba(small), model.predict_proba(alone))
    assert not torch.equal(model.predict_proba(small, "public-graph"), model.predict_proba(alone, "public-graph"))
    still = Dpar(**SMALL, inductive=False, propagation=0).fit(small, NODE, seed=0)
    assert torch.equal(still.predict_proba(small, "public-graph"), still.predict_proba(small))


def test_a_trained_network_predicts_on_another_graph(small, tmp_path):
    model = Dpar(**SMALL).fit(small, NODE, seed=0)
    other = worst_case_graph(clique=11)[0]
    assert model.predict(other, "public-graph").shape == (other.num_nodes,)
    model.save(tmp_path / "run")
    again = gv.load_model(tmp_path / "run")
    assert torch.equal(again.predict_proba(other, "public-graph"), model.predict_proba(other, "public-graph"))


def test_inductive_training_ignores_edges_of_query_nodes(small):
    from graphveil.audit.central.replay import Recorder

    fewer = small.clone()
    query = small.test_mask[small.edge_index].any(dim=0)
    fewer.edge_index = small.edge_index[:, ~query]
    tapes = [Recorder(), Recorder()]
    for data, tape in zip((small, fewer), tapes, strict=True):
        Dpar(**SMALL).fit(data, NODE, seed=0, tape=tape)
    rows = [next(event.clean for event in tape.events if event.name == "pagerank") for tape in tapes]
    assert rows[0].any() and np.array_equal(*rows)


def test_inductive_training_ignores_features_of_query_nodes(small):
    other = small.clone()
    other.x = torch.where(small.test_mask[:, None], 1 - small.x, small.x)
    weights = [Dpar(**SMALL).fit(data, NODE, seed=0).predictor.own.weights for data in (small, other)]
    assert np.array_equal(*weights)


@pytest.mark.parametrize("rows", ["identity", "random"])
@pytest.mark.parametrize(("route", "first"), [("gradient", "mean"), ("aggregate", "table")])
def test_ablations_spend_nothing_on_pagerank(small, rows, route, first):
    model = Dpar(**SMALL, rows=rows, route=route).fit(small, NODE)
    assert [release.name for release in model.certificate.releases] == [first, "gradient"]


@pytest.mark.parametrize(
    ("rows", "relation", "group"), [("private", "zero-out", 3), ("private", "replace", 4), ("identity", "zero-out", 1)]
)
def test_a_full_batch_is_charged_for_every_example_a_person_touches(small, rows, relation, group):
    promise = gv.NodeLevel(4.0, adjacency="node", relation=relation)
    gradient = Dpar(**SMALL, rows=rows).plan(PublicFacts.of(small), promise).step("gradient").mechanism
    loss = gradient.loss(gradient.clip)
    assert loss.mu == pytest.approx(math.sqrt(gradient.steps) * group * gradient.clip / gradient.sigma, rel=1e-6)


@pytest.mark.parametrize("select", ["gm", "em0", "em1"])
def test_without_noise_any_number_of_picks_works(small, select):
    model = Dpar(**SMALL, select=select, picks=1000).fit(small, gv.NonPrivate())
    assert model.predict(small).shape == (small.num_nodes,)


def test_sampling_slots_amplifies_the_whole_run(small):
    facts = PublicFacts.of(small)
    noise = {}
    for rate in (1.0, 0.3):
        plan = Dpar(**SMALL, graph_rate=rate).plan(facts, gv.NodeLevel(1.0, 1e-3, adjacency="node"))
        assert plan.epsilon() <= 1.0
        noise[rate] = plan.step("gradient").mechanism.sigma
    assert noise[0.3] < noise[1.0]


TEXT = {"P1", "P2", "P5", "P6"}


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({"reading": "text"}, TEXT),
        ({"reading": "text", "select": "em1"}, TEXT - {"P6"}),
        ({"reading": "code"}, TEXT - {"P5"}),
        ({"reading": "code", "select": "em0"}, {"P1", "P2"}),
        ({"reading": "code", "rows": "identity"}, {"P1"}),
        ({"reading": "code", "rows": "identity", "column_norm": 0.5}, {"P1", "P2"}),
        ({"reading": "text", "rows": "random"}, TEXT - {"P6"}),
    ],
)
def test_published_mode_prints_a_claim_without_proof(small, options, codes):
    certificate = Dpar(mode="published", hidden=4, epochs=20, **options).fit(small, NODE).certificate
    assert certificate.epsilon is None and certificate.epsilon_claimed == 4.0 and not certificate.holds
    assert {gap.code for gap in certificate.gaps} == codes
    (corrected,) = certificate.implied.values()
    assert corrected > 20  # linear amplification alone turns 4 into about 42


def sizes_of(reading, **options):
    facts = PublicFacts(3000, 5, 3, False, {"train": 2400, "query": 600})
    promise = gv.NodeLevel(0.5, 1e-4, adjacency="node")
    return Dpar(mode="published", reading=reading, **{"epochs": 20} | options).plan(facts, promise)


def test_the_text_trains_on_m_rows_of_the_sampled_graph_and_counts_all_of_them():
    plan = sizes_of("text")
    assert plan.sampled == pytest.approx(216 / 2400)
    assert plan.step("pagerank").mechanism.size == 70 * 216  # candidates are the sampled nodes
    gradient = plan.step("gradient").mechanism
    assert gradient.steps == 40 and gradient.rate == pytest.approx(60 / 70)


def test_the_code_trains_on_all_sampled_rows():
    plan = sizes_of("code")
    assert plan.sampled == pytest.approx(270 / 2400)  # nine percent of all nodes, from the training nodes
    gradient = plan.step("gradient").mechanism
    assert gradient.steps == 20 * 5 and gradient.rate == pytest.approx(60 / 270)


def test_the_budget_is_divided_as_asked():
    noise = {share: sizes_of("text", pagerank_share=share).step("pagerank").mechanism.sigma for share in (0.1, 0.5)}
    assert noise[0.5] < noise[0.1] / 4
    picks, values = (
        [sizes_of("code", select="em1", value_share=share).step(name).mechanism.scale for share in (0.2, 0.8)]
        for name in ("pagerank", "weights")
    )
    assert picks[0] < picks[1] and values[0] == pytest.approx(4 * values[1])


def recorded(data, **options):
    """The rows of Pi that the gradients of a published run read, and the run's events."""
    from graphveil.audit.central.replay import Recorder
    from graphveil.methods.dpar import published

    seen, tape, real = [], Recorder(), published.learn_from_rows

    def remembering(curator, layers, rows, owners, *others, **named):
        seen.append((rows.matrix(curator.facts.nodes).toarray(), owners))
        return real(curator, layers, rows, owners, *others, **named)

    published.learn_from_rows = remembering
    try:
        Dpar(mode="published", hidden=4, epochs=2, **options).fit(data, LOW, seed=0, tape=tape)
    finally:
        published.learn_from_rows = real
    return *seen[0], {event.name: event.released for event in tape.events}


@pytest.mark.parametrize("select", ["gm", "em1"])
def test_values_of_the_text_are_neither_cut_at_zero_nor_normalised(small, select):
    matrix, owners, events = recorded(small, reading="text", select=select, sources=6, column_norm=1e6, graph_rate=0.7)
    slots = np.flatnonzero(events["slots"])
    assert set(owners) <= set(slots) and not matrix[:, ~events["slots"]].any()
    if select == "gm":
        noisy = np.sort(events["pagerank"].reshape(6, -1), axis=1)[:, -2:]
        assert np.allclose(np.sort(matrix[matrix != 0]), np.sort(noisy.ravel()))
    else:
        assert np.allclose(np.sort(matrix[matrix != 0]), np.sort(events["weights"].ravel()))
        assert (matrix < 0).any()


def test_columns_of_the_text_are_clipped_and_those_of_the_code_scaled_up_as_well(small):
    clipped, _, _ = recorded(small, reading="text", select="em0", sources=6, column_norm=0.3, graph_rate=0.7)
    norms = np.abs(clipped).sum(axis=0)
    assert np.all(norms <= 0.3)
    scaled, owners, events = recorded(small, reading="code", sources=3, column_norm=0.3, graph_rate=0.6)
    norms = np.abs(scaled).sum(axis=0)
    assert np.allclose(norms[norms > 0], 0.3) and len(owners) == events["slots"].sum()
    rest = scaled[3:][np.arange(len(owners) - 3), owners[3:]]
    assert np.all(rest > 0) and np.count_nonzero(scaled[3:]) == len(owners) - 3  # identity rows


def test_dropout_of_one_record_does_not_depend_on_others_and_has_its_rate():
    rng = np.random.default_rng(0)
    x = sp.random(200, 300, 0.3, format="csr", random_state=rng)
    slots = np.arange(200)
    whole = dropped(SparseRows(x), slots, 5, 0.1).values
    fewer = x.copy()
    fewer.data[: fewer.indptr[1]] = 0
    fewer.eliminate_zeros()
    assert (whole[1:] != dropped(SparseRows(fewer), slots, 5, 0.1).values[1:]).nnz == 0
    gone = 1 - whole.count_nonzero() / x.nnz
    assert abs(gone - 0.1) < 5 * math.sqrt(0.09 / x.nnz)
    assert abs(whole.sum() / x.sum() - 1) < 0.02
    units = dropped_units(slots, 50, 5, 0.1)
    assert set(np.unique(units)) == {0.0, 1 / 0.9} and abs((units == 0).mean() - 0.1) < 5 * math.sqrt(0.09 / 1e4)
    assert (dropped(SparseRows(x), slots, 6, 0.1).values != whole).nnz > 0


def test_dropout_stays_on_at_prediction_and_gives_the_same_answer_twice(small):
    still, moving = (
        Dpar(mode="published", hidden=4, epochs=2, dropout=0.5, dropout_at_prediction=on).fit(small, LOW, seed=0)
        for on in (False, True)
    )
    assert np.array_equal(still.predictor.own.parameters, moving.predictor.own.parameters)
    assert not torch.equal(still.predict_proba(small), moving.predict_proba(small))
    assert torch.equal(moving.predict_proba(small), moving.predict_proba(small))


@pytest.mark.parametrize(
    "options", [{"select": "top"}, {"picks": 0}, {"graph_rate": 2.0}, {"table_share": 0.95}, {"clip": 0.0}]
)
def test_unusable_options_are_refused(small, options):
    with pytest.raises(InputError):
        Dpar(**options).fit(small, NODE)
