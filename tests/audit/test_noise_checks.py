"""Last digits betray naive noise and do not betray ours; dependence between draws is seen.

*Last digits* (Mironov 2012): the doubles that ``value + noise`` can reach depend on ``value``. The attack looks only at the
place of the last set bit of each output. It must succeed on noise added in plain floating point, and fail on the public grid of
``privacy/noise.py``, where the last bit is decided by the noise alone.
"""

import numpy as np
import pytest

from graphveil.audit.central.noise_checks import correlations
from graphveil.audit.central.replay import Event
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.mechanisms import Gaussian
from graphveil.privacy.noise import Noise
from graphveil.statistics.lower_bounds import epsilon_lower_bound

DELTA = 1e-6


def last_bit(values):
    """The exponent e of the lowest set bit: values are odd multiples of 2^e."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = whole & -whole
    return np.where(whole > 0, np.log2(np.maximum(lowest, 1)).astype(np.int64) + exponent - 53, 0)


def last_digits_bound(release, delta, value=1.0, samples=400_000):
    """What the last set bits alone reveal about whether the clean value was 0 or ``value``."""
    scores = [-last_bit(release(clean, samples)).astype(np.float64) for clean in (0.0, value)]
    return epsilon_lower_bound(scores[0], scores[1], delta)


def naive_gaussian(sigma, seed):
    """Gaussian noise added the ordinary way: what this library does not do."""
    rng = np.random.default_rng(seed)
    return lambda clean, samples: clean + sigma * rng.standard_normal(samples)


def grid_gaussian(sigma, seed):
    """Gaussian noise as this library adds it."""
    noise = Noise(seed)
    return lambda clean, samples: noise.add_gaussian(np.full(samples, clean), sigma)


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
