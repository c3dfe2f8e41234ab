"""What one noisy histogram says about its owner's class: exact likelihoods that know the law of the noise.

Given class c and an activity t, the number of contacts in bin b is geometric with mean t r[c, b], a law with a tail as heavy as
that of degrees; the report adds Laplace noise of a known scale. Both tails of the sum are geometric series, so its density
has a closed form. Rates r are means of the noisy counts over owners of known class, so that classes that attract others count
as much as those that attract themselves; the shares of activities are fitted by EM to owners of known class. Time and memory
are linear in the number of reports. Tests: ``tests/methods/test_own_classes.py``.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from graphveil.privacy.noise import Array

ACTIVITIES = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # contacts of a vertex, in units of the mean of its class
LEAST_RATE = 0.01
STEPS = 20


def geometric_laplace(values: Array, means: Array, scale: float) -> Array:
    """Log-density of n + Laplace(``scale``) at ``values``, where P(n) = (1 - q) q^n and q = mean/(1 + mean).

    With s = e^(-1/scale) and M = floor(value) + 1 (at least 0), the terms n < M add up to (q^M - s^M)/(q - s) and those from M
    on to q^M/(1 - q s), each times the noise at the distance to n = M - 1 and n = M.
    """
    decay = 1 / scale
    after = np.maximum(np.floor(values) + 1, 0.0)  # M
    log_q = np.log(means) - np.log1p(means)
    apart = -np.maximum(np.abs(log_q + decay), 1e-9)  # log of the smaller of q and s over the larger
    with np.errstate(divide="ignore"):  # there is no term below 0: log 0
        below = np.log(np.expm1(after * apart) / np.expm1(apart)) + (after - 1) * np.maximum(log_q, -decay)
    above = after * log_q - np.log1p(-np.exp(log_q - decay))
    both = np.logaddexp(below - decay * (values - (after - 1)), above - decay * (after - values))
    return np.asarray(both - np.log1p(means) - np.log(2 * scale))


def class_likelihoods(counts: Array, scale: float, known: np.ndarray, labels: np.ndarray, classes: int) -> Array:
    """Log-likelihood of every row of noisy counts under every class; ``labels`` are those of the rows ``known``."""
    rates = class_rates(counts, known, labels, classes)
    found = np.empty((len(ACTIVITIES), len(counts), classes))
    for number, activity in enumerate(ACTIVITIES):
        for c in range(classes):
            found[number, :, c] = geometric_laplace(counts, activity * rates[c], scale).sum(axis=1)
    own = found[:, known, labels]
    weights = np.full(len(ACTIVITIES), 1 / len(ACTIVITIES))
    for _ in range(STEPS):
        weights = softmax(own + np.log(weights)[:, None], axis=0).mean(axis=1) + 1e-6
        weights /= weights.sum()
    return np.asarray(logsumexp(found + np.log(weights)[:, None, None], axis=0))


def class_rates(counts: Array, known: np.ndarray, labels: np.ndarray, classes: int) -> Array:
    """Mean counts of the owners of each class, one more owner with everybody's mean added."""
    member = np.zeros((classes, len(known)))
    member[labels, np.arange(len(known))] = 1.0
    size = member.sum(axis=1, keepdims=True)
    return np.asarray(np.maximum((member @ counts[known] + counts.mean(axis=0)) / (size + 1), LEAST_RATE))


def shares(counts: Array, scale: float) -> Array:
    """The share of one's contacts in every bin, drawn to 0 where noise is all there is."""
    positive = np.maximum(counts, 0.0)
    return np.asarray(positive / (positive.sum(axis=1, keepdims=True) + 2 * scale))
