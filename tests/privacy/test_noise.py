"""Noise: its law, its grid, its independence, and the attack on its last digits."""

import copy
import math
import os
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, geom, kstest

from graphveil.errors import PrivacyError
from graphveil.privacy.noise import GRID_BITS, KEY_BITS, Noise, gaussian_overhead, grid, scaling_error, summation_error

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


def first_words(streams):
    return [int(stream._words(1)[0]) for stream in streams]


@pytest.mark.entropy
def test_a_forked_stream_does_not_repeat_itself():
    noise, (read, write) = Noise(), os.pipe()
    child = os.fork()
    if not child:
        os.write(write, noise.gaussian(1.0, 4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert not np.isin(noise.gaussian(1.0, 4), np.frombuffer(os.read(read, 32))).any()


@pytest.mark.entropy
def test_threads_of_a_fork_do_not_take_the_parents_stream():
    """The second thread must not see a new process beside an old stream; 60 forks of 6 threads (1 in 10 repeated, once)."""
    for _ in range(60):
        noise, (read, write) = Noise(), os.pipe()
        child = os.fork()
        if not child:
            start, words = threading.Barrier(6), []
            draw = lambda start=start, words=words, noise=noise: (start.wait(), words.append(int(noise._words(1)[0])))
            threads = [threading.Thread(target=draw) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os.write(write, np.array(words, dtype=np.uint64).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        assert not np.isin(noise._words(6), np.frombuffer(os.read(read, 48), dtype=np.uint64)).any()


@pytest.mark.entropy
def test_a_process_is_known_by_more_than_its_number(monkeypatch):
    """In a namespace of its own a child may have its parent's number."""
    noise, (read, write) = Noise(), os.pipe()
    number = os.getpid()
    child = os.fork()
    if not child:
        monkeypatch.setattr(os, "getpid", lambda: number)
        os.write(write, noise._words(4).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert not np.isin(noise._words(4), np.frombuffer(os.read(read, 32), dtype=np.uint64)).any()


@pytest.mark.entropy
def test_a_seeded_stream_refuses_to_go_on_in_a_fork():
    noise, (read, write) = Noise(1), os.pipe()
    child = os.fork()
    if not child:
        try:
            noise.gaussian(1.0, 4)
        except PrivacyError:
            os.write(write, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 7) == b"refused"


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_and_pickles_of_a_stream_are_refused(way, seed):
    with pytest.raises(PrivacyError, match="same noise again"):
        way(Noise(seed))


@pytest.mark.entropy
def test_the_key_has_128_bits():
    """8192 streams: a 16-bit key gives about 500 pairs that start alike, one of 24 bits two; and all of it is asked for."""
    assert KEY_BITS == 128
    assert len(set(first_words(Noise() for _ in range(8192)))) == 8192


@given(st.floats(1e-6, 1e6))
def test_the_grid_is_a_power_of_two_2_to_the_40_below_the_scale(scale):
    cell = grid(scale)
    assert math.frexp(cell)[0] == 0.5
    assert cell <= scale * 2.0**-GRID_BITS < 2 * cell
    assert 3 * cell / scale <= gaussian_overhead(9) < 3.01 * 2.0**-GRID_BITS + 3e-12


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e300])
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


def test_small_exponential_numbers_keep_their_digits():
    """P(E < 2^-60) is 2^-60, not 0: numbers far below the step of one 53-bit uniform number are reached, at the right rate."""
    values = Noise(1).exponential(1_000_000)
    assert kstest(values[:N], "expon").pvalue > 1e-6
    tiny = values[values < 2.0**-12]
    assert abs(len(tiny) - 1e6 * 2.0**-12) < 6 * math.sqrt(1e6 * 2.0**-12)
    assert np.mean(tiny / 2.0**-53 % 1 == 0) < 0.2, "one double's logarithm has steps of 2^-53 there"


def test_the_best_of_gumbel_scores_is_each_with_its_softmax_probability():
    """A column 9 below the best wins with e^-9 (13 scores above it do not change that ratio); six sigma."""
    draws, scores = 400_000, np.array([9.0, 8.0, 0.0])
    noisy = scores + Noise(2).gumbel(3 * draws).reshape(draws, 3)
    won = np.bincount(noisy.argmax(axis=1), minlength=3)
    ideal = np.exp(scores) / np.exp(scores).sum() * draws
    assert (np.abs(won - ideal) < 6 * np.sqrt(ideal)).all()
    assert Noise(3).gumbel(2_000_000).max() > 11


@pytest.mark.parametrize("rate", [0.9, 0.3, 1e-3])
def test_gaps_have_the_geometric_law_also_where_one_uniform_number_has_no_digits_left(rate):
    gaps = Noise(4)._gaps(rate, 10**9, N)
    edges = np.unique(geom.ppf(np.linspace(0, 1, 21)[1:-1], rate, loc=-1))
    counts = np.bincount(np.searchsorted(edges, gaps), minlength=len(edges) + 1)
    ideal = np.diff(np.concatenate([[0], geom.cdf(edges, rate, loc=-1), [1]])) * N
    assert chisquare(counts, ideal).pvalue > 1e-6


def test_positions_are_the_coins_that_show():
    """Every one of 12 positions with the rate, and pairs with its square: six sigma."""
    noise, rate, draws = Noise(5), 0.2, 20_000
    shown = np.zeros((draws, 12))
    for row in shown:
        row[noise.positions(rate, 12)] = 1
    error = 6 * math.sqrt(rate * (1 - rate) / draws)
    assert np.abs(shown.mean(axis=0) - rate).max() < error
    together = shown.T @ shown / draws
    assert np.abs(together[~np.eye(12, dtype=bool)] - rate**2).max() < error


def test_coins_never_show_more_often_than_their_rate():
    """A rate between two multiples of 2^-53 is rounded down: fewer records in a batch cost less."""
    rate, seen = 0.5 + 2.0**-54, []

    class Told(Noise):
        def uniform(self, size):
            seen.append(size)
            return np.full(size, 0.5)

    assert not Told(0).coins(rate, 3).any() and seen == [3]


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


@pytest.mark.parametrize("records", [10**5, 10**8])
def test_scaling_error_bounds_what_scaling_adds_to_a_change_of_an_exact_sum(records):
    """Sums of messages on the grid of messages, one of which leaves; above a million records 1e-9 would be too little."""
    rng = np.random.default_rng(2)
    sums = np.rint(rng.uniform(records / 2, records, 2000) * 2**24) / 2**24
    worst = 0.0
    for factor in rng.uniform(0.1, 10.0, 200):
        moved = factor * sums - factor * (sums - 1.0)
        worst = max(worst, float(moved.max()) / factor - 1)
    assert worst <= scaling_error(records)
    assert (worst > scaling_error(10**5) == 1e-9) == (records == 10**8)
