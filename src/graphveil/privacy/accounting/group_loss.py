"""Lemma G: what a Poisson-sampled gradient step costs a record that touches several rows.

One step releases ``sum_{j in S} g_j + N(0, sigma^2 I)``, every row being sampled independently with rate q and clipped to norm 1.
If at most ``a`` rows differ on one side and ``b`` on the other, the step is dominated in both directions by the pair

    P = sum_i Bin(i; a, q) N(+i, sigma^2)          Q = sum_j Bin(j; b, q) N(-j, sigma^2).

*Why.* Given the unaffected rows, both outputs are mixtures of Gaussians whose means have norm at most the number of affected
rows sampled; by Gaussian interpolation the hockey-stick divergence grows with every inner product of means on one side and
shrinks with those across, and all extremes are attained together by collinear means of opposite sign (``docs/privacy.md``).
``b = 0`` is the mixture-of-Gaussians mechanism, ``a = b = 1`` replaces one row. Not covered: batches of a fixed size.

log P/Q increases in x, so with x(e) its inverse ``delta(e) = P(X > x(e)) - exp(e) Q(X > x(e))`` is closed-form, and
connecting these dots gives a pessimistic privacy loss distribution. Tests: ``tests/privacy/test_group_loss.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphveil.errors import PrivacyError

REACH = 9.0  # standard deviations kept on either side: what is cut off has mass below 2e-19 and counts as lost outright
TAIL = 1e-18
MOST_POINTS = 4_000_000

Array = NDArray[np.float64]


def group_distribution(sigma: float, rate: float, group: tuple[int, int], grid: float) -> Any:
    """One step as a dp_accounting privacy loss distribution; ``sigma`` in units of one row's clipping norm."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    a, b = group
    removal = _step(sigma, rate, a, b, grid)
    addition = removal if a == b else _step(sigma, rate, b, a, grid)
    return pld.PrivacyLossDistribution(removal, addition)


def group_delta(epsilons: Array, sigma: float, rate: float, a: int, b: int) -> Array:
    """The hockey-stick divergence of P from Q at every epsilon, by the closed form."""
    up, down = _binomial(a, rate), _binomial(b, rate)
    epsilons = np.asarray(epsilons, dtype=np.float64)
    cut = _where_loss_is(epsilons, up, down, sigma)
    above = _log_tail(cut, up, +1, sigma)
    below = _log_tail(cut, down, -1, sigma)
    excess = np.exp(above) - np.exp(np.minimum(epsilons + below, 0.0))
    return np.asarray(np.clip(excess + (TAIL if up.size <= a else 0.0), 0.0, 1.0))


def _step(sigma: float, rate: float, a: int, b: int, grid: float) -> Any:
    from dp_accounting.pld import pld_pmf

    up, down = _binomial(a, rate), _binomial(b, rate)
    ends = np.array([1 - down.size - REACH * sigma, up.size - 1 + REACH * sigma])
    lowest, highest = _loss(ends, up, down, sigma)
    first, last = math.floor(lowest / grid), math.ceil(highest / grid)
    if last - first > MOST_POINTS:
        raise PrivacyError(
            f"a group of ({a}, {b}) rows with noise {sigma:.3g} has losses up to {highest:.3g}: far more noise is needed"
        )
    deltas = group_delta(grid * np.arange(first, last + 1), sigma, rate, a, b)
    deltas = np.maximum.accumulate(deltas[::-1])[::-1]  # rounding may only raise a dot
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, first, last, deltas)
    if abs(float(pmf.to_dense_pmf()._probs.sum()) - 1) > 1e-6:
        raise PrivacyError(f"the loss of a group of ({a}, {b}) rows with noise {sigma:.3g} cannot be computed reliably")
    return pmf


def log_choose(n: int, k: NDArray[np.int64]) -> Array:
    """log of n over k; scipy's ``binom`` overflows."""
    from scipy.special import gammaln  # slow to import, and a client that only imports this file needs none

    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def log_binomial(trials: int, rate: float) -> Array:
    """Log-probabilities of 0 .. trials successes."""
    from scipy.special import xlog1py, xlogy

    i = np.arange(trials + 1)
    return np.asarray(log_choose(trials, i) + xlogy(i, rate) + xlog1py(trials - i, -rate))


def _binomial(rows: int, rate: float) -> Array:
    """Log-probabilities of 0 .. rows sampled rows, without a far tail of mass below ``TAIL``.

    Leaving it out of Q only raises P - exp(e) Q; leaving it out of P is made up for in :func:`group_delta`.
    """
    weights = log_binomial(rows, rate)
    tail = np.cumsum(np.exp(weights[::-1]))[::-1]
    return weights[: max(1, int(np.count_nonzero(tail > TAIL)))]


def _log_density(x: Array, weights: Array, sign: int, sigma: float) -> tuple[Array, Array]:
    """log of the mixture's density over N(0, sigma^2)'s, and its derivative."""
    i = np.arange(weights.size, dtype=np.float64)
    terms = weights + (sign * np.outer(x, i) - i * i / 2) / sigma**2
    total, shares = log_sum(terms)
    return total, sign * (shares @ i) / sigma**2


def _loss(x: Array, up: Array, down: Array, sigma: float) -> Array:
    return _log_density(x, up, +1, sigma)[0] - _log_density(x, down, -1, sigma)[0]


def _where_loss_is(epsilons: Array, up: Array, down: Array, sigma: float) -> Array:
    """The x with log P/Q (x) = epsilon: interpolated on a table, then Newton steps kept within their cell.

    Where the loss never reaches epsilon the end of the table stands for infinity; every x gives a lower bound of the
    supremum, hence the care: the error of delta is quadratic in that of x.
    """
    a, b = up.size - 1, down.size - 1
    table = np.linspace(-b - (REACH + 1) * sigma, a + (REACH + 1) * sigma, 2048)
    values = np.maximum.accumulate(_loss(table, up, down, sigma))
    cell = np.clip(np.searchsorted(values, epsilons), 1, table.size - 1)
    low, high = table[cell - 1].copy(), table[cell].copy()
    inside = (epsilons > values[0]) & (epsilons < values[-1])
    x = np.interp(epsilons, values, table)
    for _ in range(5):
        rise, slope_up = _log_density(x[inside], up, +1, sigma)
        fall, slope_down = _log_density(x[inside], down, -1, sigma)
        error, slope = rise - fall - epsilons[inside], slope_up - slope_down
        low[inside] = np.where(error < 0, x[inside], low[inside])
        high[inside] = np.where(error >= 0, x[inside], high[inside])
        step = x[inside] - error / np.maximum(slope, 1e-300)
        middle = (low[inside] + high[inside]) / 2
        x[inside] = np.where((step >= low[inside]) & (step <= high[inside]), step, middle)
        if np.abs(error).max(initial=0.0) < 1e-7:  # the next error is of the order of its square
            break
    return x


def _log_tail(x: Array, weights: Array, sign: int, sigma: float) -> Array:
    """log of the mixture's mass above x."""
    from scipy.special import log_ndtr

    i = np.arange(weights.size, dtype=np.float64)
    return log_sum(weights + log_ndtr((sign * i - x[:, None]) / sigma))[0]


def log_sum(terms: Array) -> tuple[Array, Array]:
    """log of the sum of exponentials of every row, and each term's share of it.

    In one pass, where scipy's ``logsumexp`` and ``softmax`` take four and more than twice the time.
    """
    largest = terms.max(axis=1, keepdims=True)
    shares = np.exp(terms - largest)
    total = shares.sum(axis=1, keepdims=True)
    shares /= total
    logs: Array = (largest + np.log(total))[:, 0]
    return logs, shares
