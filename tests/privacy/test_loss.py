"""Accounting against closed forms, numerical integration and dp_accounting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from graphveil.privacy.accounting.loss import (
    Gdp,
    LaplaceLoss,
    Pure,
    SampledGaussian,
    Unbounded,
    compose,
    epsilon_of,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
)


@pytest.mark.parametrize("mu", [0.05, 0.5, 1.3, 4.0, 12.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 9.0])
def test_gaussian_delta_equals_the_hockey_stick_integral(mu, epsilon):
    def excess(x):
        return max(0.0, norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x))

    threshold = epsilon / mu + mu / 2
    integral, _ = quad(excess, threshold, max(threshold, mu) + 12, limit=400, epsabs=0.0, epsrel=1e-10)
    assert gaussian_delta(mu, epsilon) == pytest.approx(integral, rel=1e-6, abs=1e-13)


@given(st.floats(0.01, 60), st.floats(1e-12, 0.4))
def test_calibrated_mu_never_overshoots_and_is_tight(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(mu * (1 + 1e-6), epsilon) > delta
    assert gaussian_epsilon(mu, delta) <= epsilon * (1 + 1e-9)


def test_epsilon_is_rounded_up_never_down():
    for mu in np.geomspace(0.01, 20, 40):
        epsilon = gaussian_epsilon(mu, 1e-5)
        assert gaussian_delta(mu, epsilon) <= 1e-5


def test_a_friendship_counted_once_is_worth_1_455_instead_of_1():
    """GAP's edge level on undirected data, at its delta for a graph of 10^5 to 10^6 directed edges."""
    assert gaussian_epsilon(math.sqrt(2) * gaussian_mu(1.0, 1e-6), 1e-6) == pytest.approx(1.455, abs=1e-3)


def test_gaussians_compose_exactly():
    (total,) = compose([Gdp(0.3), Gdp(0.4), Gdp(0.0)])
    assert total == Gdp(pytest.approx(0.5))
    assert epsilon_of([Gdp(0.3), Gdp(0.4)], 1e-5) == pytest.approx(gaussian_epsilon(0.5, 1e-5))


def test_privacy_loss_distributions_agree_with_exact_gaussian_composition_and_never_fall_below():
    exact = gaussian_epsilon(math.hypot(0.5, 0.4), 1e-5)
    almost_nothing = Pure(1e-9)  # forces the general route
    general = epsilon_of([Gdp(0.5), Gdp(0.4), almost_nothing], 1e-5)
    assert exact <= general <= exact * 1.002


def test_full_rate_sampling_equals_the_plain_gaussian():
    sampled = epsilon_of([SampledGaussian(2.0, 1.0, 9, replace=False)], 1e-5)
    assert sampled == pytest.approx(gaussian_epsilon(3 / 2.0, 1e-5), rel=2e-3)
    swapped = epsilon_of([SampledGaussian(2.0, 1.0, 9, replace=True)], 1e-5)
    assert swapped == pytest.approx(gaussian_epsilon(2 * 3 / 2.0, 1e-5), rel=2e-3)


def test_the_relation_is_honoured_under_sampling():
    """The trap of dp-accounting's RDP accountant: replacement must cost more than zero-out."""
    steps = {"noise_multiplier": 1.2, "rate": 0.02, "steps": 400}
    assert epsilon_of([SampledGaussian(**steps, replace=True)], 1e-5) > 1.3 * epsilon_of(
        [SampledGaussian(**steps, replace=False)], 1e-5
    )


def test_equal_sampled_steps_are_counted_together():
    parts = [SampledGaussian(1.0, 0.1, 30, False), SampledGaussian(1.0, 0.1, 70, False)]
    assert compose(parts) == (SampledGaussian(1.0, 0.1, 100, False),)


def test_pure_losses_add_and_laplace_beats_its_pure_bound_at_positive_delta():
    assert epsilon_of([Pure(0.5), Pure(0.7)], 1e-12) == pytest.approx(1.2, abs=1e-9)
    many = [LaplaceLoss(0.1)] * 50
    assert epsilon_of(many, 1e-5) < 5.0


def test_an_exact_read_has_no_finite_epsilon():
    assert epsilon_of([Gdp(0.1), Unbounded()], 1e-5) == math.inf
    assert epsilon_of([], 1e-5) == 0.0
