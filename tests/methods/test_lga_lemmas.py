"""Lemmas 4 and 5 of LGA-PGNN: what its private layer loses by the piecewise reports of neighbours, on true neighbours."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from graphveil.exchange.randomizers import Piecewise
from graphveil.methods.lga_pgnn.augmentation import private_layer
from graphveil.privacy.noise import Noise

EPSILON, WIDTH, SAMPLED = 4.0, 5, 2
SIX_SIGMA = 6.0  # false alarms below 2e-9 a number


RANDOMIZER = Piecewise(
    EPSILON, WIDTH, sampled=SAMPLED
)  # the reading of the proofs: epsilon/m for m of d, d/m, and zeros


def sent(rows, seed):
    """x* of everybody."""
    return RANDOMIZER.estimate(RANDOMIZER.randomize(rows, None, Noise(seed)))


def star(neighbours):
    """Vertex 0 and its neighbours, both ways."""
    others = np.arange(1, neighbours + 1)
    return np.concatenate([[others, 0 * others], [0 * others, others]], axis=1)


def means(rows, neighbours, draws, seed):
    """The mean around vertex 0 in each of so many worlds: one graph of disjoint stars."""
    reports = sent(np.tile(rows, (draws, 1)), seed)
    shifts = np.arange(draws) * (neighbours + 1)
    edges = (star(neighbours)[:, None, :] + shifts[None, :, None]).reshape(2, -1)
    return private_layer(edges, reports.astype(np.float32))[shifts]


def some_rows(neighbours):
    return np.random.default_rng(1).uniform(-1, 1, (neighbours + 1, WIDTH))


def test_lemma_4_the_layer_is_unbiased_before_its_activation_and_not_behind_it():
    rows, weights = some_rows(3), np.random.default_rng(2).normal(size=(WIDTH, 4))
    truth = rows.mean(axis=0) @ weights
    heard = means(rows, 3, 40_000, 3) @ weights
    error = heard.std(axis=0) / math.sqrt(len(heard))
    assert (np.abs(heard.mean(axis=0) - truth) <= SIX_SIGMA * error).all()
    behind = np.maximum(heard, 0).mean(axis=0) - np.maximum(truth, 0)
    assert (behind > 10 * error).all()  # relu is convex, so noise only adds


def bernstein(neighbours, delta, largest):
    """The error that (C.16), united over d attributes, leaves with probability delta; the own row is one of the n + 1."""
    count, variance = neighbours + 1, float(np.max(RANDOMIZER.variance(np.ones(WIDTH))))
    tail = lambda t: 2 * WIDTH * math.exp(-count * t * t / (2 * variance + 2 / 3 * t * largest)) - delta
    return brentq(tail, 1e-9, 1e3)


def largest_report():
    """(C.14)'s right side: d/m times the reach of the mechanism at epsilon/m."""
    s = math.exp(EPSILON / SAMPLED / 2)
    return WIDTH / SAMPLED * (s + 1) / (s - 1)


@pytest.mark.parametrize("neighbours", [4, 24])
def test_lemma_5_the_error_of_the_mean_stays_below_the_bernstein_bound(neighbours):
    rows, delta, draws = some_rows(neighbours), 0.1, 4000
    errors = np.abs(means(rows, neighbours, draws, 5) - rows.mean(axis=0)).max(axis=1)
    bound = bernstein(neighbours, delta, largest_report() + 1)
    assert np.mean(errors > bound) <= delta
    assert np.mean(errors > bound / 4) > 2 * delta  # a bound of the right size, not an empty one


def test_lemma_5_four_times_the_neighbours_halve_the_error():
    spread = [np.sqrt(np.mean((means(np.zeros((n + 1, WIDTH)), n, 6000, n)) ** 2)) for n in (7, 31)]
    assert spread[0] / spread[1] == pytest.approx(2.0, rel=0.05)  # 30,000 squares each: six deviations are below 0.05


def test_c14_forgets_the_attribute_itself():
    """|x* - x| reaches the largest report plus |x|; the printed bound has the report alone."""
    furthest = np.abs(sent(np.ones((20_000, WIDTH)), 7) - 1).max()
    assert largest_report() + 0.5 < furthest <= largest_report() + 1 + 1e-6
