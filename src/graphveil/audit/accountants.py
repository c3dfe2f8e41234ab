"""Cross-checks of the accounting: the same epsilon by another way, or a visible disagreement.

Tests: ``tests/audit/test_accountants.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from graphveil.audit.result import finite
from graphveil.privacy.accounting.loss import (
    Gdp,
    LaplaceLoss,
    SampledGaussian,
    amplified_epsilon,
    epsilon_of,
    gaussian_epsilon,
)

DELTA = 1e-5


@dataclass(frozen=True)
class CrossCheck:
    """``ours`` may exceed ``reference`` (rounding is pessimistic) by ``slack``, and may not fall below it."""

    name: str
    ours: float
    reference: float
    slack: float = 0.01

    @property
    def agrees(self) -> bool:
        return -1e-4 <= self.ours - self.reference <= self.slack * max(1.0, self.reference)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"slack": finite(self.slack), "agrees": self.agrees}


def cross_checks() -> Iterator[CrossCheck]:
    """All of them, one after the other; a few seconds in all."""
    for group in (_amplification, _relations, _gaussian, _sampled, _groups):
        yield from group()


def integrated_epsilon(log_p: Any, log_q: Any, ends: tuple[float, float], steps: int, delta: float) -> float:
    """Epsilon at ``delta`` of one or two independent steps, by summing ``(p - e^epsilon q)_+`` on a fine grid.

    ``log_p`` and ``log_q`` are log-densities of one step on the real line. Two steps are summed over the plane.
    """
    points = 200_001 if steps == 1 else 1_001
    x = np.linspace(*ends, points)
    cell = x[1] - x[0]
    p, q = log_p(x), log_q(x)
    if steps == 2:
        p, q = np.add.outer(p, p), np.add.outer(q, q)
    loss = (p - q).ravel()
    order = np.argsort(-loss)
    loss, weight = loss[order], np.exp(p.ravel()[order]) * cell**steps
    above_p, above_q = np.cumsum(weight), np.cumsum(weight * np.exp(-loss))

    def spare(epsilon: float) -> float:
        count = int(np.searchsorted(-loss, -epsilon))
        return float(above_p[count - 1] - math.exp(epsilon) * above_q[count - 1]) - delta if count else -delta

    if spare(0.0) <= 0:
        return 0.0
    return float(brentq(spare, 0.0, 60.0, xtol=1e-9))


def _normal(x: np.ndarray, mean: float, sigma: float) -> np.ndarray:
    return -0.5 * ((x - mean) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))


def _mixture(rate: float, size: float, sigma: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.logaddexp(math.log1p(-rate) + _normal(x, 0.0, sigma), math.log(rate) + _normal(x, size, sigma))


def _gaussian() -> list[CrossCheck]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    mus = (0.3, 0.4, 1.2)
    composed = gaussian_epsilon(math.sqrt(sum(mu * mu for mu in mus)), DELTA)
    parts = [pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=1e-3) for mu in mus]
    by_pld = parts[0].compose(parts[1]).compose(parts[2]).get_epsilon_for_delta(DELTA)
    log_p, log_q = (lambda x: _normal(x, 1.3, 1.0)), (lambda x: _normal(x, 0.0, 1.0))
    return [
        CrossCheck(
            "three Gaussians: root of squares against PLD", epsilon_of([Gdp(mu) for mu in mus], DELTA), composed
        ),
        CrossCheck("PLD of three Gaussians against root of squares", by_pld, composed),
        CrossCheck(
            "one Gaussian, mu 1.3, against integration",
            epsilon_of([Gdp(1.3)], DELTA),
            integrated_epsilon(log_p, log_q, (-10.0, 12.0), 1, DELTA),
            1e-5,
        ),
    ]


def _sampled() -> list[CrossCheck]:
    """Zero-out: the worse of both directions; replace: the pair moves apart by two clips."""
    rate, sigma, found = 0.2, 1.1, []
    for steps in (1, 2):
        with_row, without = _mixture(rate, 1.0, sigma), lambda x: _normal(x, 0.0, sigma)
        ends = (-11.0, 12.0)
        both = max(integrated_epsilon(a, b, ends, steps, DELTA) for a, b in ((with_row, without), (without, with_row)))
        ours = epsilon_of([SampledGaussian(sigma, rate, steps, False)], DELTA)
        found.append(CrossCheck(f"Poisson batches, {steps} steps, zero-out, against integration", ours, both))
        up, down = _mixture(rate, 1.0, sigma), _mixture(rate, -1.0, sigma)
        ours = epsilon_of([SampledGaussian(sigma, rate, steps, True)], DELTA)
        reference = integrated_epsilon(up, down, (-12.0, 12.0), steps, DELTA)
        found.append(CrossCheck(f"Poisson batches, {steps} steps, replace, against integration", ours, reference))
    ratio = 0.7
    found.append(CrossCheck("Laplace noise at delta 0", epsilon_of([LaplaceLoss(ratio)] * 3, 1e-30), 3 * ratio, 1e-6))
    return found


def _groups() -> list[CrossCheck]:
    """Lemma G against dp_accounting where it has the same pair."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    sigma, rate, steps = 2.0, 0.1, 8
    replaced = pld.from_gaussian_mechanism(
        sigma,
        sampling_prob=rate,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
        value_discretization_interval=1e-3,
    )
    ours = epsilon_of([SampledGaussian(sigma, rate, steps, group=(1, 1))], DELTA)
    checks = [
        CrossCheck(
            "Lemma G (1, 1) against REPLACE_ONE", ours, replaced.self_compose(steps).get_epsilon_for_delta(DELTA), 0.005
        )
    ]
    a = 4
    weights = [math.comb(a, i) * rate**i * (1 - rate) ** (a - i) for i in range(a + 1)]
    mixture = pld.from_mixture_gaussian_mechanism(
        sigma, np.arange(a + 1.0), weights, value_discretization_interval=1e-3
    )
    reference = mixture.self_compose(steps).get_epsilon_for_delta(DELTA)
    ours = epsilon_of([SampledGaussian(sigma, rate, steps, group=(a, 0))], DELTA)
    return [*checks, CrossCheck("Lemma G (4, 0) against a mixture of Gaussians", ours, reference, 0.005)]


def _relations() -> list[CrossCheck]:
    """Replacing a row costs what twice the distance costs in a full batch, and strictly more than removing it when sampled."""
    from graphveil.privacy.mechanisms import DpGradient

    def paid(rate: float, replaces: bool) -> float:
        return epsilon_of([DpGradient(3.0, 1.0, 5, 1, rate, replaces).loss(1.0)], DELTA)

    replaced, removed, swapped = paid(1.0, True), paid(0.3, False), paid(0.3, True)
    twice = gaussian_epsilon(2 * math.sqrt(5) / 3.0, DELTA)
    return [
        CrossCheck("full batches: replace is twice the distance", replaced, twice, 1e-6),
        CrossCheck("Poisson batches: replace costs more than zero-out", swapped, 1.2 * removed, math.inf),
    ]


def _amplification() -> list[CrossCheck]:
    """Slots sampled for a whole run, randomised response inside: the exact ratio."""
    from graphveil.privacy.accounting.loss import Pure

    rate, inner = 0.09, 11.11
    lie = 1 / (1 + math.exp(inner))
    exact = math.log((rate * (1 - lie) + (1 - rate) * lie) / lie)
    return [
        CrossCheck("sampled slots, randomised response", amplified_epsilon([Pure(inner)], 1e-12, rate), exact, 0.002)
    ]
