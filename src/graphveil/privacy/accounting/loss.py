"""Privacy losses and their composition: exact for Gaussians, privacy loss distributions for everything else.

A mechanism with Gaussian parameter mu satisfies (epsilon, delta) exactly for

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2),

and Gaussian parameters compose as mu^2 = sum mu_i^2, also when later parameters depend on earlier *outputs*, as long as
the sum stays within mu^2 on every history (soundness: ``docs/privacy.md``, filter theorem). All other losses are composed
as privacy loss distributions by dp_accounting with pessimistic rounding, so epsilon is never understated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any

from graphveil.errors import PrivacyError

GRID = 1e-3  # discretisation of the privacy loss; rounding is pessimistic, so a coarser grid only overstates epsilon


@dataclass(frozen=True)
class Gdp:
    """A Gaussian mechanism with sensitivity / noise = mu."""

    mu: float


@dataclass(frozen=True)
class Pure:
    """A mechanism with pure epsilon; dominated by randomised response with the same epsilon."""

    epsilon: float


@dataclass(frozen=True)
class LaplaceLoss:
    """Laplace noise: ratio = L1 sensitivity / scale. Pure ``ratio``, and better than that at positive delta."""

    ratio: float


@dataclass(frozen=True)
class SampledGaussian:
    """``steps`` Gaussian steps on Poisson batches of rate ``rate``; noise in units of one row's clipped gradient.

    ``replace=False``: one row is there or not (zero-out). ``replace=True``: one row changes into another. ``group = (a, b)``
    for a record that touches several rows: Lemma G (``group_loss.py``), whatever ``replace`` says.
    """

    noise_multiplier: float
    rate: float
    steps: int
    replace: bool = False
    group: tuple[int, int] | None = None


@dataclass(frozen=True)
class Zcdp:
    """rho-zero-concentrated privacy: what choices by Gumbel noise cost (bounded range; Durfee and Rogers 2019)."""

    rho: float


@dataclass(frozen=True)
class Stated:
    """(epsilon, delta) as it stands: a local report without a bound at delta 0, or a whole run of which no more is known."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Unbounded:
    """Something was read without noise: no finite epsilon."""


Loss = Gdp | Pure | LaplaceLoss | SampledGaussian | Zcdp | Stated | Unbounded


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The exact delta of a mu-GDP mechanism at ``epsilon``."""
    if mu == 0:
        return 0.0
    if not math.isfinite(mu):
        return 1.0
    from scipy.special import log_ndtr, ndtr  # slow to import, and a client that adds no Gaussian noise needs none

    right = math.exp(min(epsilon + float(log_ndtr(-epsilon / mu - mu / 2)), 0.0))
    return max(0.0, float(ndtr(-epsilon / mu + mu / 2)) - right)


def _root(function: Callable[[float], float], low: float, high: float, xtol: float) -> float:
    """Where ``function`` changes its sign, by halving: importing ``scipy.optimize`` costs more than a thousand of these."""
    sign = function(low) > 0
    while high - low > max(xtol, 1e-15 * high):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) == sign else (low, middle)
    return (low + high) / 2


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon with ``gaussian_delta(mu, epsilon) <= delta``, rounded up."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if not math.isfinite(mu):
        return math.inf
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    epsilon = _root(lambda e: gaussian_delta(mu, e) - delta, 0.0, high, xtol=1e-13)
    while gaussian_delta(mu, epsilon) > delta:
        epsilon = math.nextafter(epsilon * (1 + 1e-13), math.inf)
    return epsilon


@lru_cache(maxsize=4096)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose mechanism is (epsilon, delta)-DP, rounded down; infinite for epsilon = inf."""
    if math.isinf(epsilon):
        return math.inf
    if gaussian_delta(1e-12, epsilon) >= delta:
        raise PrivacyError(f"(epsilon, delta) = ({epsilon:g}, {delta:g}) leaves no usable signal; ask for larger ones")
    high = 1.0
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    mu = _root(lambda m: gaussian_delta(m, epsilon) - delta, 1e-12, high, xtol=1e-15)
    while gaussian_delta(mu, epsilon) > delta:
        mu *= 1 - 1e-13
    return mu * (
        1 - 1e-12
    )  # so that the way back, :func:`gaussian_epsilon`, does not end above, whatever rounding does


def compose(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """The same losses with Gaussians merged into one, pure losses added and equal sampled steps counted together."""
    squares, pure, rho = 0.0, 0.0, 0.0
    steps: dict[SampledGaussian, int] = {}
    rest: list[Loss] = []
    for loss in losses:
        match loss:
            case Gdp(mu):
                squares += mu * mu
            case Pure(epsilon):
                pure += epsilon
            case SampledGaussian():
                one = replace(loss, steps=1)
                steps[one] = steps.get(one, 0) + loss.steps
            case Zcdp(more):
                rho += more
            case Unbounded():
                return (loss,)
            case _:
                rest.append(loss)
    order = lambda one: (one.group is not None, one.noise_multiplier, one.rate, one.replace, one.group)
    sampled = [replace(one, steps=steps[one]) for one in sorted(steps, key=order)]
    merged: list[Loss] = [Gdp(math.sqrt(squares)), Pure(pure), *sampled, *rest, Zcdp(rho)]
    return tuple(loss for loss in merged if loss not in (Gdp(0.0), Pure(0.0), Zcdp(0.0)))


def epsilon_of(losses: Iterable[Loss], delta: float) -> float:
    """Epsilon at ``delta`` of the composition; exact for Gaussians alone, an upper bound otherwise."""
    merged = compose(losses)
    match merged:
        case ():
            return 0.0
        case (Unbounded(),):
            return math.inf
        case (Gdp(mu),):
            return gaussian_epsilon(mu, delta)
        case (Zcdp(rho),):
            return concentrated_epsilon(rho, delta)
        case (Gdp(mu), Zcdp(rho)):
            return concentrated_epsilon(rho + mu * mu / 2, delta)
        case (*others, Zcdp(rho)):
            return _epsilon_by_pld(tuple(others), delta / 2) + concentrated_epsilon(rho, delta / 2)
    return _epsilon_by_pld(merged, delta)


def added_epsilon(losses: Iterable[Loss]) -> float:
    """The plain sum of pure epsilons (and of stated ones, at the sum of their deltas); infinite if one has none."""
    return sum(loss.epsilon if isinstance(loss, Stated) else _pure_epsilon(loss) for loss in losses)


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Epsilon of a rho-zCDP mechanism: the best of ``rho a + log((a - 1)/a) - log(a delta)/(a - 1)`` over orders a > 1.

    Canonne, Kamath and Steinke 2020, proposition 12: every order gives a valid bound, so the search need not be exact.
    """
    near = math.sqrt(math.log(1 / delta) / rho)
    orders = [1 + near * math.exp2(step / 64) for step in range(-192, 193)]
    return max(0.0, min(rho * a + math.log1p(-1 / a) - math.log(a * delta) / (a - 1) for a in orders))


def amplified_epsilon(losses: Iterable[Loss], delta: float, rate: float) -> float:
    """Epsilon if every slot takes part in the whole run with probability ``rate`` and is blank otherwise, secretly.

    With inner epsilon e at delta / rate: ``log(1 + rate (exp(e) - 1))`` (Balle, Barthe and Gaboardi 2018), attained by
    randomised response. Never ``rate * e``, which understates it.
    """
    inner = epsilon_of(losses, min(delta / rate, 1 - 1e-12)) if rate < 1 else epsilon_of(losses, delta)
    if rate == 1 or not math.isfinite(inner):
        return inner
    return math.log1p(rate * math.expm1(inner)) if inner < 600 else inner + math.log(rate)


@lru_cache(maxsize=1024)
def _epsilon_by_pld(losses: tuple[Loss, ...], delta: float) -> float:
    total = reduce(lambda one, other: one.compose(other), map(_distribution, losses))
    return min(float(total.get_epsilon_for_delta(delta)), sum(map(_pure_epsilon, losses)))


def _pure_epsilon(loss: Loss) -> float:
    """The epsilon that holds at delta = 0, infinite for Gaussians."""
    match loss:
        case Pure(epsilon) | LaplaceLoss(epsilon):
            return epsilon
        case Gdp(0.0):
            return 0.0
    return math.inf


@lru_cache(maxsize=256)
def _distribution(loss: Loss) -> Any:
    """The loss as a dp_accounting privacy loss distribution on the common grid."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    match loss:
        case Gdp(mu):
            return pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=GRID)
        case Pure() | Stated():
            parameters = common.DifferentialPrivacyParameters(loss.epsilon, getattr(loss, "delta", 0.0))
            return pld.from_privacy_parameters(parameters, value_discretization_interval=GRID)
        case LaplaceLoss(ratio):
            return pld.from_laplace_mechanism(1 / ratio, value_discretization_interval=GRID)
        case SampledGaussian(noise, rate, steps, swapped, None):
            relation = NeighboringRelation.REPLACE_ONE if swapped else NeighboringRelation.ADD_OR_REMOVE_ONE
            sampling: dict[str, Any] = {"sampling_prob": rate, "neighboring_relation": relation}
            step = pld.from_gaussian_mechanism(noise, **sampling, value_discretization_interval=GRID)
            return step.self_compose(steps)
        case SampledGaussian(noise, rate, steps, _, (a, b)):
            from graphveil.privacy.accounting.group_loss import group_distribution

            return group_distribution(noise, rate, (a, b), GRID).self_compose(steps)
    raise PrivacyError(f"no privacy loss distribution is known for {loss}")
