"""Every whole number has its ideal probability: recomputed from the tables as they are, and attacked from outside."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import chisquare, kstest, laplace, norm

from graphveil.privacy import samplers
from graphveil.privacy.noise import ERROR, Noise, grid

SCALES = [1.0 * 2**40, 1.37 * 2**40, 2**41 - 1.0]
mp.mp.prec = 160


def entry_masses(table):
    """How many of the 2^74 ENTRIES first and further bits lead to each entry, exactly."""
    whole = 1 << samplers.KEEP_BITS + samplers.MORE_BITS
    masses = [0] * samplers.ENTRIES
    for entry, (keep, more, other) in enumerate(
        zip(table.keep.tolist(), table.more.tolist(), table.other.tolist(), strict=True)
    ):
        stay = (keep << samplers.MORE_BITS) + more
        masses[entry] += stay
        masses[other] += whole - stay
    assert sum(masses) == whole * samplers.ENTRIES
    return masses


def accepted(a):
    """The chance that 9 bits, and 53 more where these do not decide, stay below exp(-a) as the code has it."""
    exp = samplers.exp_minus.py_func(float(a)) * 2.0**samplers.ACCEPT_BITS
    whole = math.floor(exp)
    return (whole + mp.mpf(math.ceil((exp - whole) * 2.0**53)) / 2**53) / mp.mpf(2) ** samplers.ACCEPT_BITS


def weight(kind, k, scale):
    return mp.exp(-((mp.mpf(k) / scale) ** 2) / 2) if kind == "gaussian" else mp.exp(-mp.mpf(k) / scale)


def proposed(kind, table, masses, k):
    """The unnormalised chance of the magnitude k, as it is drawn."""
    scale, cell = mp.mpf(table.scale), int(samplers.CELL)
    end, further = table.cells * cell, mp.mpf(1)
    if kind == "laplace":
        passed, k = divmod(k, end)
        further = (mp.mpf(masses[table.cells]) / stage_total(table, masses)) ** passed
    elif k >= end:
        return tail_chance(table, masses, k - end)
    entry, near = k // cell, k // cell * cell
    a = (mp.mpf(k) ** 2 - mp.mpf(near) ** 2) / (2 * scale**2) if kind == "gaussian" else mp.mpf(k - near) / scale
    return further * masses[entry] * accepted(a) / cell


def stage_total(table, masses):
    """What is accepted or goes further on, of all words of a stage of the Laplace draw."""
    scale = mp.mpf(table.scale)
    kept = mp.expm1(-samplers.CELL / scale) / mp.expm1(-1 / scale) / samplers.CELL  # the mean of exp(-offset / S)
    return kept * sum(masses[: table.cells]) + masses[table.cells]


def shown(chance):
    """The chance with which a coin of this chance really shows."""
    zeros, below = samplers.coin(chance)
    return mp.mpf(below) / mp.mpf(2) ** (63 + zeros)


def tail_chance(table, masses, more):
    """A number beyond the table of the Gaussian: independent binary digits, then acceptance."""
    found = mp.mpf(masses[table.cells])
    for digit, chance in enumerate(samplers.tail_digits(table)):
        found *= shown(chance) if more >> digit & 1 else 1 - shown(chance)
    return found * shown(math.exp(-0.5 * (more / table.scale) ** 2))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_gaussian_and_laplace_cells_have_their_ideal_probability_from_the_centre_to_the_far_tail(kind, scale):
    table = getattr(samplers, f"{kind}_table")(scale)
    masses = entry_masses(table)
    places = [0, 1, 12345, *(int(x * scale) + odd for x in (0.5, 1, 3, 4.99, 5.01, 8, 11.5) for odd in (0, 1, 77))]
    places += (
        [int(x * scale) for x in (12, 30, 69)] if kind == "laplace" else [int(x * scale) for x in (15, 20, 30, 37)]
    )
    ratio = [proposed(kind, table, masses, k) / weight(kind, k, mp.mpf(scale)) for k in places]
    assert max(abs(one / ratio[0] - 1) for one in ratio) < ERROR
    assert min(weight(kind, k, scale) for k in places) < mp.mpf(2) ** -90


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_every_coarse_cell_and_the_rest_have_their_mass(kind, scale):
    table = getattr(samplers, f"{kind}_table")(scale)
    masses, cell = entry_masses(table), int(samplers.CELL)
    ratio = [masses[j] / (weight(kind, j * cell, scale) * cell) for j in range(table.cells)]
    assert max(abs(one / ratio[0] - 1) for one in ratio) < ERROR
    assert sum(masses[table.cells + 1 :]) <= samplers.ENTRIES, "nothing but the last bit of 2^116"


@pytest.mark.parametrize(("draw", "law"), [("gaussian", norm), ("laplace", laplace)])
def test_draws_have_the_declared_law_sign_and_last_bits(draw, law):
    """Three checks at 1e-9 each, seeded."""
    values = getattr(Noise(5), draw)(1.7, 400_000) / 1.7
    assert kstest(values, law.cdf).pvalue > 1e-9
    numbers = np.rint(values * 1.7 / grid(1.7)).astype(np.int64)
    assert chisquare(np.bincount(np.abs(numbers) % 64, minlength=64)).pvalue > 1e-9
    assert abs((numbers > 0).sum() - 200_000) < 6 * math.sqrt(100_000)


def reachable_by_one_double(numbers, scale):
    """Whether the logarithm of some 53-bit number is rounded to this number: what a plain Laplace sampler can reach."""
    high = np.exp(-(np.abs(numbers) - 0.5) / scale) * 2.0**53
    low = np.exp(-(np.abs(numbers) + 0.5) / scale) * 2.0**53
    return np.floor(high) > np.floor(low)


def test_laplace_noise_has_no_holes_that_depend_on_the_clean_value():
    """The attack: far out, a plain sampler reaches one cell in hundreds, and the neighbour's value none of the same ones."""
    scale, cell = 1.0, grid(1.0)
    far = np.rint(Noise(3).laplace(scale, 3_000_000) / cell).astype(np.int64)
    far = far[np.abs(far) > 10 * scale / cell]
    own, neighbours = (reachable_by_one_double(far + shift, scale / cell).mean() for shift in (0, 1))
    assert len(far) > 60 and own < 0.5
    assert abs(own - neighbours) < 6 * math.sqrt(2 * 0.25 / len(far))
    plain = np.rint(np.random.default_rng(0).laplace(size=3_000_000) / cell).astype(np.int64)
    plain = plain[np.abs(plain) > 12 * scale / cell]
    assert reachable_by_one_double(plain, scale / cell).mean() > 0.9, "the attack works on a plain sampler"


def test_a_coordinate_costs_no_more_than_the_overhead_says():
    """The lemma of ``samplers.py``: laws within factors 1 +- g of a mu-GDP pair are (mu + 3 g)-GDP, at every level."""
    g, levels = (
        0.01,
        np.concatenate([np.logspace(-300, -1, 4000), np.linspace(0.1, 0.9, 4000), 1 - np.logspace(-12, -1, 4000)]),
    )
    for mu in (0.01, 0.3, 1.0, 4.0, 12.0):
        z = norm.isf(np.minimum((1 + g) * levels, 1 - (1 - levels) / (1 + g)))  # P(S) is at most this
        missed, power = norm.cdf(z - mu), norm.sf(z - mu)  # of Q
        quantile = np.where(missed < 0.5, norm.ppf(missed / (1 + g)), norm.isf(np.minimum((1 + g) * power, 1.0)))
        assert (quantile >= norm.isf(levels) - mu - 3 * g).all()


def test_numbers_beyond_the_table_are_drawn_as_often_as_they_should_be():
    """Expected 0.0017 % of Gaussian and 0.09 % of Laplace magnitudes; six sigma."""
    for draw, reach, law in (("gaussian", 4.5, norm), ("laplace", samplers.LAPLACE_REACH, laplace)):
        values = np.abs(getattr(Noise(11), draw)(1.0, 4_000_000))
        expected = 4_000_000 * 2 * law.sf(reach)
        assert abs((values > reach).sum() - expected) < 6 * math.sqrt(expected) + 1
