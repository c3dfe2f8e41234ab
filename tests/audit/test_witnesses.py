"""Published modes: the violations that are known, with the figures that are known."""

import math

import pytest

import graphveil as gv
from graphveil.audit import audit_method
from graphveil.audit import witnesses as known
from graphveil.audit.result import RED
from graphveil.methods.gap import Gap
from graphveil.methods.nip_gnn import NipGnn


@pytest.mark.parametrize(("leaves", "factor"), [(5, 3.0), (20, 10.5)])
def test_a_star_costs_half_of_its_degree_plus_one_with_fixed_scales(leaves, factor):
    found = known.star_with_fixed_scales(leaves)
    assert found.epsilon / found.claim == pytest.approx(factor, rel=1e-9)


def test_scales_that_depend_on_the_data_have_no_bound():
    assert math.isinf(known.star_with_live_scales().epsilon)
    assert math.isinf(known.thinning_by_true_degree().epsilon)


@pytest.mark.parametrize(("claim", "truth"), [(1.0, 8.70), (8.0, 86.5)])
def test_linear_amplification_understates(claim, truth):
    assert known.linear_amplification(claim).epsilon == pytest.approx(truth, abs=0.05)


def test_a_weight_of_one_ten_thousandth_turns_a_clipped_gradient_round():
    found = known.clipped_gradient_turns_round(1e-4)
    assert found.details["moved_in_clips"] == pytest.approx(2.0, abs=1e-3) and found.epsilon > 2 * found.claim


def test_one_friendship_at_the_noise_for_one_entry_turns_one_into_about_one_point_four_five():
    assert known.undirected_edge().epsilon == pytest.approx(1.45, abs=0.01)


def test_lists_cut_to_d_entries_move_far_more_than_the_root_of_d():
    assert known.cap_is_not_stable().epsilon > 5 * 4.0


def test_the_root_of_a_group_is_not_its_sum():
    assert known.root_of_the_group().epsilon > 1.3 * 8.0


def test_reported_contacts_and_attributes_in_the_clear_are_infinite():
    assert math.isinf(known.seven_people().epsilon) and "40 of 42" in known.seven_people().how
    assert math.isinf(known.attributes_in_the_clear().epsilon)
    assert math.isinf(known.edges_in_the_clear().epsilon)
    assert known.whole_budget_each(6).epsilon == pytest.approx(6.0, rel=1e-6)


def test_the_audit_of_published_gap_at_edge_level_observes_more_than_is_claimed():
    found = audit_method(Gap(mode="published"), gv.EdgeLevel(1.0), runs=1, outside=False)
    assert found.verdict == RED and "A1" in found.codes
    assert found.claimed == 1.0 and found.provable == pytest.approx(1.48, abs=0.01)  # at delta 1e-4
    assert 1.3 < found.observed <= found.provable


def test_the_audit_of_published_gap_under_node_finds_the_cap():
    method = Gap(mode="published", max_degree=8, batch_size=13, epochs=1, hidden=3)
    found = audit_method(method, gv.NodeLevel(4.0, adjacency="node"), runs=1, samples=20_000, outside=False)
    assert found.verdict == RED and "D3" in found.codes
    assert any(share.name.startswith("hop") and not share.kept for share in found.shares)
    assert any(entry.code == "D3" and entry.epsilon > entry.claim for entry in found.witnesses)


def test_the_audit_of_published_nip_prints_three_times_the_claim_and_infinity():
    found = audit_method(
        NipGnn(mode="published", hidden=3, epochs=1), gv.NodeLevel(4.0, adjacency="node"), runs=1, outside=False
    )
    assert found.verdict == RED and math.isinf(found.observed)
    by_code = {entry.code: entry for entry in found.witnesses}
    assert by_code["N1"].epsilon == pytest.approx(3 * by_code["N1"].claim) and math.isinf(by_code["N2"].epsilon)
    body = found.to_json()
    assert body["epsilon_claimed"] == 4.0 and body["epsilon_observed"] is None and body["observed_unbounded"]
