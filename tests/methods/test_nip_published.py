"""Published NIP-GNN step by step: influence, budget shares, noisy edges, ACA, and what each reading changes."""

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError
from graphveil.graph import Lists
from graphveil.graph.validate import validate
from graphveil.methods.nip_gnn import NipGnn
from graphveil.methods.nip_gnn.influence import budget_shares, norm_rows, thinning_rates
from graphveil.methods.nip_gnn.network import Calibrated, Sage, noisy_matrix
from graphveil.methods.nip_gnn.noisy_graph import kept_arcs, pair_flips
from graphveil.methods.nip_gnn.tnie import influence_ranks, neighbour_sensing
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import AskedFlips
from graphveil.privacy.noise import Noise

SMALL = {"mode": "published", "hidden": 4, "epochs": 2}
NODE = gv.NodeLevel(4.0, adjacency="node")


@pytest.fixture
def small():
    return worst_case_graph(seed=5)[0]


def random_lists(nodes, arcs, seed=0):
    pairs = np.random.default_rng(seed).integers(0, nodes, (2, arcs))
    return Lists.from_edge_index(np.concatenate([pairs, pairs[::-1]], axis=1), nodes)


def test_neighbour_sensing_is_equation_7_without_a_self_term():
    path = Lists.from_edge_index(np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    half = 2**-0.5
    assert np.allclose(neighbour_sensing(path).toarray(), [[0, half, 0], [half, 0, half], [0, half, 0]])


@pytest.mark.parametrize("targets", [False, True])
def test_ranks_are_a_permutation_and_learned_ones_depend_on_the_noisy_labels(small, targets):
    graph = validate(small, on_bad_rows="zero")
    told = np.maximum(graph.labels, 0) if targets else None
    ranks = influence_ranks(graph, graph.lists, 2, np.random.default_rng(0), told)
    assert sorted(ranks) == list(range(1, graph.nodes + 1))
    other = influence_ranks(
        graph, graph.lists, 2, np.random.default_rng(0), None if told is None else told[::-1].copy()
    )
    assert np.array_equal(ranks, other) is not targets


@pytest.mark.parametrize("cap", [2, 5])
def test_bounded_lists_have_no_degree_above_the_bound_and_stay_mutual(cap):
    bounded = random_lists(40, 200).bounded(cap, np.random.default_rng(1))
    assert max(bounded.in_degrees.max(), bounded.out_degrees.max()) <= cap
    arcs = {tuple(arc) for arc in bounded.edge_index().T}
    assert arcs and arcs == {(b, a) for a, b in arcs}


@pytest.mark.parametrize("rule", ["printed", "proof"])
def test_no_share_of_the_budget_is_below_one_on_a_bounded_graph(rule):
    lists, coins = random_lists(60, 400), np.random.default_rng(2)
    ranks = coins.permutation(60) + 1.0
    cut = budget_shares(
        lists.capped(4, np.random.default_rng(3)), ranks, 4, rule
    )  # own lists alone: mentions stay above
    whole = budget_shares(lists.bounded(4, np.random.default_rng(3)), ranks, 4, rule)
    assert cut.min() < 1 <= whole.min()


def test_rows_have_norm_one_in_the_chosen_norm(small):
    graph = validate(small, on_bad_rows="zero")
    for order in (1, 2):
        norms = np.linalg.norm(norm_rows(graph, order).toarray(), ord=order, axis=1)
        assert np.allclose(norms[norms > 0], 1)


def test_arcs_are_kept_with_their_receivers_chance():
    """5000 arcs per receiver on average: a deviation of 5 standard deviations has a chance below 1e-6 each."""
    rates, seen = np.array([0.0, 0.1, 0.5, 1.0]), np.zeros((4, 4))
    coins = np.random.default_rng(0)
    for _ in range(2000):
        senders, receivers = kept_arcs(rates, coins, 100)
        seen[senders, receivers] += 1
    assert not np.diag(seen).any()
    for receiver, rate in enumerate(rates):
        counts = np.delete(seen[:, receiver], receiver)
        assert np.all(np.abs(counts - 2000 * rate) <= 5 * np.sqrt(2000 * rate * (1 - rate)))


def test_coins_for_the_asked_pairs_alone_have_the_law_of_all_coins():
    """Joined pairs stay and others come with the same chances; 5 standard deviations of 20000 coins."""
    flips = AskedFlips(1.0, 10**12)
    asked = np.arange(20_000) * 10**7
    joined = np.arange(20_000) % 2
    found = np.isin(asked, flips.apply(np.stack([asked, joined]), Noise(0)))
    flip = flips.flips.flip
    for state, chance in ((1, 1 - flip), (0, flip)):
        assert abs(found[joined == state].mean() - chance) < 5 * np.sqrt(flip * (1 - flip) / 10_000)


def test_sampling_by_asked_pairs_keeps_expected_degrees():
    """s close to 1, where half of all pairs would be joined; mean degree within 5 standard deviations of what it was."""
    nodes, degree, redraw = 3000, 6.0, 0.99
    rates = thinning_rates(np.full(nodes, degree), nodes, redraw, "intended")
    arcs = kept_arcs(rates, np.random.default_rng(0), 10**6)
    joined = np.random.default_rng(1).random(arcs.shape[1]) < redraw / 2
    assert joined.sum() / nodes == pytest.approx(degree, rel=0.05)


def test_a_flood_of_noisy_edges_is_sampled_or_refused_by_name():
    assert isinstance(pair_flips(1e-3, 22_470, True, 50_000_000), AskedFlips)  # Facebook pages: 1.26e8 pairs
    with pytest.raises(InputError, match="max_edges"):
        NipGnn(mode="published", degree_sampling=False, exponent="fraction").plan(PublicFacts(20_000, 10, 3), NODE)
    with pytest.raises(InputError, match="max_edges"):
        kept_arcs(np.full(20_000, 0.5), np.random.default_rng(0), 50_000_000)


@pytest.mark.parametrize("hops", [1, 2, 3])
@pytest.mark.parametrize("raw", [-3.0, 0.0, 2.0])
def test_batches_compute_equations_14_and_15_exactly(hops, raw):
    coins = np.random.default_rng(hops)
    rows, arcs = coins.normal(size=(30, 4)), random_lists(30, 50).edge_index()
    network = Calibrated(rows, arcs, 3, 2, hops, coins)
    near, tau = noisy_matrix(arcs, 30, loops=True).toarray(), float(np.log1p(np.exp(raw)))
    expected = rows
    for _ in range(hops):
        heard = near @ expected
        gamma = np.maximum(1 - tau / np.maximum(np.linalg.norm(heard - rows, axis=1, keepdims=True), 1e-9), 0)
        expected = (1 - gamma) * rows + gamma * heard
    batch = np.array([3, 17, 29, 3])
    found = rows[batch] + network.excess(batch, hops, torch.tensor([tau])).numpy()
    assert np.allclose(found, expected[batch], atol=1e-5)
    if hops == 2:
        with torch.no_grad():
            network.free_tau.fill_(raw)
        network.refresh()
        found = network.two_hops(torch.from_numpy(batch), torch.tensor([tau]))[: len(batch)].numpy()
        assert np.allclose(found, expected[batch], atol=1e-5)


def test_gradients_are_the_same_with_and_without_the_table():
    coins = np.random.default_rng(0)
    rows, arcs = coins.normal(size=(30, 4)) * 9, random_lists(30, 50).edge_index()
    network, batch, found = Calibrated(rows, arcs, 3, 2, 2, coins), np.arange(10), []
    for active in (network.active, ~network.active):  # the wrong set: the table is passed over
        network.active = active
        network.zero_grad()
        network(batch).square().sum().backward()
        found.append([parameter.grad.clone() for parameter in network.parameters()])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5 * float(one.abs().max())) and one.any()


def test_without_residual_the_layers_are_sage():
    coins = np.random.default_rng(0)
    rows, arcs = coins.normal(size=(20, 3)), random_lists(20, 30).edge_index()
    network, mean = Sage(rows, arcs, 5, 2, 2, coins), noisy_matrix(arcs, 20, loops=False).toarray()
    first, last = [[w.weight.detach().numpy().T for w in pair] for pair in zip(network.own, network.heard, strict=True)]
    hidden = torch.selu(torch.from_numpy(rows @ first[0] + mean @ rows @ first[1])).numpy()
    expected = (hidden @ last[0] + mean @ hidden @ last[1])[[4, 19]]
    assert np.allclose(network(np.array([4, 19])).detach().numpy(), expected, atol=1e-5)


def test_the_default_claims_a_pure_epsilon_proves_none_and_declares_d_max(small):
    certificate = NipGnn(**SMALL).fit(small, NODE).certificate
    assert certificate.epsilon is None and certificate.epsilon_claimed == 4.0 and not certificate.holds
    assert {gap.code for gap in certificate.gaps} == {"N1", "N2", "N5", "N10"}
    lists = validate(small, on_bad_rows="zero").lists
    assert certificate.facts.max_degree == lists.in_degrees.max() and any(
        "D_max" in line for line in certificate.public
    )
    assert "max_degree" not in NipGnn(**SMALL, max_degree=3).fit(small, NODE).certificate.to_json()["facts"]


def test_the_exponent_decides_what_a_pair_costs():
    facts = PublicFacts(2708, 1433, 7, max_degree=168)
    costs = {e: NipGnn(mode="published", exponent=e).per_pair(facts, NODE) for e in ("fraction", "left-to-right")}
    assert costs == pytest.approx({"fraction": 1 / 336, "left-to-right": 84})


@pytest.mark.parametrize("change", [{"noise": "row"}, {"sums": "mean"}, {"max_edges": 200, "exponent": "fraction"}])
def test_variants_train_and_predict(small, change):
    model = NipGnn(**SMALL, **change).fit(small, NODE, seed=0)
    assert model.predict(small).shape == (small.num_nodes,)
