"""The accounting that GAP and DPDGC state: Renyi divergences, with batches of a fixed size where a record is replaced.

Used for one thing only: to find the noise a *published* mode adds for the epsilon its paper claims. What graphveil itself proves
never comes from here (``loss.py``). Zero-out (GAP): Poisson batches, the Renyi accountant of dp_accounting. Replace
(DPDGC and the baselines in its Table 2): batches drawn without replacement, which dp_accounting bounds by another theorem than
the papers' library (Wang, Balle and Kasiviswanathan 2019, theorem 27). With rate g, order a and a Gaussian of noise z per unit of
sensitivity,

    exp((a - 1) r(a)) = 1 + C(a, 2) g^2 min(4 (e^{1/z^2} - 1), 2 e^{1/z^2})
                          + sum_{j = 3}^{a} C(a, j) g^j min(4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), 2 e^{j (j - 1) / (2 z^2)}),

    B(l) = E |p/q - 1|^l = sum_i (-1)^{l - i} C(l, i) e^{i (i - 1) / (2 z^2)}     (l even),

then add the orders up and convert: epsilon = min_a r(a) + log((a - 1)/a) - log(a delta)/(a - 1).
Test: ``tests/privacy/test_paper_accounting.py`` (noise scales found with the papers' own library).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from graphveil.privacy.accounting.group_loss import log_choose
from graphveil.privacy.plan import calibrate_scale
from graphveil.privacy.promise import Promise, Relation

ORDERS = np.arange(2, 101)
CERTAIN_DIGITS = 1e-9  # an alternating sum that cancels below this part of its largest term is not used

Array = NDArray[np.float64]


def claimed_noise(promise: Promise, *, steps: int, rate: float, stages: int = 1, gaussians: int = 0) -> float:
    """The noise multiplier z, common to all parts, for which the papers' accounting says ``promise.epsilon``.

    ``stages`` trained stages of ``steps`` sampled steps each, and ``gaussians`` plain releases; 1 if nothing is private.
    """
    if not promise.private:
        return 1.0
    replaced = promise.relation is Relation.REPLACE
    return _noise(promise.epsilon, promise.target_delta, replaced, stages * steps, rate, gaussians)


@lru_cache(maxsize=256)
def _noise(target: float, delta: float, replaced: bool, steps: int, rate: float, gaussians: int) -> float:
    epsilon = fixed_batch_epsilon if replaced else poisson_epsilon
    return calibrate_scale(lambda z: epsilon(z, steps, rate, gaussians, delta), target)


def poisson_epsilon(noise: float, steps: int, rate: float, gaussians: int, delta: float) -> float:
    """Epsilon of Gaussian steps on Poisson batches, one row being there or not, and of plain Gaussian releases."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    from dp_accounting.rdp import RdpAccountant

    step = GaussianDpEvent(noise)
    accountant = RdpAccountant(orders=ORDERS.astype(float))
    accountant.compose(PoissonSampledDpEvent(min(rate, 1.0), step), steps)
    if gaussians:
        accountant.compose(step, gaussians)
    return float(accountant.get_epsilon(delta))


def fixed_batch_epsilon(noise: float, steps: int, rate: float, gaussians: int, delta: float) -> float:
    """The same for batches drawn without replacement, one row being another."""
    total = gaussians * _plain(noise) + steps * fixed_batch_divergence(noise, rate)
    return float(np.min(total + np.log1p(-1 / ORDERS) - np.log(ORDERS * delta) / (ORDERS - 1)))


def fixed_batch_divergence(noise: float, rate: float) -> Array:
    """r(a) of one Gaussian step on a batch drawn without replacement, one row being another, by the bound above."""
    if rate >= 1:
        return _plain(noise)
    largest = int(ORDERS[-1])
    j = np.arange(largest + 1)
    moments = _central_moments(noise, largest)
    low, high = moments[2 * (j // 2)], moments[np.minimum(2 * ((j + 1) // 2), largest)]
    term = np.minimum(math.log(4) + (low + high) / 2, math.log(2) + j * (j - 1) / (2 * noise**2))
    apart = 1 / noise**2
    term[2] = min(math.log(4) + (apart + math.log(-math.expm1(-apart))), math.log(2) + apart)
    term += j * math.log(rate)
    bounds = [
        logsumexp(np.append(log_choose(a, j[2 : a + 1]) + term[2 : a + 1], 0.0)) / (a - 1)
        for a in range(2, largest + 1)
    ]
    return np.asarray(np.minimum(_plain(noise), np.array(bounds)))


def _plain(noise: float) -> Array:
    return np.asarray(ORDERS / (2 * noise**2))


@lru_cache(maxsize=256)
def _central_moments(noise: float, largest: int) -> Array:
    """log B(l) for even l; infinite where the alternating sum has no certain digits left."""
    logs = np.full(largest + 1, np.inf)
    logs[0] = 0.0
    for order in range(2, largest + 1, 2):
        i = np.arange(order + 1)
        terms = log_choose(order, i) + i * (i - 1) / (2 * noise**2)
        peak = float(terms.max())
        total = math.fsum(np.where((order - i) % 2, -1.0, 1.0) * np.exp(terms - peak))
        if total > CERTAIN_DIGITS:
            logs[order] = peak + math.log(total)
    return logs
