"""Draws of the stated law pass; a wrong scale, a wrong law and every kind of dependence are found.

Seeds are fixed; a faultless table fails with probability at most 1e-9 per check.
"""

import numpy as np
import pytest
from scipy.stats import binomtest, laplace, norm

from graphveil.statistics.drawn import (
    NormalTable,
    binomial_p_values,
    chi_squared_p_values,
    coin_p_values,
    lag_p_values,
    normal_scores,
    plausible,
)

RNG = np.random.default_rng(5)


def wrong(numbers, blocks=4):
    table = NormalTable(numbers.shape[1])
    for block in np.array_split(numbers, blocks):
        table.add(block)
    return {what for what, values in table.p_values().items() if not plausible(values)}


def leaning(numbers):
    leaning = numbers.copy()
    leaning[1:] = 0.8 * numbers[1:] + 0.6 * numbers[:-1]
    return leaning


NORMAL = RNG.standard_normal((10_000, 5))
SCALE, LAW = "its scale is not the declared one", "it does not have the declared law"


@pytest.mark.parametrize(
    ("numbers", "meaning"),
    [
        (NORMAL * [1, 1, 0.9, 1, 1], SCALE),
        (NORMAL[:, :1] / 10, SCALE),
        (np.sign(NORMAL), LAW),
        (NORMAL + 0.1, LAW),
        (0.8 * NORMAL + 0.6 * NORMAL[:, :1][::-1], "its numbers lean on each other"),
        (leaning(NORMAL), "a draw leans on the one before"),
    ],
)
def test_numbers_that_are_not_independent_normals_are_found(numbers, meaning):
    assert wrong(NORMAL) == set() and wrong(NORMAL[:, :1]) == set()
    assert meaning in wrong(numbers)


def test_other_laws_become_normals_by_their_place_far_out_too():
    drawn = RNG.laplace(size=(10_000, 3))
    assert wrong(normal_scores(drawn, laplace.cdf)) == set() and LAW in wrong(drawn / np.sqrt(2))
    far = norm.isf(np.exp(-40.0) / 2)
    assert normal_scores(np.array([-40.0, 40.0]), laplace.cdf) == pytest.approx([-far, far])


COINS = RNG.random((4000, 12)) < 0.3


def uneven():
    return RNG.random((4000, 12)) < np.r_[0.4, np.full(11, 0.3)]


def in_pairs():
    return np.repeat(RNG.random((4000, 6)) < 0.3, 2, axis=1)


def of_fixed_size():
    return RNG.random((4000, 12)).argsort(axis=1) < 4


def kept():
    return np.repeat(RNG.random((2000, 12)) < 0.3, 2, axis=0)


@pytest.mark.parametrize(
    ("table", "meaning"),
    [
        (uneven, "some take part more or less often than the others"),
        (in_pairs, "coins lean on each other"),
        (of_fixed_size, "their number varies too little or too much"),
        (kept, "a toss leans on the one before"),
    ],
)
def test_coins_that_are_not_independent_and_equal_are_found(table, meaning):
    assert all(plausible(values) for values in coin_p_values(COINS, 0.3).values())
    rate = 1 / 3 if table is of_fixed_size else 0.3
    assert not plausible(coin_p_values(table(), rate)[meaning])


def test_p_values_are_exact():
    assert binomial_p_values(5, 1000, 0.5)[0] == pytest.approx(binomtest(5, 1000, 0.5).pvalue)
    assert binomial_p_values([0, 1], 10, [0.0, 0.0]).tolist() == [1.0, 0.0]
    assert chi_squared_p_values([3.841459], [1])[0] == pytest.approx(0.1, abs=1e-6)


def test_comparisons_share_one_error_and_what_is_no_number_is_never_plausible():
    assert plausible([2e-9]) and not plausible([2e-9] * 3, 1e-8) and not plausible([0.5, np.nan]) and plausible([])


ROW = np.random.default_rng(6).standard_normal(50_000)


def test_products_at_a_distance_have_no_larger_tails_than_stated():
    """2000 rows of 60 numbers: at most the stated share of all bounds is below any level (three standard errors)."""
    rows = np.random.default_rng(7).standard_normal((2000, 60))
    found = np.array([lag_p_values(row) for row in rows])
    for level in (0.3, 0.1, 0.01):
        shares = (found < level).mean(axis=0)
        assert (shares <= level + 3 * np.sqrt(level / len(rows))).all()
    assert (found[:, :10] < 0.3).mean() > 0.01  # and they are not idle
    assert np.allclose(
        found[0, 6], min(1, 2 * np.exp(-((s := abs(rows[0, 7:] @ rows[0, :-7])) ** 2) / (2 * 53 + 4 * s)))
    )


@pytest.mark.parametrize("length", [7, 1000, 16_384, 30_000])
@pytest.mark.parametrize("factor", [1.0, -1.0, 0.3])
def test_stretches_that_come_again_are_found_at_any_distance(length, factor):
    assert plausible(lag_p_values(ROW))
    again = factor * np.resize(ROW[:length], len(ROW)) + np.sqrt(1 - factor**2) * ROW
    assert not plausible(lag_p_values(np.concatenate([ROW[:length], again[length:]])))


def test_two_blocks_of_three_that_share_their_numbers_are_found_also_when_another_lies_between():
    """As noise of a table of two and a half blocks with a key that depends on whether a block's number is even."""
    block = 4096
    row = np.random.default_rng(6).standard_normal(5 * block)
    assert plausible(lag_p_values(row))
    row[4 * block :] = row[:block]
    assert not plausible(lag_p_values(row))
