"""Scores are likelihood ratios, touched rows are counted, and histories stay within their promises."""

import math

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.central.audit import audit_central
from graphveil.audit.central.histories import History, Touched
from graphveil.audit.central.lock_step import declared_pair, merged, sample_scores
from graphveil.audit.central.neighbours import worst_case_graph
from graphveil.methods.dp_mlp import DpMlp
from graphveil.methods.dp_sage import DpSage
from graphveil.methods.dpdgc import Dpdgc
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.laws import Flips, LaplaceShift, Picks, Responses, SampledShift, Shift
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian
from graphveil.privacy.noise import Noise
from graphveil.privacy.response import BitFlips, CategoryResponse

LAWS = {
    "Gaussian": Shift(1.0, 0.7),
    "one row": SampledShift(1.0, 0.3, np.array([0.8]), np.array([0.0])),
    "equal rows": SampledShift(1.0, 0.3, np.array([0.4, 0.4, 0.4]), np.array([-0.3, -0.3, 0.0])),
    "Laplace": LaplaceShift(2.0, np.array([0.5, -0.7, 1.0])),
    "responses": Responses(CategoryResponse(0.6, 4), np.array([0, 2]), np.array([1, 3])),
    "flips": Flips(BitFlips(0.5), np.array([True, False, True])),
    "picks": Picks(1.0, 2, np.array([0.0, 0.5, 1.0]), np.array([0.4, 0.5, 0.2])),
}
DRAWS = 200_000


@pytest.mark.parametrize("name", LAWS)
def test_scores_are_log_likelihood_ratios(name):
    """E_second[exp(score)] = 1 and E_first[exp(-score)] = 1: only the true ratio has both. Six standard errors."""
    noise = Noise(1)
    for here, sign in ((False, 1), (True, -1)):
        weights = np.exp(sign * LAWS[name].scores(here, DRAWS, noise))
        assert abs(weights.mean() - 1) < 6 * weights.std() / math.sqrt(DRAWS)
    assert LAWS[name].scores(True, DRAWS, noise).mean() > 0.01  # the first world scores higher


def test_equal_values_leave_no_law_and_values_in_the_clear_an_infinite_one():
    value = np.ones(3)
    assert Gaussian(1.0, 3).worlds(value, value) == []
    (visible,) = Exact().worlds(value, value + 1)
    assert math.isinf(visible.scores(True, 1, Noise(0))[0])


def test_merged_gaussian_steps_have_the_law_of_separate_ones():
    laws = [Shift(2.0, 0.5), Shift(2.0, 1.2), Shift(1.0, 0.3)]
    together = merged(laws)
    mu = lambda found: sum(law.squared_mu for law in found)
    assert len(together) == 2 and mu(together) == pytest.approx(mu(laws))


def test_sampled_slots_mix_the_worlds_once():
    """At rate 1 nothing changes; at rate q the score is log(1 - q + q e^score), so it is bounded below."""
    here, there = sample_scores([Shift(1.0, 3.0)], 50_000, Noise(2), sampled=0.1)
    assert min(here.min(), there.min()) >= math.log(0.9) - 1e-12
    assert np.exp(there).mean() == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize(
    "method",
    [DpSage(steps=2, hidden=3, max_degree=3), Dpdgc(steps=2, code_steps=2, hidden=3, width=3, rows="listed-by")],
    ids=repr,
)
def test_a_record_touches_several_rows_and_never_more_than_declared(method):
    data, names = worst_case_graph(1)
    promise = gv.NodeLevel(4.0, 1e-4)
    plan = method.plan(PublicFacts.of(data), promise)
    history = History.of(method, plan, data, 0)
    seen = []
    for world in history.worlds({"hub": names["hub"], "clique member": names["clique member"]}):
        history.expand(world)
        for name, touched in world.touched.items():
            mechanism = plan.step(name).mechanism
            assert touched.complete and touched.within(mechanism)
            assert touched.longest <= mechanism.clip * (1 + 1e-9)
            seen.append(sum(touched.group))
    assert max(seen) > 2, "no record touched a row of somebody else: nothing was tested"


def test_a_group_is_too_large_in_either_order():
    table = np.ones((1, 2))
    touched = Touched({0: table, 1: table}, {0: table, 1: 0 * table}, True)
    assert touched.group == (2, 1)
    step = {"sigma": 1.0, "clip": 2.0, "steps": 1, "dimension": 2, "rate": 0.5}
    assert touched.within(DpGradient(**step, group=(2, 1))) and touched.within(DpGradient(**step, group=(1, 2)))
    assert not touched.within(DpGradient(**step, group=(2, 0))) and not touched.within(DpGradient(**step, group=(1, 1)))


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_poisson_training_is_observed_below_its_promise_and_well_above_nothing(relation):
    method = DpMlp(network="paper", epochs=4, hidden=4, batch_size=5)
    found = audit_central(method, gv.NodeLevel(4.0, 1e-4, relation=relation), runs=1, samples=40_000, outside=False)
    assert not found.violated, found.failures
    assert 1.0 < found.observed <= 4.0


@pytest.mark.parametrize("method", [DpMlp(steps=4), DpSage(steps=3, hidden=3, max_degree=3)], ids=repr)
def test_the_declared_worst_pair_comes_close_to_the_accounted_epsilon_and_never_exceeds_it(method):
    plan = method.plan(PublicFacts(400, 6, 3), gv.NodeLevel(4.0, 1e-3))
    (found,), failures = declared_pair(plan, 300_000, 0)
    assert failures == [] and 0.9 * plan.epsilon() <= found.epsilon <= plan.epsilon()
