"""Noise: its law, its grid, its independence, and the attack on its last digits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from graphveil.errors import PrivacyError
from graphveil.privacy.noise import GRID_BITS, Noise, grid, rounding, summation_error

N = 200_000  # a Kolmogorov-Smirnov p-value below 1e-6 has false-alarm rate 1e-6; seeds are fixed


def test_gaussian_noise_has_the_gaussian_law():
    sample = Noise(seed=1).gaussian(3.7, N)
    assert kstest(sample / 3.7, "norm").pvalue > 1e-6


def test_laplace_noise_has_the_laplace_law():
    sample = Noise(seed=2).laplace(0.3, N)
    assert kstest(sample / 0.3, "laplace").pvalue > 1e-6


def test_equal_seeds_repeat_and_everything_else_differs():
    assert np.array_equal(Noise(5).gaussian(1.0, 50), Noise(5).gaussian(1.0, 50))
    assert not np.array_equal(Noise(5).gaussian(1.0, 50), Noise(6).gaussian(1.0, 50))
    assert not np.array_equal(Noise().gaussian(1.0, 50), Noise().gaussian(1.0, 50))
    stream = Noise(5)
    first, second = stream.gaussian(1.0, N), stream.gaussian(1.0, N)
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / math.sqrt(N)


@given(st.floats(1e-6, 1e6))
def test_the_grid_is_a_power_of_two_2_to_the_40_below_the_scale(scale):
    cell = grid(scale)
    assert math.frexp(cell)[0] == 0.5
    assert cell <= scale * 2.0**-GRID_BITS < 2 * cell
    assert rounding(scale, 9) == 3 * cell


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_an_unusable_scale_raises_instead_of_releasing(scale):
    with pytest.raises(PrivacyError):
        Noise(0).gaussian(scale, 3)
    with pytest.raises(PrivacyError):
        Noise(0).add(np.zeros(3), np.zeros(3), scale)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e3))
def test_outputs_lie_on_the_public_grid_whatever_the_value(value, sigma):
    noise = Noise(3)
    out = noise.add([value], noise.gaussian(sigma, 1), sigma)
    assert float(out[0] / grid(sigma)).is_integer()


def test_the_last_digits_betray_naive_noise_but_not_ours():
    """Mironov's attack: which doubles can be reached from 0 and which from 1/3? Naive sums of few-bit noise differ in support."""
    rng, sigma = np.random.default_rng(0), 1.0
    values = (0.0, 1 / 3)
    naive = [value + np.round(rng.standard_normal(N) * 2**20) / 2**20 for value in values]
    off_grid = [np.mean(sample * 2**20 != np.round(sample * 2**20)) for sample in naive]
    assert off_grid[0] == 0 and off_grid[1] > 0.99  # one look at the last digits tells the two inputs apart
    noise = Noise(4)
    ours = [noise.add(np.full(N, value), noise.gaussian(sigma, N), sigma) / grid(sigma) for value in values]
    assert all(np.array_equal(sample, np.round(sample)) for sample in ours)
    low_bits = [np.bincount((np.abs(sample).astype(np.int64) & 7), minlength=8) / N for sample in ours]
    assert np.abs(low_bits[0] - low_bits[1]).max() < 6 * math.sqrt(2 * 0.125 / N)


def test_poisson_coins_have_the_right_marginal_and_pairwise_law():
    noise, rate, size, draws = Noise(7), 0.2, 12, 20_000
    coins = np.array([noise.coins(rate, size) for _ in range(draws)], dtype=float)
    error = 6 * math.sqrt(rate * (1 - rate) / draws)
    assert np.abs(coins.mean(axis=0) - rate).max() < error
    together = coins.T @ coins / draws
    off_diagonal = together[~np.eye(size, dtype=bool)]
    assert np.abs(off_diagonal - rate**2).max() < error
    assert {0, 1, 2} <= set(coins.sum(axis=1).astype(int))  # batch sizes vary, empty batches happen


def test_summation_error_bounds_what_the_order_of_addition_can_do():
    rng = np.random.default_rng(1)
    terms = rng.standard_normal((5000, 4)) * 10.0 ** rng.integers(-8, 8, (5000, 1))
    terms /= np.maximum(np.linalg.norm(terms, axis=1, keepdims=True), 1.0)
    exact = np.array([math.fsum(column) for column in terms.T])
    worst = 0.0
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(terms))
        total = np.zeros(4)
        for row in terms[order]:
            total += row
        worst = max(worst, float(np.linalg.norm(total - exact)))
    assert worst <= summation_error(5000, 1.0)
