"""Lemma G against dp_accounting, numerical integration and explicit chains of rows."""

import math
import time

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import binom, norm

from graphveil.errors import PrivacyError
from graphveil.privacy.accounting.group_loss import group_delta, group_distribution
from graphveil.privacy.accounting.loss import (
    Gdp,
    Pure,
    SampledGaussian,
    Zcdp,
    amplified_epsilon,
    compose,
    concentrated_epsilon,
    epsilon_of,
)
from graphveil.privacy.mechanisms import DpGradient, mechanism_from_json, mechanism_to_json

GRID, DELTA = 1e-3, 1e-5


def epsilon(sigma, rate, group, steps=40):
    return group_distribution(sigma, rate, group, GRID).self_compose(steps).get_epsilon_for_delta(DELTA)


@pytest.mark.parametrize(("sigma", "rate", "rows"), [(2.0, 0.1, 1), (4.0, 0.05, 3), (6.0, 0.2, 6)])
def test_rows_that_vanish_cost_what_a_mixture_of_gaussians_costs(sigma, rate, rows):
    weights = [float(binom.pmf(i, rows, rate)) for i in range(rows + 1)]
    known = pld.from_mixture_gaussian_mechanism(
        sigma, [float(i) for i in range(rows + 1)], weights, value_discretization_interval=GRID
    )
    assert epsilon(sigma, rate, (rows, 0)) == pytest.approx(
        known.self_compose(40).get_epsilon_for_delta(DELTA), abs=1e-4
    )


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.02), (2.0, 0.1), (3.0, 0.5)])
def test_one_row_that_changes_costs_what_replace_one_costs(sigma, rate):
    known = pld.from_gaussian_mechanism(
        sigma,
        sampling_prob=rate,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
        value_discretization_interval=GRID,
    )
    assert epsilon(sigma, rate, (1, 1)) == pytest.approx(known.self_compose(40).get_epsilon_for_delta(DELTA), abs=1e-4)


@pytest.mark.parametrize("sides", [(3, 2), (2, 3), (0, 4), (5, 5), (11, 10)])
def test_the_closed_form_equals_the_integral(sides):
    a, b, sigma, rate = *sides, 2.5, 0.3
    x = np.linspace(-b - 12 * sigma, a + 12 * sigma, 400_001)
    up = sum(binom.pmf(i, a, rate) * norm.pdf(x, i, sigma) for i in range(a + 1))
    down = sum(binom.pmf(j, b, rate) * norm.pdf(x, -j, sigma) for j in range(b + 1))
    epsilons = np.array([-6.0, -1.0, 0.0, 0.4, 1.0, 3.0])
    integrals = [np.maximum(up - math.exp(e) * down, 0).sum() * (x[1] - x[0]) for e in epsilons]
    assert group_delta(epsilons, sigma, rate, a, b) == pytest.approx(integrals, rel=1e-5, abs=1e-9)


def test_epsilon_grows_with_the_group_and_with_the_rate():
    by_group = [epsilon(8.0, 0.1, (s + 1, s)) for s in range(0, 9, 2)]
    by_rate = [epsilon(8.0, rate, (4, 3)) for rate in (0.02, 0.1, 0.3, 0.8, 1.0)]
    assert all(np.diff(by_group) > 0) and all(np.diff(by_rate) > 0)


def test_a_full_batch_is_one_gaussian_of_the_whole_group():
    assert epsilon(20.0, 1.0, (3, 2), steps=9) == pytest.approx(epsilon_of([Gdp(3 * 5 / 20)], DELTA), abs=2e-3)


def test_no_arrangement_of_rows_exceeds_the_pair():
    """Rows in random directions of the plane, by numerical integration: never above the collinear pair."""
    rng = np.random.default_rng(0)
    sigma, rate, a, b = 1.5, 0.4, 2, 2
    grid = np.linspace(-10, 10, 301)
    points = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2)
    area = (grid[1] - grid[0]) ** 2

    def density(rows):
        total = np.zeros(len(points))
        for chosen in np.ndindex(*[2] * len(rows)):
            weight = np.prod([rate if c else 1 - rate for c in chosen])
            mean = np.array(chosen) @ rows
            total += weight * np.exp(-((points - mean) ** 2).sum(1) / (2 * sigma**2)) / (2 * np.pi * sigma**2)
        return total

    orders = np.array([0.0, 0.5, 1.5])
    bound = group_delta(orders, sigma, rate, a, b)
    for _ in range(25):
        angles = rng.uniform(0, 2 * np.pi, a + b) * rng.choice([0.1, 1.0])
        rows = np.stack([np.cos(angles), np.sin(angles)], 1)
        p, q = density(rows[:a]), density(-rows[a:])
        found = [np.maximum(p - math.exp(e) * q, 0).sum() * area for e in orders]
        assert np.all(found <= bound + 1e-6)


def test_a_group_of_ten_builds_in_a_tenth_of_a_second():
    group_distribution(8.0, 0.1, (2, 2), GRID)
    started = time.perf_counter()
    for size in (5, 10):
        group_distribution(8.0, 0.1, (size, size), GRID)
    assert time.perf_counter() - started < 0.2


def test_hopeless_noise_is_refused_instead_of_filling_the_memory():
    with pytest.raises(PrivacyError, match="far more noise"):
        group_distribution(0.05, 0.5, (10, 10), GRID)


def test_gradient_steps_carry_their_group_through_loss_and_json():
    mechanism = DpGradient(6.0, 2.0, 10, 4, rate=0.1, group=(3, 2))
    assert mechanism.loss(2.0) == SampledGaussian(pytest.approx(3.0), 0.1, 10, group=(3, 2))
    assert mechanism_from_json({**mechanism_to_json(mechanism), "group": [3, 2]}) == mechanism
    assert DpGradient(10.0, 2.0, 4, 4, group=(3, 2)).loss(2.0) == Gdp(pytest.approx(2 * 5 * 2.0 / 10))
    assert DpGradient(1.0, 1.0, 1, 1).rows == (1, 0) and DpGradient(1.0, 1.0, 1, 1, replaces=True).rows == (1, 1)


def test_equal_grouped_steps_are_counted_together_and_compose_with_gaussians():
    parts = [SampledGaussian(5.0, 0.1, 10, group=(2, 1)), Gdp(0.3), SampledGaussian(5.0, 0.1, 20, group=(2, 1))]
    assert compose(parts) == (Gdp(pytest.approx(0.3)), SampledGaussian(5.0, 0.1, 30, group=(2, 1)))
    assert epsilon_of(parts, DELTA) > epsilon_of(parts[:1] + parts[2:], DELTA)
    single = epsilon_of([SampledGaussian(3.0, 0.1, 30, group=(1, 0))], DELTA)
    assert single == pytest.approx(epsilon_of([SampledGaussian(3.0, 0.1, 30, False)], DELTA), abs=1e-4)


def test_concentrated_privacy_is_converted_safely_and_adds_up():
    rho = 0.5 * 0.7**2
    assert concentrated_epsilon(rho, DELTA) >= epsilon_of([Gdp(0.7)], DELTA)  # a Gaussian is one of those mechanisms
    assert concentrated_epsilon(rho, DELTA) < rho + 2 * math.sqrt(rho * math.log(1 / DELTA))
    assert epsilon_of([Gdp(0.5), Zcdp(0.1)], DELTA) == pytest.approx(concentrated_epsilon(0.225, DELTA))


@pytest.mark.parametrize(("claimed", "true"), [(1.0, 8.70), (8.0, 86.5)])
def test_linear_amplification_understates_epsilon(claimed, true):
    """DPAR multiplies epsilon by q' = 0.09; randomised response attains log(1 + q'(e^eps - 1))."""
    inner = claimed / 0.09
    assert amplified_epsilon([Pure(inner)], 1e-5, 0.09) == pytest.approx(true, abs=0.05)
    assert amplified_epsilon([Pure(inner)], 1e-5, 1.0) == inner
