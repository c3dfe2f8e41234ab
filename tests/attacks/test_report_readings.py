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


@pytest.mark.parametrize(
    ("name", "options", "m", "epsilon", "each"),
    [
        ("piecewise-algorithm", {"per_dimension": "eps_over_m"}, 83, 5.0, 5 / 83),
        ("piecewise-zero", {"per_dimension": "eps"}, 2, 10.0, 5.0),
        ("piecewise-zero:10", {"per_dimension": "eps"}, 10, 50.0, 5.0),
        ("piecewise-zero", {"sampled": 10}, 10, 5.0, 0.5),
    ],
)
def test_the_budget_of_each_attribute_can_be_chosen_apart_from_the_reading(name, options, m, epsilon, each):
    found = feature_randomizer(name, 5.0, 83, options)
    assert found.m == m and found.law.epsilon == pytest.approx(each)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("piecewise-zero", {"per_dimension": "half"}, "per_dimension takes eps_over_m or eps, got 'half'"),
        ("piecewise-zero", {"per_dimensions": "eps"}, "no option 'per_dimensions'.*per_dimension"),
        ("piecewise-zero", {"budget": 100}, "no option 'budget'"),
        ("piecewise-zero", {"sampled": 0}, "at least 1"),
        ("piecewise-zero", {"half": "many"}, "cannot be made with half=many"),
        ("multi-bit", {"per_dimension": "eps"}, "no option 'per_dimension'"),
    ],
)
def test_options_that_reports_do_not_have_are_refused(name, options, words):
    with pytest.raises(InputError, match=words):
        feature_randomizer(name, 5.0, 83, options)
