"""Worst log-ratios over whole alphabets, and six-sigma checks of estimators."""

from __future__ import annotations

import math

import numpy as np

from graphveil.audit.local.exact_ratios import log_densities

SIX_SIGMA = (
    6.0  # two-sided false-alarm rate 2e-9 per number compared, if its error is Gaussian; seeds are fixed besides
)


def assert_attains(randomizer, worst):
    """The exact ratio is never above epsilon, and epsilon is not a loose bound."""
    assert 0.99 * randomizer.budget <= worst <= randomizer.budget + 1e-9
    assert worst <= randomizer.epsilon + 1e-9
    assert 0.99 * randomizer.budget <= randomizer.epsilon <= randomizer.budget + 1e-9


def assert_unbiased(estimates, truth, variance):
    """Mean and variance of independent estimates (rows) agree with the formula."""
    draws = len(estimates)
    mean, spread = estimates.mean(axis=0), estimates.var(axis=0)
    assert np.all(np.abs(mean - truth) <= SIX_SIGMA * np.sqrt(np.asarray(variance) / draws) + 1e-12)
    fourth = np.mean((estimates - mean) ** 4, axis=0)
    assert np.all(
        np.abs(spread - variance) <= SIX_SIGMA * np.sqrt(np.maximum(fourth - spread**2, 1e-18) / draws) + 1e-9
    )


def worst_log_ratio(randomizer, records, reports, broadcast=None):
    """The largest log-ratio of any two of the records at any of the reports; reports that neither can produce are left out."""
    densities = log_densities(randomizer, records, reports, broadcast)
    with np.errstate(invalid="ignore"):
        ratios = densities[:, None, :] - densities[None, :, :]
    a, b, r = (int(n) for n in np.unravel_index(np.nanargmax(ratios), ratios.shape))
    worst = randomizer.log_ratio(records[a], records[b], reports[r], broadcast)
    assert worst == ratios[a, b, r]
    return worst


def total_mass(randomizer, record, reports, broadcast=None):
    """What the probabilities of these reports add up to."""
    return math.fsum(math.exp(randomizer.log_density(record, report, broadcast)) for report in reports)
