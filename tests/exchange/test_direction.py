"""The cap mechanism: exact density ratio, uniform symmetry, unbiasedness, and the error it saves."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc

from graphveil.exchange.randomizers import Direction, MultiBit, Piecewise
from graphveil.privacy.noise import Noise

from .exact import SIX_SIGMA


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("dimension", [2, 3, 64])
def test_the_density_integrates_to_one_and_has_ratio_epsilon(epsilon, dimension):
    randomizer = Direction(epsilon, dimension, None)
    x = np.eye(dimension)[0]
    inside, outside = (math.exp(randomizer.log_density(x, sign * x)) for sign in (1, -1))
    shape = (dimension - 1) / 2
    s = betainc(shape, shape, (1 - randomizer.threshold) / 2)  # the uniform measure of the cap
    assert s == pytest.approx(randomizer.cap, rel=1e-9)
    assert inside * s + outside * (1 - s) == pytest.approx(1.0, abs=1e-9)
    assert 0.99 * epsilon <= randomizer.log_ratio(x, -x, x) <= epsilon + 1e-9
    assert randomizer.epsilon == pytest.approx(randomizer.log_ratio(x, -x, x), abs=1e-12)
    empty = randomizer.log_ratio(x, 0 * x, x), randomizer.log_ratio(0 * x, x, -x)
    assert max(empty) <= epsilon and min(empty) >= 0


def test_on_the_circle_the_mean_is_the_integral_over_the_whole_alphabet():
    """In the plane the report is an angle: everything can be integrated."""
    randomizer = Direction(1.0, 2, None)
    density = lambda t: math.exp(randomizer.log_density(np.array([1.0, 0.0]), np.array([math.cos(t), math.sin(t)])))
    edge = math.acos(randomizer.threshold)
    total, mean = 0.0, 0.0
    for low, high in ((-math.pi, -edge), (-edge, edge), (edge, math.pi)):
        total += quad(density, low + 1e-12, high - 1e-12)[0] / (2 * math.pi)
        mean += quad(lambda t: density(t) * math.cos(t), low + 1e-12, high - 1e-12)[0] / (2 * math.pi)
    assert total == pytest.approx(1.0, abs=1e-9) and mean == pytest.approx(randomizer.mean, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_cap_is_the_one_with_the_largest_mean(epsilon):
    randomizer = Direction(epsilon, 64, None)
    others = [randomizer._mean(s) for s in np.geomspace(2e-4, 0.5, 200)]
    assert randomizer.mean >= max(others) - 1e-9


def test_reports_are_unit_vectors_that_hit_the_cap_with_the_stated_probability_and_have_the_stated_mean():
    randomizer, draws = Direction(2.0, 6, None), 40_000
    x = np.array([3.0, -1.0, 0.5, 0.0, 2.0, 1.0])
    reports = randomizer.randomize(np.tile(x, (draws, 1)), None, Noise(6))
    unit = randomizer.directions(x)[0]
    assert np.allclose(np.linalg.norm(reports, axis=1), 1)
    low = 1 / (randomizer.cap / randomizer.reject + 1 - randomizer.cap)
    hit = randomizer.cap * low / randomizer.reject
    assert abs(np.mean(reports @ unit >= randomizer.threshold) - hit) < SIX_SIGMA * math.sqrt(hit * (1 - hit) / draws)
    estimates = randomizer.estimate(reports)
    error = SIX_SIGMA * estimates.std(axis=0) / math.sqrt(draws)
    assert np.all(np.abs(estimates.mean(axis=0) - unit) < error)
    squared = np.square(estimates - unit).sum(axis=1)
    assert abs(squared.mean() - randomizer.variance(x)) < SIX_SIGMA * squared.std() / math.sqrt(draws)


def test_an_empty_row_is_answered_by_a_uniform_direction():
    reports = Direction(3.0, 4, None).randomize(np.zeros((20_000, 4)), None, Noise(7))
    assert np.all(np.abs(reports.mean(axis=0)) < SIX_SIGMA * math.sqrt(1 / 4 / 20_000))


def test_the_projection_is_public_and_the_same_for_everybody():
    one, other = Direction(1.0, 9, 4), Direction(2.0, 9, 4)
    assert np.array_equal(one.projection, other.projection)
    assert not np.array_equal(one.projection, Direction(1.0, 9, 4, projection_seed=1).projection)
    assert one.randomize(np.ones((3, 9)), None, Noise(0)).shape == (3, 4)


def test_direction_has_an_order_of_magnitude_less_error_than_coordinatewise_mechanisms():
    """[LGA 6], a Cora-like row with 18 ones of 1433: total mean squared errors at epsilon 1, 3 and 10."""
    x = np.zeros(1433)
    x[:18] = 1.0
    for epsilon, ours, bits, pieces in ((1, 1.6e5, 2.4e6, 7.6e6), (3, 1.9e4, 6.3e5, 4.6e5), (10, 2.4e3, 1.8e5, 3.1e4)):
        assert 18 * Direction(epsilon, 1433, None).variance(x) == pytest.approx(ours, rel=0.06)
        assert MultiBit(epsilon, 1433).variance(x).sum() == pytest.approx(bits, rel=0.06)
        best = min(Piecewise(epsilon, 1433, sampled=m).variance(x).sum() for m in range(1, 9))
        assert best == pytest.approx(pieces, rel=0.06)
