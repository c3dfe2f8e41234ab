"""Randomised response draws what it says, never more than its budget, whoever uses it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphveil.exchange.randomizers import BucketResponse, EdgeListResponse, LabelResponse, MultiBit
from graphveil.privacy.mechanisms import EdgeFlips, RandomizedResponse
from graphveil.privacy.noise import Noise
from graphveil.privacy.response import COIN, BitFlips, CategoryResponse, coin_above, coin_below

DRAWS = 200_000


@given(st.floats(1e-3, 30), st.integers(2, 1000))
def test_the_ratio_of_what_is_drawn_is_within_the_budget_and_near_it(budget, categories):
    response, flips = CategoryResponse(budget, categories), BitFlips(budget)
    assert response.epsilon <= budget and flips.epsilon <= budget
    assert response.epsilon > budget - 1e-2 and flips.epsilon > budget - 1e-2
    assert np.allclose(response.channel.sum(axis=1), 1.0)
    for probability in (response.keep, flips.flip):
        assert probability / COIN == round(probability / COIN)  # a coin that can be tossed


@pytest.mark.parametrize("budget", [31.0, 50.0, 800.0])
def test_budgets_beyond_the_grid_of_coins_cost_less_than_they_may(budget):
    assert CategoryResponse(budget, 4).epsilon < budget and BitFlips(budget).epsilon < budget


@given(st.floats(1e-9, 1 - 1e-9))
def test_coins_are_rounded_to_the_safe_side(probability):
    assert probability - 3 * COIN < coin_below(probability) < probability
    assert probability < coin_above(probability) < probability + 3 * COIN


def test_draws_have_the_stated_probabilities():
    """Six standard errors."""
    response, noise = CategoryResponse(1.0, 4), Noise(1)
    shares = np.bincount(response.draw(np.full(DRAWS, 2), noise), minlength=4) / DRAWS
    assert np.abs(shares - response.channel[2]).max() < 6 * math.sqrt(0.25 / DRAWS)
    flips = BitFlips(1.0)
    ones = flips.draw(np.arange(0, DRAWS, 2), DRAWS, noise)
    flipped = len(np.setxor1d(ones, np.arange(0, DRAWS, 2)))
    assert abs(flipped / DRAWS - flips.flip) < 6 * math.sqrt(0.25 / DRAWS)


def test_densities_add_up_to_one():
    response, flips = CategoryResponse(0.7, 5), BitFlips(0.7)
    assert sum(math.exp(response.log_density(1, r)) for r in range(5)) == pytest.approx(1.0)
    assert sum(math.comb(6, k) * math.exp(flips.log_density(k, 6)) for k in range(7)) == pytest.approx(1.0)


def test_central_and_local_mechanisms_share_the_laws():
    assert (
        RandomizedResponse(1.5, 7).response
        == LabelResponse(1.5, 7).response
        == BucketResponse(1.5, 7).response.response
    )
    assert EdgeFlips(1.5, 10).flips == EdgeListResponse(1.5, 10).flips
    assert MultiBit(4.5, 10).q == BitFlips(4.5 / 2).flip
