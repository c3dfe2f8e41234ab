"""NIP-GNN in both modes: what individual noise really costs, and Lemma M with receiver scales."""

import itertools

import numpy as np
import pytest
import torch

import graphveil as gv
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.errors import InputError
from graphveil.graph import Lists
from graphveil.graph.unit import unit_array
from graphveil.methods.nip_gnn import NipGnn
from graphveil.methods.nip_gnn.influence import budget_shares, receiver_scales, scaled_sum, thinning_rates

SMALL = {"steps": 3, "width": 4, "hidden": 4, "epochs": 2}
NODE = gv.NodeLevel(4.0, adjacency="node")


@pytest.fixture
def small():
    return worst_case_graph(seed=5)[0]


def star(leaves):
    arcs = np.array([(0, leaf) for leaf in range(1, leaves + 1)]).T
    return Lists.from_edge_index(np.concatenate([arcs, arcs[::-1]], axis=1), leaves + 1)


def loss_of_the_hub(leaves, rule):
    """Whitened l1 change, in units of eps_A, when the hub leaves: Laplace scale 2 D_max / (eps_A beta_u), l1 unit rows."""
    beta = budget_shares(star(leaves), np.ones(leaves + 1), leaves, rule)
    rows = leaves * beta[0] + beta[1:].sum()  # the hub's row loses D messages, every leaf's row one
    return rows / (2 * leaves)


@pytest.mark.parametrize(("leaves", "loss"), [(5, 3.0), (20, 10.5), (168, 84.5)])
def test_a_star_loses_d_plus_one_halves_by_the_printed_rule_and_one_by_the_proof_s(leaves, loss):
    assert loss_of_the_hub(leaves, "printed") == pytest.approx(loss)
    assert loss_of_the_hub(leaves, "proof") == pytest.approx(1.0)


def test_scaled_messages_move_the_whitened_table_by_at_most_one():
    """Lemma M with receiver scales: brute force over random lists, rows and scales; hubs attain it."""
    rng, worst, swapped = np.random.default_rng(0), 0.0, 0.0
    for _ in range(400):
        nodes = int(rng.integers(2, 9))
        before = rng.random((nodes, nodes)) < rng.random()
        np.fill_diagonal(before, False)
        rows, scales = unit_array(rng.normal(size=(nodes, 3))), rng.uniform(0.4, 2.5, nodes)
        r = int(rng.integers(nodes))
        after, blank = before.copy(), rows.copy()
        after[r], blank[r] = False, 0.0
        tables = [
            scaled_sum(Lists.from_edge_index(np.array(np.nonzero(m)), nodes), h, scales)
            for m, h in (
                (before, rows),
                (after, blank),
                (before, np.where(np.arange(nodes)[:, None] == r, -rows, rows)),
            )
        ]
        worst = max(worst, float(np.linalg.norm(tables[0] - tables[1])))
        swapped = max(swapped, float(np.linalg.norm(tables[0] - tables[2])))
    assert 0.999 < worst <= 1.0 and 1.998 < swapped <= 2.0


def test_l1_messages_move_the_whitened_table_by_at_most_one_in_l1():
    """The pure version of Lemma M: blanking a record moves the whitened table by 1 in l1, replacing it by 2."""
    rng, worst, swapped = np.random.default_rng(1), 0.0, 0.0
    for _ in range(300):
        nodes = int(rng.integers(3, 9))
        before = rng.random((nodes, nodes)) < rng.random()
        np.fill_diagonal(before, False)
        rows, scales = rng.normal(size=(nodes, 3)), rng.uniform(0.4, 2.5, nodes)
        rows /= np.abs(rows).sum(axis=1, keepdims=True)
        r = int(rng.integers(nodes))
        after, moved = before.copy(), before.copy()
        after[r] = False
        moved[r] = ~before[r] & (np.arange(nodes) != r)
        old, blank, new = (
            scaled_sum(Lists.from_edge_index(np.array(np.nonzero(m)), nodes), rows, scales, order=1)
            for m in (before, after, moved)
        )
        worst = max(worst, float(np.abs(old - blank).sum()))
        swapped = max(swapped, float(np.abs(old - new).sum()))
    assert 0.999 < worst <= 1.0 and 1.998 < swapped <= 2.0


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
@pytest.mark.parametrize("messages", ["features", "labels", "rr-labels"])
def test_laplace_noise_and_randomised_labels_add_up_to_a_pure_epsilon(small, relation, messages):
    method = NipGnn(**SMALL, labels="rr", noise="laplace", messages=messages)
    certificate = method.fit(small, gv.NodeLevel(2.0, relation=relation)).certificate
    pure = sum(release.loss("train").ratio for release in certificate.releases if release.name != "labels")
    pure += next(release.mechanism.epsilon for release in certificate.releases if release.name == "labels")
    assert certificate.holds and 2.0 - 1e-9 < pure <= 2.0


def test_label_messages_are_as_wide_as_there_are_classes(small):
    model = NipGnn(**SMALL, messages="labels").fit(small, gv.NodeLevel(2.0))
    assert {table.shape[1] for table in model.predictor.tables.values()} == {3}


def test_scales_come_from_released_rows_and_average_one():
    scales = receiver_scales(np.random.default_rng(0).normal(size=(101, 3)), 1.5)
    assert scales.min() == pytest.approx(1 / 1.5) and scales.max() == pytest.approx(1.5)
    assert np.exp(np.log(scales).mean()) == pytest.approx(1.0)


def test_thinning_keeps_the_mean_degree_only_by_the_intended_reading():
    """A Cora-like node, s close to 1: the printed rate leaves hundreds of edges, the intended one about four."""
    nodes, degree, redraw = 2708, np.array([4.0]), 0.994
    noisy = degree * (1 - redraw / 2) + (nodes - 1 - degree) * redraw / 2
    left = {rule: float((noisy * thinning_rates(degree, nodes, redraw, rule))[0]) for rule in ("printed", "intended")}
    assert left["printed"] > 100 and left["intended"] == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize("labels", ["gradients", "rr"])
@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_epsilon_comes_close_to_the_target_and_never_exceeds_it(small, labels, relation):
    certificate = NipGnn(**SMALL, labels=labels).fit(small, gv.NodeLevel(2.0, relation=relation)).certificate
    assert certificate.holds and 1.99 < certificate.epsilon <= 2.0


@pytest.mark.parametrize(
    ("options", "missing"),
    [({"allocation": "uniform"}, "influence"), ({"hops": 1}, "hop 2")],
)
def test_ablations_drop_their_release(small, options, missing):
    model = NipGnn(**SMALL, **options).fit(small, gv.NodeLevel(2.0))
    assert missing not in [release.name for release in model.certificate.releases]


def test_models_survive_saving(small, tmp_path):
    variants = [(NipGnn(**SMALL), gv.NodeLevel(2.0)), (NipGnn(mode="published", hidden=4, epochs=2), NODE)]
    for number, (method, promise) in enumerate(variants):
        model = method.fit(small, promise, seed=1)
        model.save(tmp_path / str(number))
        assert torch.equal(gv.load_model(tmp_path / str(number)).predict_proba(small), model.predict_proba(small))


@pytest.mark.parametrize(
    "options",
    [
        {"allocation": "some"},
        {"label_share": 0.9},
        {"spread": 0.5},
        {"hops": 0},
        {"noise": "laplace"},
        {"messages": "rr-labels"},
    ],
)
def test_unusable_options_are_refused(small, options):
    with pytest.raises(InputError):
        NipGnn(**options).fit(small, gv.NodeLevel(1.0))


def test_a_lone_pair_has_no_share_above_its_ceiling():
    for rule, ranks in itertools.product(("printed", "proof"), ([1.0, 2.0], [5.0, 1.0])):
        assert np.all(budget_shares(star(1), np.array(ranks), 7, rule) <= 7)
