"""Reports that attackers hold, by name: LGA-PGNN's readings of the piecewise mechanism."""

import math

import pytest

from graphveil.attacks import feature_randomizer
from graphveil.errors import InputError


@pytest.mark.parametrize(
    ("name", "m", "epsilon"),
    [
        ("piecewise-algorithm", 83, 83 * 5.0),
        ("piecewise-algorithm:10", 10, math.inf),  # the others are sent as they are
        ("piecewise-raw", 2, math.inf),
        ("piecewise-raw:83", 83, 5.0),
        ("piecewise-zero", 2, 5.0),
    ],
)
def test_a_reading_has_its_own_m_and_epsilon(name, m, epsilon):
    found = feature_randomizer(name, 5.0, 83)
    assert found.m == m and found.epsilon == pytest.approx(epsilon, rel=1e-5)
    assert (found.lower, found.upper) == (-1.0, 1.0)


@pytest.mark.parametrize("name", ["multi-bit:3", "piecewise-raw:0", "piecewise-raw:some", "piecewise-half"])
def test_impossible_reports_are_refused(name):
    with pytest.raises(InputError, match="piecewise"):
        feature_randomizer(name, 5.0, 83)
