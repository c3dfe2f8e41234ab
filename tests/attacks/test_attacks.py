"""LSA2, link stealing, attribute inference and membership on a generated graph, and their controls."""

import numpy as np
import pytest
import torch
from scipy.spatial import distance as scipy_distance

import graphveil as gv
from graphveil.attacks import (
    AttributeInference,
    HiddenAttribute,
    Knowledge,
    LinkStealing,
    LinkTeller,
    Lsa2,
    Membership,
    epsilon_lower_bound,
    feature_randomizer,
    sample_pairs,
)
from graphveil.attacks.link_stealing import COMBINATIONS, split_cases
from graphveil.attacks.lsa2 import DISTANCES, REFERENCE
from graphveil.attacks.membership import PARTS, PUBLISHED, SAME_GRAPH, member_world, split_parts
from graphveil.attacks.models import MODELS, AttackModel
from graphveil.attacks.target import posteriors
from graphveil.errors import InputError


@pytest.fixture(scope="module")
def pairs(graph):
    return sample_pairs(graph, "balanced", 400, 0)


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_are_those_of_scipy(name):
    rng = np.random.default_rng(0)
    a, b = rng.random((20, 5)), rng.random((20, 5))
    expected = [getattr(scipy_distance, name)(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(DISTANCES[name](a, b), expected, rtol=1e-9)
    zeros = np.zeros((2, 5))
    assert np.isfinite(DISTANCES[name](zeros, zeros)).all()


def test_lsa2_finds_edges_and_is_read_beside_the_method_without_edges(data, gcn, pairs):
    bare = data.clone()
    bare.edge_index = data.edge_index[:, :0]
    reference = posteriors(gv.Gcn(epochs=60, hidden=16).fit(bare, gv.NonPrivate(), seed=0), bare)
    result = Lsa2().run(gcn, data, pairs, reference=reference)
    assert result.auc > 0.7 and result.headline.name == "correlation"
    assert {finding.name for finding in result.findings} == {*DISTANCES, "attributes, cosine", "attributes, euclidean"}
    assert result.facts["auc_from_edges"] == pytest.approx(result.auc - result[REFERENCE].figures["auc"])
    assert result.facts["auc_from_edges"] > 0


def test_lsa2_with_equal_answers_for_everybody_is_chance(data, pairs):
    class Same:
        def predict_proba(self, asked):
            return torch.full((asked.num_nodes, 4), 0.25)

    findings = Lsa2().run(Same(), data, pairs).findings
    assert all(f.figures["auc"] == 0.5 for f in findings if not f.name.startswith("attributes"))


@pytest.mark.parametrize("model", MODELS)
def test_every_attack_model_learns_a_simple_rule_and_keeps_its_threshold(model):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 4)) * [1, 100, 1, 1]
    answers = rows[:, 0] > 0
    fitted = AttackModel(model, epochs=20).fit(rows[:400], answers[:400], 0)
    assert np.mean((fitted.score(rows[400:]) >= fitted.threshold) == answers[400:]) > 0.8
    with pytest.raises(InputError, match="one answer"):
        AttackModel(model).fit(rows, np.ones(600, dtype=bool), 0)


def test_standardisation_uses_the_attackers_own_cases_only():
    rng = np.random.default_rng(0)
    rows, answers = rng.normal(size=(300, 3)), rng.random(300) < 0.5
    fitted = AttackModel("lr").fit(rows, answers, 0)
    one = fitted.score(rows[:1])
    np.testing.assert_allclose(fitted.score(np.vstack([rows[:1], rows[:5] + 1e3]))[:1], one)


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_combinations_of_two_rows_do_not_depend_on_their_order_except_concat(combination):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 3))
    same = np.array_equal(COMBINATIONS[combination](a, b), COMBINATIONS[combination](b, a))
    assert same == (combination != "concat")


def test_link_stealing_from_clean_rows_beats_reports_of_a_small_epsilon(graph):
    game = sample_pairs(graph, "degree-matched", 700, 0)
    attack = LinkStealing(("hadamard-difference", "concat"), ("mlp", "lr"))
    clean = attack.run(graph, game, Knowledge.of(graph, 0.7))
    assert [f.name for f in clean.findings][:2] == ["mlp, hadamard-difference", "mlp, concat"]
    reports = Knowledge.released_by(graph, feature_randomizer("direction", 0.1, graph.features), 0, 0.7)
    noisy = attack.run(graph, game, reports)
    assert clean.auc > 0.65 and noisy.auc < 0.6 and "Direction reports, epsilon 0.1" in noisy.knowledge
    assert clean.headline.figures.positives == 210
    assert {c.name for c in clean.controls} == {"cosine, no training", "degree product", "label equality"}


def test_link_stealing_needs_attributes_and_known_answers(graph, pairs):
    with pytest.raises(InputError, match="share of the answers"):
        LinkStealing().run(graph, pairs, Knowledge.of(graph))
    with pytest.raises(InputError, match="unknown combination"):
        LinkStealing(("sum",)).run(graph, pairs)
    with pytest.raises(InputError, match="unknown attack model"):
        LinkStealing(models=("oracle",)).run(graph, pairs)
    nobody = Knowledge(np.zeros((graph.nodes, 0)), np.ones(graph.nodes, dtype=bool), 0.5)
    with pytest.raises(InputError, match="no attributes"):
        LinkStealing().run(graph, pairs, nobody)


def test_known_and_guessed_cases_are_apart_and_hold_both_answers():
    answers = np.random.default_rng(0).random(100) < 0.2
    taught, asked = split_cases(answers, 0.7, 0)
    assert not set(taught) & set(asked) and len(taught) + len(asked) == 100
    assert abs(answers[taught].mean() - answers[asked].mean()) < 0.05
    with pytest.raises(InputError, match="too few"):
        split_cases(np.array([True, False]), 0.5, 0)


def hidden_game(nodes=1500):
    """Column 2 is column 0 unless a coin of 0.1 says otherwise."""
    from torch_geometric.data import Data

    rng = np.random.default_rng(0)
    x = (rng.random((nodes, 5)) < 0.4).astype(np.float32)
    x[:, 2] = np.where(rng.random(nodes) < 0.1, 1 - x[:, 0], x[:, 0])
    data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(rng.integers(0, nodes, (2, 4000))))
    data.feature_names = [f"likes {i}" for i in range(5)]
    return data


def test_attribute_inference_reads_the_hidden_column_off_the_others_and_not_off_itself():
    data = hidden_game()
    game = HiddenAttribute.of(data, "likes 2")
    assert game.rows.shape[1] == 4 and np.array_equal(game.hidden, data.x[:, 2].numpy() > 0)
    result = AttributeInference(MODELS).run(game)
    assert all(f.figures["accuracy"] > 0.85 for f in result.findings) and result.headline.figures["accuracy"] < 0.95
    assert {c.name for c in result.controls} == {"random", "random imputation", "feature propagation"}
    assert all(abs(c.figures["auc"] - 0.5) < 0.1 for c in result.controls)
    assert AttributeInference().run(HiddenAttribute.of(data, 1)).auc < 0.6  # nothing tells column 1


def test_reports_of_a_small_epsilon_hide_the_attribute():
    game = HiddenAttribute.of(hidden_game(), "likes 2")
    auc = {
        epsilon: AttributeInference().run(game.release(feature_randomizer("multi-bit", epsilon, 4), 0)).auc
        for epsilon in (0.1, 8.0)
    }
    assert auc[0.1] < 0.58 < auc[8.0] - 0.1


@pytest.mark.parametrize(("column", "word"), [("likes 22", "likes 2"), (9, "number in 0..4"), ("x", "no attribute")])
def test_unknown_attributes_are_refused(column, word):
    with pytest.raises(InputError, match=word):
        HiddenAttribute.of(hidden_game(), column)


def test_feature_propagation_finds_what_friends_share():
    from graphveil.attacks.attribute_inference import propagate

    arcs = np.array([[0, 1, 1, 2, 3, 4, 4, 5], [1, 0, 2, 1, 4, 3, 5, 4]])
    game = HiddenAttribute(np.zeros((7, 1)), np.array([1, 1, 1, 0, 0, 0, 0], dtype=bool), arcs, "x")
    values = propagate(game, np.array([0, 3]))
    assert values[1] > 0.9 and values[2] > 0.9 and values[4] < 0.1 and values[5] < 0.1 and values[6] == 0.5


def test_membership_finds_members_of_an_overfitted_model_and_not_of_a_private_one(hard):
    overfitted = gv.Mlp(epochs=200, learning_rate=0.01, dropout=0.0, best_epoch=False)
    result = Membership().run(overfitted, gv.NonPrivate(), hard)
    assert [f.name for f in result.findings] == [SAME_GRAPH, PUBLISHED] and result.auc > 0.6
    private = Membership().run(gv.DpMlp(), gv.NodeLevel(0.5), hard)
    assert private.auc < 0.6


def test_the_published_protocol_asks_members_elsewhere_and_looks_better(hard):
    result = Membership().run(gv.Gcn(hidden=64, epochs=100, dropout=0.0, weight_decay=0.0), gv.NonPrivate(), hard)
    assert result[PUBLISHED].figures["auc"] > result.auc + 0.05


def test_target_and_shadow_share_nobody_and_only_members_have_records(graph):
    parts = split_parts(graph, 0)
    everybody = np.concatenate([parts[name] for name in PARTS])
    assert len(np.unique(everybody)) == len(everybody) == graph.nodes // 4 * 4
    world = member_world(graph, parts["target members"], 0)
    member = np.zeros(graph.nodes, dtype=bool)
    member[parts["target members"]] = True
    senders, receivers = world.lists.edge_index()
    assert member[senders].all() and member[receivers].all() and (world.labels[~member] == -1).all()
    assert not world.rows.occupied().numpy()[~member].any()
    assert np.array_equal(world.masks["train"] | world.masks["calibration"], member)


def test_a_saved_target_is_attacked_with_a_shadow_of_the_other_nodes(hard):
    asked = hard.clone()
    asked.train_mask = torch.arange(600) < 150
    asked.val_mask, asked.test_mask = torch.zeros(600, dtype=torch.bool), torch.arange(600) >= 150
    method = gv.Mlp(epochs=200, learning_rate=0.01, dropout=0.0, best_epoch=False)
    model = method.fit(asked, gv.NonPrivate(), seed=0)
    result = Membership().run_on(model, method, gv.NonPrivate(), asked)
    assert result.auc > 0.6 and result.facts["target_members"] == result.headline.figures.positives == 150


def test_deezer_users_give_their_genre_away(shared_data):
    game = HiddenAttribute.of(gv.load_dataset("deezer-hu", seed=0), "Alternative")
    result = AttributeInference(epochs=3).run(game)
    assert result.headline.figures["f1"] >= 0.75


def test_bounds_from_attacks_use_the_delta_of_the_promise(data, pairs):
    """A perfect distinguisher with probability delta refutes nothing: at delta 0 it would refute everything."""
    target = gv.DpMlp(steps=2).fit(data, gv.NodeLevel(4.0, 0.3), seed=0)
    attacks = [Lsa2().run(target, data, pairs), LinkTeller().run(target, data, pairs)]
    attacks.append(Membership(epochs=1).run(gv.DpMlp(steps=2), gv.NodeLevel(4.0, 0.3), data))
    for result in attacks:
        for found in (*result.findings, *result.controls):
            at_delta = epsilon_lower_bound(found.truth, found.score, delta=0.3)
            assert found.figures.epsilon == at_delta and found.figures.to_json()["delta"] == 0.3
        assert "(delta 0.3)" in str(result)
    assert any(
        f.figures.epsilon < epsilon_lower_bound(f.truth, f.score) for r in attacks for f in (*r.findings, *r.controls)
    )
