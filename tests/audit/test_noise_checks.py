"""Last digits betray naive noise and do not betray ours; dependence between draws is seen."""

import numpy as np
import pytest

from graphveil.audit.central.noise_checks import (
    correlations,
    grid_gaussian,
    last_bit,
    last_digits_bound,
    naive_gaussian,
)
from graphveil.audit.central.replay import Event
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.mechanisms import Gaussian
from graphveil.privacy.noise import Noise

DELTA = 1e-6


def test_the_last_bit_is_the_largest_power_of_two_that_divides_a_number():
    assert last_bit(np.array([1.0, 0.75, 6.0, -0.375, 2.0**-40])).tolist() == [0, -2, 1, -3, -40]


@pytest.mark.parametrize("sigma", [3.0, 10.0])
def test_the_last_digits_of_naive_noise_refute_its_epsilon_and_those_of_ours_do_not(sigma):
    claimed = gaussian_epsilon(1 / sigma, DELTA)
    naive = last_digits_bound(naive_gaussian(sigma, 1), DELTA)
    ours = last_digits_bound(grid_gaussian(sigma, 1), DELTA)
    assert naive.epsilon > 2 * claimed and naive.false_hits == 0
    assert ours.epsilon <= claimed


def test_outputs_of_neighbouring_values_lie_on_one_grid():
    draws = [grid_gaussian(0.3, 2)(value, 2000) for value in (0.1, 0.7000001)]
    assert min(int(last_bit(values).min()) for values in draws) >= -42


def events(first, second):
    clean = np.zeros(400)
    return [Event("release", name, Gaussian(1.0, 400), clean, values) for name, values in (("a", first), ("b", second))]


def test_independent_noise_passes_and_dependent_noise_is_found():
    noise = Noise(7)
    one, other = noise.gaussian(1.0, 400), noise.gaussian(1.0, 400)
    assert list(correlations(events(one, other))) == []
    assert "noise of a" in str(next(iter(correlations(events(one, 0.8 * one + 0.6 * other)))))
    smooth = np.convolve(noise.gaussian(1.0, 401), [0.8, 0.6], "valid")
    assert "numbers before" in str(next(iter(correlations(events(one, smooth)))))
