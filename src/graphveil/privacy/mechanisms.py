"""Mechanisms as inert descriptions: how much noise, on how many numbers, how often; and what that costs.

``loss(sensitivity)`` is the privacy loss for one record that can move the clean value by ``sensitivity``; a record that
is not read (sensitivity 0) pays nothing. ``apply`` perturbs a clean value. Both include the rounding of ``noise.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from graphveil.errors import PrivacyError
from graphveil.privacy.accounting.loss import (
    Gdp,
    LaplaceLoss,
    Loss,
    Pure,
    SampledGaussian,
    SampledGroup,
    Unbounded,
    Zcdp,
)
from graphveil.privacy.noise import GRID_BITS, Array, Noise, grid, rounding


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise PrivacyError(f"{what} must be positive and finite, got {value}")


def _positive_count(what: str, value: int) -> None:
    if not (isinstance(value, int) and value >= 1):
        raise PrivacyError(f"{what} must be a whole number of at least 1, got {value}")


@dataclass(frozen=True)
class Gaussian:
    """``value + N(0, sigma^2 I)``, value in ``dimension`` numbers with bounded Euclidean sensitivity.

    Lemma (Dong, Roth and Su 2022): (sensitivity / sigma)-GDP, exactly. Test: ``test_mechanisms.py``.
    """

    kind: ClassVar[str] = "gaussian"
    sigma: float
    dimension: int

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)
        _positive_count("dimension", self.dimension)

    @classmethod
    def for_mu(cls, sensitivity: float, mu: float, dimension: int) -> Gaussian:
        """The least noise with which a record of this sensitivity pays at most mu, rounding included."""
        room = mu - math.sqrt(dimension) * 2.0**-GRID_BITS  # grid(sigma) <= sigma 2^-40
        _positive("the share of the budget for a release", room)
        return cls(sensitivity / room * (1 + 1e-15), dimension)

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Gdp(0.0)
        return Gdp((sensitivity + rounding(self.sigma, self.dimension)) / self.sigma)

    def apply(self, value: Any, noise: Noise) -> Array:
        return noise.add(value, noise.gaussian(self.sigma, np.shape(value)), self.sigma)


@dataclass(frozen=True)
class Laplace:
    """``value + Laplace(scale)`` per coordinate, value with bounded L1 sensitivity: pure (sensitivity / scale)."""

    kind: ClassVar[str] = "laplace"
    scale: float
    dimension: int

    def __post_init__(self) -> None:
        _positive("scale", self.scale)
        _positive_count("dimension", self.dimension)

    @classmethod
    def for_epsilon(cls, sensitivity: float, epsilon: float, dimension: int) -> Laplace:
        """The least noise with which a record of this L1 sensitivity pays at most epsilon, rounding included."""
        room = epsilon - dimension * 2.0**-GRID_BITS  # grid(scale) <= scale 2^-40
        _positive("the share of the budget for a release", room)
        return cls(sensitivity / room * (1 + 1e-15), dimension)

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Pure(0.0)
        return LaplaceLoss((sensitivity + self.dimension * grid(self.scale)) / self.scale)

    def apply(self, value: Any, noise: Noise) -> Array:
        return noise.add(value, noise.laplace(self.scale, np.shape(value)), self.scale)


@dataclass(frozen=True)
class RandomizedResponse:
    """Each entry keeps its category with e^eps/(e^eps + c - 1), else becomes one of the others: pure eps per entry.

    ``sensitivity`` counts the entries one record can change (1 for a label).
    """

    kind: ClassVar[str] = "randomized-response"
    epsilon: float
    categories: int

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        if self.categories < 2:
            raise PrivacyError(f"randomised response needs at least two categories, got {self.categories}")

    def loss(self, sensitivity: float) -> Loss:
        return Pure(self.epsilon * sensitivity)

    def apply(self, value: Any, noise: Noise) -> Any:
        labels = np.asarray(value, dtype=np.int64)
        if labels.size and (labels.min() < 0 or labels.max() >= self.categories):
            raise PrivacyError(f"randomised response got a category outside 0..{self.categories - 1}")
        keep = math.exp(self.epsilon) / (math.exp(self.epsilon) + self.categories - 1)
        kept = noise.coins(keep, labels.size).reshape(labels.shape)
        other = (labels + 1 + noise.integers(self.categories - 1, labels.size).reshape(labels.shape)) % self.categories
        return np.where(kept, labels, other)


@dataclass(frozen=True)
class DpGradient:
    """``steps`` noisy sums of clipped gradients; a record owns one row of the batch.

    ``rate=1`` is a full batch every step: exact Gaussian composition, sensitivity ``clip`` (zero-out) or ``2 clip``
    (replace, ``replaces=True``) per step. ``rate<1`` draws true Poisson batches: the subsampled Gaussian, with the pair of
    its relation. ``loss`` takes the norm bound of the record's own row (``clip``, or 0 if it is never read). ``slack``
    bounds how far float64 arithmetic can move two neighbouring sums apart (``noise.summation_error``).
    ``group = (a, b)``: a record touches up to a rows of the sum on one side and b on the other (Lemma G, ``group_loss.py``);
    default (1, 0), or (1, 1) if it replaces.
    """

    kind: ClassVar[str] = "dp-gradient"
    sigma: float
    clip: float
    steps: int
    dimension: int
    rate: float = 1.0
    replaces: bool = False
    slack: float = 0.0
    group: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        _positive("sigma", self.sigma)
        _positive("clip", self.clip)
        if self.group is not None:
            object.__setattr__(self, "group", tuple(self.group))
            _positive_count("the group of rows", max(self.group))
        if not (math.isfinite(self.slack) and self.slack >= 0):
            raise PrivacyError(f"slack must be non-negative and finite, got {self.slack}")
        _positive_count("steps", self.steps)
        _positive_count("dimension", self.dimension)
        if not 0 < self.rate <= 1:
            raise PrivacyError(f"the sampling rate must lie in (0, 1], got {self.rate}")

    @classmethod
    def for_mu(
        cls, clip: float, mu: float, steps: int, dimension: int, replaces: bool = False, slack: float = 0.0
    ) -> DpGradient:
        """Full-batch steps whose total cost is at most mu."""
        _positive_count("steps", steps)
        step = Gaussian.for_mu(clip * (2 if replaces else 1) + slack, mu / math.sqrt(steps), dimension)
        return cls(step.sigma * (1 + 1e-15), clip, steps, dimension, replaces=replaces, slack=slack)

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows of a sum one record touches on either side."""
        return self.group or ((1, 1) if self.replaces else (1, 0))

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Gdp(0.0)
        slack = rounding(self.sigma, self.dimension) + self.slack
        if self.rate == 1:
            distance = sensitivity * sum(self.rows)
            return Gdp(math.sqrt(self.steps) * (distance + slack) / self.sigma)
        if self.group is not None:
            return SampledGroup(self.sigma / (sensitivity + slack), self.rate, self.steps, self.group)
        return SampledGaussian(self.sigma / (sensitivity + slack), self.rate, self.steps, self.replaces)

    def apply(self, value: Any, noise: Noise) -> Array:
        return noise.add(value, noise.gaussian(self.sigma, np.shape(value)), self.sigma)


@dataclass(frozen=True)
class EdgeFlips:
    """One coin per pair of slots: the pair changes between friends and strangers with probability 1/(e^eps + 1).

    Value and result are sorted pair numbers (``graph`` codes of the pairs that are joined), out of ``pairs`` possible ones.
    Flips are drawn by their gaps, so the cost is the number of flips, never n x n. Pure eps per pair that can differ;
    ``sensitivity`` counts those pairs. Tests: ``tests/methods/test_edge_rand.py``.
    """

    kind: ClassVar[str] = "edge-flips"
    epsilon: float
    pairs: int

    def __post_init__(self) -> None:
        _positive("epsilon", self.epsilon)
        _positive_count("pairs", self.pairs)

    @property
    def flip_probability(self) -> float:
        return 1 / (math.exp(self.epsilon) + 1) if self.epsilon < 700 else math.exp(-self.epsilon)

    def loss(self, sensitivity: float) -> Loss:
        return Pure(self.epsilon * sensitivity)

    def apply(self, value: Any, noise: Noise) -> Any:
        joined = np.asarray(value, dtype=np.int64)
        if joined.size and (joined[0] < 0 or joined[-1] >= self.pairs or np.any(np.diff(joined) <= 0)):
            raise PrivacyError(f"edge flips need increasing pair numbers below {self.pairs}")
        return np.setxor1d(joined, noise.positions(self.flip_probability, self.pairs), assume_unique=True)


@dataclass(frozen=True)
class GumbelTop:
    """In each of ``rows`` rows the ``picks`` columns of the largest values after Gumbel(scale) noise on every entry.

    The same law as ``picks`` successive choices by the exponential mechanism. One record moves entries by at most
    ``sensitivity``, in all rows; each choice then has range 2 sensitivity/scale and costs rho = (sensitivity/scale)^2/2
    (Durfee and Rogers 2019; Cesar and Rogers 2021). Tests: ``tests/methods/test_dpar.py``.
    """

    kind: ClassVar[str] = "gumbel-top"
    scale: float
    picks: int
    rows: int
    columns: int

    def __post_init__(self) -> None:
        _positive("scale", self.scale)
        for what in ("picks", "rows", "columns"):
            _positive_count(what, getattr(self, what))

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Gdp(0.0)
        return Zcdp(self.rows * self.picks * (sensitivity / self.scale) ** 2 / 2)

    def apply(self, value: Any, noise: Noise) -> Any:
        scores = np.asarray(value, dtype=np.float64)
        if scores.shape != (self.rows, self.columns):
            raise PrivacyError(f"the scores have shape {scores.shape}, the plan says {(self.rows, self.columns)}")
        picked = np.empty((self.rows, self.picks), dtype=np.int64)
        for number, row in enumerate(scores):
            noisy = row / self.scale + noise.gumbel(self.columns)
            best = np.argpartition(-noisy, self.picks - 1)[: self.picks]
            picked[number] = best[np.argsort(-noisy[best])]
        return picked


@dataclass(frozen=True)
class Exact:
    """No noise at all: only for ``epsilon = inf``, and never the result of a scale that came out as zero."""

    kind: ClassVar[str] = "exact"
    steps: int = 1

    def loss(self, sensitivity: float) -> Loss:
        return Gdp(0.0) if sensitivity == 0 else Unbounded()

    def apply(self, value: Any, noise: Noise) -> Any:
        return value


Mechanism = Gaussian | Laplace | RandomizedResponse | DpGradient | EdgeFlips | GumbelTop | Exact
KINDS: dict[str, type[Mechanism]] = {
    cls.kind: cls for cls in (Gaussian, Laplace, RandomizedResponse, DpGradient, EdgeFlips, GumbelTop, Exact)
}


def words(mechanism: Any) -> str:
    match mechanism:
        case Gaussian(sigma, dimension):
            return f"Gaussian noise {sigma:.4g} on {dimension} numbers"
        case Laplace(scale, dimension):
            return f"Laplace noise {scale:.4g} on {dimension} numbers"
        case DpGradient(sigma, clip, steps, dimension, rate):
            batch = "full batches" if rate == 1 else f"Poisson batches of rate {rate:.4g}"
            noise = f"{steps} gradient steps, clip {clip:g}, noise {sigma:.4g} on {dimension} numbers, {batch}"
            return noise + (f", groups of {mechanism.group} rows" if mechanism.group else "")
        case RandomizedResponse(epsilon, categories):
            return f"randomised response, epsilon {epsilon:.4g}, {categories} categories"
        case EdgeFlips(epsilon, pairs):
            return f"one coin for each of {pairs} pairs, epsilon {epsilon:.4g}"
        case GumbelTop(scale, picks, rows, columns):
            return f"{picks} picks in each of {rows} rows of {columns}, Gumbel noise {scale:.4g}"
    return f"NO NOISE ({mechanism.steps} steps)"


for _cls in (Gaussian, Laplace, RandomizedResponse, DpGradient, EdgeFlips, GumbelTop, Exact):
    _cls.words = words  # type: ignore


def mechanism_to_json(mechanism: Mechanism) -> dict[str, Any]:
    plain = (int, float, str, bool, tuple, type(None))
    shown = {field.name: getattr(mechanism, field.name) for field in fields(mechanism)}
    return {"kind": mechanism.kind, **{name: value for name, value in shown.items() if isinstance(value, plain)}}


def mechanism_from_json(entry: dict[str, Any]) -> Mechanism:
    cls = KINDS[entry["kind"]]
    return cls(**{field.name: entry[field.name] for field in fields(cls) if field.name in entry})
