"""Sampled bounds stay below the truth, and come close enough to it to be worth something."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from graphveil.audit.central.lock_step import sample_scores
from graphveil.privacy.accounting.loss import SampledGaussian, epsilon_of, gaussian_mu
from graphveil.privacy.laws import SampledShift, Shift
from graphveil.privacy.noise import Noise
from graphveil.statistics.lower_bounds import clopper_pearson, epsilon_lower_bound, likelihood_lower_bound


@pytest.mark.parametrize("hits", [0, 3, 50, 100])
def test_limits_are_those_of_clopper_and_pearson(hits):
    reference = binomtest(hits, 100).proportion_ci(0.98, method="exact")
    lower, upper = clopper_pearson(hits, 100, 0.01)
    assert float(lower) == pytest.approx(reference.low, abs=1e-12)
    assert float(upper) == pytest.approx(reference.high, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (4.0, 1e-4)])
def test_the_bound_of_a_gaussian_on_its_worst_pair_reaches_seven_tenths_of_the_claim_and_never_exceeds_it(
    epsilon, delta
):
    parts = [Shift(1.0, gaussian_mu(epsilon, delta))]
    here, there = sample_scores(parts, 1_000_000, Noise(3))
    assert 0.7 * epsilon <= epsilon_lower_bound(here, there, delta).epsilon <= epsilon
    assert 0.9 * epsilon <= likelihood_lower_bound(here, there, delta, 0).epsilon <= epsilon


def test_the_bound_exceeds_the_truth_no_more_often_than_it_says():
    """Randomised response with epsilon 1, read at confidence 0.9 in 200 experiments: 20 failures expected at most, 40 allowed."""
    rng, keep = np.random.default_rng(0), math.e / (1 + math.e)
    failures = 0
    for _ in range(200):
        here, there = (rng.random((2, 2000)) < np.array([[keep], [1 - keep]])).astype(float)
        failures += epsilon_lower_bound(here, there, 0.0, 0.9).epsilon > 1.0
    assert failures <= 40


def test_equal_worlds_give_nothing_and_disjoint_ones_as_much_as_the_samples_allow():
    rng = np.random.default_rng(1)
    same = rng.normal(size=(2, 20_000))
    assert epsilon_lower_bound(*same, 1e-6).epsilon < 0.05
    apart = epsilon_lower_bound(np.ones(20_000), -np.ones(20_000), 1e-6)
    assert 7 < apart.epsilon < math.log(20_000) and apart.false_hits == 0


def test_the_sharper_bound_exceeds_the_truth_no_more_often_than_it_says():
    """The same for exact ratios at delta 0.05, where randomised response with log-odds 1 has a smaller epsilon."""
    keep, delta = math.e / (1 + math.e), 0.05
    truth = math.log((keep - delta) / (1 - keep))
    failures = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        here, there = np.where(rng.random((2, 2000)) < np.array([[keep], [1 - keep]]), 1.0, -1.0)
        failures += likelihood_lower_bound(here, there, delta, seed, 0.9).epsilon > truth
    assert failures <= 40


def test_either_world_may_be_the_one_that_is_recognised():
    """A report that only the second world makes is evidence, too."""
    rng = np.random.default_rng(2)
    second = np.where(rng.random(50_000) < 0.02, -5.0, 0.0)
    assert epsilon_lower_bound(np.zeros(50_000), second, 0.0).epsilon > 3


def test_poisson_batches_are_bounded_by_their_accountant_and_not_far_below_it():
    steps, rate, sigma, delta = 20, 0.2, 1.4, 1e-3
    parts = [SampledShift(sigma, rate, np.array([1.0]), np.array([0.0]))] * steps
    scores = sample_scores(parts, 200_000, Noise(5))
    accounted = epsilon_of([SampledGaussian(sigma, rate, steps, False)], delta)
    assert 0.6 * accounted <= epsilon_lower_bound(*scores, delta).epsilon <= accounted
    assert 0.9 * accounted <= likelihood_lower_bound(*scores, delta, 0).epsilon <= accounted
