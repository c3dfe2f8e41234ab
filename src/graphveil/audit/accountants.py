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

from graphveil.privacy.accounting.loss import (
    Gdp,
    LaplaceLoss,
    Pure,
    SampledGaussian,
    amplified_epsilon,
    epsilon_of,
    gaussian_epsilon,
)
from graphveil.privacy.mechanisms import DpGradient
from graphveil.privacy.noise import Array
from graphveil.privacy.plan import finite

GRID = 1e-3
DELTA = 1e-5

LogDensity = Callable[[Array], Array]


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


def integrated_epsilon(
    log_p: LogDensity, log_q: LogDensity, ends: tuple[float, float], steps: int, delta: float
) -> float:
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

    return float(brentq(spare, 0.0, 60.0, xtol=1e-9)) if spare(0.0) > 0 else 0.0


def _normal(mean: float, sigma: float) -> LogDensity:
    return lambda x: -0.5 * ((x - mean) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))


def _mixture(rate: float, size: float, sigma: float) -> LogDensity:
    out, there = _normal(0.0, sigma), _normal(size, sigma)
    return lambda x: np.logaddexp(math.log1p(-rate) + out(x), math.log(rate) + there(x))


def _gaussian() -> Iterator[CrossCheck]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    mus = (0.3, 0.4, 1.2)
    composed = gaussian_epsilon(math.sqrt(sum(mu * mu for mu in mus)), DELTA)
    ours = epsilon_of([Gdp(mu) for mu in mus], DELTA)
    yield CrossCheck("three Gaussians: root of squares against PLD", ours, composed)
    parts = [pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=GRID) for mu in mus]
    by_pld = parts[0].compose(parts[1]).compose(parts[2]).get_epsilon_for_delta(DELTA)
    yield CrossCheck("PLD of three Gaussians against root of squares", by_pld, composed)
    reference = integrated_epsilon(_normal(1.3, 1.0), _normal(0.0, 1.0), (-10.0, 12.0), 1, DELTA)
    ours = epsilon_of([Gdp(1.3)], DELTA)
    yield CrossCheck("one Gaussian, mu 1.3, against integration", ours, reference, 1e-5)


def _sampled() -> Iterator[CrossCheck]:
    """Zero-out: the worse of both directions; replace: the pair moves apart by two clips."""
    rate, sigma = 0.2, 1.1
    none, up, down = _normal(0.0, sigma), _mixture(rate, 1.0, sigma), _mixture(rate, -1.0, sigma)
    pairs = {"zero-out": [(up, none, -11.0), (none, up, -11.0)], "replace": [(up, down, -12.0)]}
    for steps in (1, 2):
        for relation, directions in pairs.items():
            ours = epsilon_of([SampledGaussian(sigma, rate, steps, relation == "replace")], DELTA)
            reference = max(integrated_epsilon(p, q, (low, 12.0), steps, DELTA) for p, q, low in directions)
            name = f"Poisson batches, {steps} steps, {relation}, against integration"
            yield CrossCheck(name, ours, reference)
    ratio = 0.7
    yield CrossCheck("Laplace noise at delta 0", epsilon_of([LaplaceLoss(ratio)] * 3, 1e-30), 3 * ratio, 1e-6)


def _groups() -> Iterator[CrossCheck]:
    """Lemma G against dp_accounting where it has the same pair."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    sigma, rate, steps, a = 2.0, 0.1, 8, 4
    swap = {"sampling_prob": rate, "neighboring_relation": NeighboringRelation.REPLACE_ONE}
    weights = [math.comb(a, i) * rate**i * (1 - rate) ** (a - i) for i in range(a + 1)]
    replaced = pld.from_gaussian_mechanism(sigma, **swap, value_discretization_interval=GRID)
    mixture = pld.from_mixture_gaussian_mechanism(
        sigma, np.arange(a + 1.0), weights, value_discretization_interval=GRID
    )
    for name, group, other in (("REPLACE_ONE", (1, 1), replaced), ("a mixture of Gaussians", (a, 0), mixture)):
        ours = epsilon_of([SampledGaussian(sigma, rate, steps, group=group)], DELTA)
        reference = other.self_compose(steps).get_epsilon_for_delta(DELTA)
        yield CrossCheck(f"Lemma G {group} against {name}", ours, reference, 0.005)


def _relations() -> Iterator[CrossCheck]:
    """Replacing a row costs what twice the distance costs in a full batch, and strictly more than removing it when sampled."""

    def paid(rate: float, replaces: bool) -> float:
        return epsilon_of([DpGradient(3.0, 1.0, 5, 1, rate, replaces).loss(1.0)], DELTA)

    twice = gaussian_epsilon(2 * math.sqrt(5) / 3.0, DELTA)
    yield CrossCheck("full batches: replace is twice the distance", paid(1.0, True), twice, 1e-6)
    more = 1.2 * paid(0.3, False)
    yield CrossCheck("Poisson batches: replace costs more than zero-out", paid(0.3, True), more, math.inf)


def _amplification() -> Iterator[CrossCheck]:
    """Slots sampled for a whole run, randomised response inside: the exact ratio."""
    rate, inner = 0.09, 11.11
    lie = 1 / (1 + math.exp(inner))
    exact = math.log((rate * (1 - lie) + (1 - rate) * lie) / lie)
    yield CrossCheck("sampled slots, randomised response", amplified_epsilon([Pure(inner)], 1e-12, rate), exact, 0.002)
