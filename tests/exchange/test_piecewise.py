"""The piecewise mechanism: exact on its grid, right in the limit; and LGA-PGNN's readings of it, with their violations."""

import math
from itertools import product

import numpy as np
import pytest

from graphveil.exchange.randomizers import PerDimension, Piecewise, Rest
from graphveil.exchange.randomizers.piecewise import PiecewiseLaw, expected_variance, least_noisy_range
from graphveil.privacy.noise import Noise

from .exact import assert_attains, assert_unbiased, total_mass, worst_log_ratio


def grid_points(law):
    return (np.arange(2 * law.half) - law.half + 0.5) / law.scale


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("sampled", [1, 2])
def test_piecewise_attains_epsilon_on_its_whole_alphabet_and_never_exceeds_it(epsilon, sampled):
    randomizer = Piecewise(epsilon, 2, sampled=sampled, half=8)
    values = [0.0, *grid_points(randomizer.law)]
    reports = [np.array(r) for r in product(values, repeat=2) if np.count_nonzero(r) == sampled]
    records = [np.array(r) for r in product((-1.0, -0.37, 0.0, 1.0), repeat=2)]
    for record in records:
        assert total_mass(randomizer, record, reports) == pytest.approx(1.0, abs=1e-12)
    assert_attains(randomizer, worst_log_ratio(randomizer, records, reports))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 30.0])
def test_the_grid_that_is_used_has_exactly_two_probabilities_with_ratio_epsilon(epsilon):
    law = PiecewiseLaw(epsilon)
    assert 0.99 * epsilon <= law.exact_epsilon <= epsilon
    assert law.reach >= 1


def test_piecewise_is_unbiased_with_the_exact_variance_for_every_point_of_a_coarse_grid():
    law = PiecewiseLaw(1.3, half=6)
    for x in np.linspace(-1, 1, 9):
        points = grid_points(law)
        mass = np.exp(law.log_mass(np.full_like(points, x), points))
        assert mass @ points == pytest.approx(x, abs=1e-12)
        assert mass @ points**2 == pytest.approx(float(law.second_moment(x)), abs=1e-12)


def test_the_fine_grid_is_the_piecewise_mechanism():
    """Variance x^2/(s-1) + (s+3)/(3(s-1)^2), s = e^(epsilon/2): the closed form of the continuous mechanism."""
    for epsilon, x in product((0.5, 1.0, 5.0), (0.0, 0.4, 1.0)):
        s = math.exp(epsilon / 2)
        assert PiecewiseLaw(epsilon).second_moment(x) - x**2 == pytest.approx(
            x**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2), rel=1e-4
        )


def test_piecewise_draws_are_unbiased_with_the_stated_variance():
    record = np.array([-1.0, 0.2, 0.7, 3.0])  # the last one is clipped to the range
    randomizer = Piecewise(4.0, 4, lower=-1.0, upper=2.0, sampled=2)
    reports = randomizer.randomize(np.tile(record, (60_000, 1)), None, Noise(8))
    assert_unbiased(randomizer.estimate(reports), np.minimum(record, 2.0), randomizer.variance(record))


def test_draws_follow_the_probabilities_of_the_law():
    law, draws = PiecewiseLaw(1.0, half=4), 80_000
    drawn = law.draw(np.full(draws, 0.3), Noise(2))
    points = grid_points(law)
    mass = np.exp(law.log_mass(np.full_like(points, 0.3), points))
    counts = np.array([np.count_nonzero(np.isclose(drawn, p)) for p in points])
    assert counts.sum() == draws
    assert np.all(np.abs(counts / draws - mass) < 6 * np.sqrt(mass / draws))  # false alarms: 2e-8 over eight points


def test_the_number_of_attributes_is_the_exact_argmin_or_the_paper_rule():
    """[LGA 5]: the paper's floor costs 21 % at epsilon 4.5; for sparse rows m = 1 is best, 5.5 and 38 times at 7 and 10."""
    assert [Piecewise(epsilon, 10, sampled="paper").m for epsilon in (1.0, 2.42, 4.5, 7.0, 10.0)] == [1, 1, 1, 2, 4]
    for epsilon in (1.0, 4.5, 7.0, 10.0):
        for moment in (0.0, 1 / 3, 1.0):
            best = min(range(1, 11), key=lambda m: expected_variance(epsilon, 10, m, moment))
            assert Piecewise(epsilon, 10, second_moment=moment).m == best
    assert expected_variance(4.5, 1433, 1, 1.0) / expected_variance(4.5, 1433, 2, 1.0) == pytest.approx(1.21, abs=0.005)
    assert Piecewise(10.0, 1433, second_moment=0.0).m == 1
    for epsilon, factor in ((7.0, 5.5), (10.0, 38.0)):
        paper = Piecewise(epsilon, 1433, sampled="paper").m
        loss = expected_variance(epsilon, 1433, paper, 0.0) / expected_variance(epsilon, 1433, 1, 0.0)
        assert loss == pytest.approx(factor, rel=0.02)


def test_lga_1_the_printed_density_has_mass_below_one_and_ratio_one_and_a_half_epsilon():
    epsilon = 1.0
    s, e = math.exp(epsilon / 2), math.exp(epsilon)
    end, centre = (s + 1) / (s - 1), 2 / (s - 1)
    inner = (e - s) / (2 * s + 2)
    outer = (e - s) / (2 * s**3 + 2 * e**2)
    assert inner * centre + outer * (2 * end - centre) == pytest.approx(0.851, abs=5e-4)
    assert math.log(inner / outer) == pytest.approx(1.5 * epsilon, abs=1e-9)


def test_lga_2_the_whole_budget_on_every_attribute_costs_m_times_epsilon():
    randomizer = Piecewise(1.0, 500, sampled=500, per_dimension=PerDimension.WHOLE)
    assert randomizer.epsilon == pytest.approx(500.0, rel=1e-6)
    x = np.ones(500)
    report = np.full(500, 1 / randomizer.law.scale * (randomizer.law.reach + 0.5))
    assert randomizer.log_ratio(x, -x, report) == pytest.approx(500.0, rel=1e-6)


def test_lga_3_raw_attributes_have_no_epsilon_and_a_large_delta():
    for width, m, delta in ((84, 1, 0.988), (1433, 500, 0.65), (500, 100, 0.80)):
        randomizer = Piecewise(1.0, width, sampled=m, rest=Rest.RAW)
        assert randomizer.epsilon == math.inf
        assert randomizer.least_delta == pytest.approx(delta, abs=0.002)
    randomizer = Piecewise(1.0, 84, sampled=1, rest=Rest.RAW)
    a, b = np.zeros(84), np.zeros(84)
    b[3:5] = 1.0
    report = randomizer.randomize(a, None, Noise(4))
    assert randomizer.log_ratio(a, b, report) == math.inf  # at least one changed attribute is visible
    assert Piecewise(1.0, 1433).variance(np.zeros(1433))[0] == pytest.approx(5276, rel=1e-3)


def test_lga_7_three_attributes_at_a_third_of_the_budget_cost_exactly_the_budget():
    randomizer = Piecewise(1.0, 3, sampled=3)
    one = PiecewiseLaw(1 / 3).exact_epsilon
    assert 3 * one == pytest.approx(1.0, abs=1e-9) and randomizer.epsilon == pytest.approx(1.0, abs=1e-9)


def test_lga_3_the_reason_for_having_no_epsilon_is_given_in_words():
    assert "83 of 84 attributes" in Piecewise(1.0, 84, sampled=1, rest=Rest.RAW).unbounded
    assert "at least 0.9881" in Piecewise(1.0, 84, sampled=1, rest=Rest.RAW).unbounded
    assert Piecewise(1.0, 84, sampled=84, rest=Rest.RAW).unbounded == "" == Piecewise(1.0, 84).unbounded


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), (-2.0, 0.0), (-1.0, 3.0), (1.0, 2.0)])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0, 12.0])
def test_the_range_is_made_symmetric_only_if_that_leaves_less_variance(epsilon, lower, upper):
    """Against the exact variance of the randomizer for a row with a share of its attributes at the far end, the rest at 0."""
    width, filled = 200, 0.05
    low, high, moment = least_noisy_range(epsilon, width, lower, upper, filled)
    reach = max(abs(lower), abs(upper))
    assert (low, high) in ((lower, upper), (-reach, reach))
    row = np.full(width, min(max(0.0, lower), upper))
    row[:10] = upper if abs(upper) >= abs(lower) else lower
    noise = {}
    for bounds in ((lower, upper), (-reach, reach)):
        options = [Piecewise(epsilon, width, *bounds, sampled=m).variance(row).mean() for m in range(1, 12)]
        noise[bounds] = min(options)
    assert noise[low, high] == pytest.approx(min(noise.values()), rel=1e-3)
    chosen = Piecewise(epsilon, width, low, high, second_moment=moment)
    assert chosen.variance(row).mean() == pytest.approx(noise[low, high], rel=1e-3)
