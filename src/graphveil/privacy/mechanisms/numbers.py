"""Noise on numbers: Gaussian and Laplace tables, sums of clipped gradients, and no noise at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphveil.errors import PrivacyError
from graphveil.privacy.accounting.loss import Gdp, LaplaceLoss, Loss, Pure, SampledGaussian, Unbounded
from graphveil.privacy.laws import LaplaceShift, Law, SampledShift, Shift, Visible
from graphveil.privacy.mechanisms.base import Mechanism, Noisy, NoisySums, change, euclidean, least_noise
from graphveil.privacy.noise import Added, Array, Noise, gaussian_overhead, laplace_overhead


class _Normal(Noisy):
    """Noise N(0, sigma^2) on each of ``dimension`` numbers; distances are Euclidean."""

    sigma: float
    dimension: int

    def apply(self, value: Any, noise: Noise) -> Array:
        return noise.add_gaussian(value, self.sigma)

    @property
    def added(self) -> Added:
        return Added.gaussian(self.sigma)

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return euclidean(before, after)

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        """Of one release whose clean value is known; what Poisson batches draw is in :meth:`DpGradient.row_worlds`."""
        distance = euclidean(before, after)
        return [Shift(self.sigma, distance)] if distance else []


@dataclass(frozen=True)
class Gaussian(_Normal):
    """``value + N(0, sigma^2 I)``, value in ``dimension`` numbers with bounded Euclidean sensitivity.

    Lemma (Dong, Roth and Su 2022): (sensitivity / sigma)-GDP, exactly. Test: ``test_mechanisms.py``.
    """

    kind: ClassVar[str] = "gaussian"
    sigma: float
    dimension: int

    @classmethod
    def for_mu(cls, sensitivity: float, mu: float, dimension: int) -> Gaussian:
        """The least noise with which a record of this sensitivity pays at most mu, rounding included."""
        return cls(least_noise(sensitivity, mu - gaussian_overhead(dimension)), dimension)

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Gdp(0.0)
        return Gdp(sensitivity / self.sigma + gaussian_overhead(self.dimension))

    def words(self) -> str:
        return f"Gaussian noise {self.sigma:.4g} on {self.dimension} numbers"

    def worst_pair(self, bound: float) -> list[Law]:
        return [Shift(self.sigma, bound)]


@dataclass(frozen=True)
class Laplace(Noisy):
    """``value + Laplace(scale)`` per coordinate, value with bounded L1 sensitivity: pure (sensitivity / scale)."""

    kind: ClassVar[str] = "laplace"
    scale: float
    dimension: int

    @classmethod
    def for_epsilon(cls, sensitivity: float, epsilon: float, dimension: int) -> Laplace:
        """The least noise with which a record of this L1 sensitivity pays at most epsilon, rounding included."""
        return cls(least_noise(sensitivity, epsilon - laplace_overhead(dimension)), dimension)

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Pure(0.0)
        return LaplaceLoss(sensitivity / self.scale + laplace_overhead(self.dimension))

    def apply(self, value: Any, noise: Noise) -> Array:
        return noise.add_laplace(value, self.scale)

    def words(self) -> str:
        return f"Laplace noise {self.scale:.4g} on {self.dimension} numbers"

    @property
    def added(self) -> Added:
        return Added.laplace(self.scale)

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return float(np.abs(change(before, after)).sum())

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        moved = change(before, after)
        return [LaplaceShift(self.scale, moved[moved != 0])] if moved.any() else []

    def worst_pair(self, bound: float) -> list[Law]:
        return [LaplaceShift(self.scale, np.array([bound]))]


@dataclass(frozen=True)
class DpGradient(_Normal):
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
        super().__post_init__()
        if self.group is not None:
            object.__setattr__(self, "group", tuple(self.group))
            if max(self.group) < 1 or min(self.group) < 0 or len(self.group) != 2:
                raise PrivacyError(
                    f"the group of rows must be at least 1 on one side and 0 on the other, got {self.group}"
                )
        if self.rate > 1:
            raise PrivacyError(f"the sampling rate must lie in (0, 1], got {self.rate}")

    @classmethod
    def for_mu(
        cls, clip: float, mu: float, steps: int, dimension: int, replaces: bool = False, slack: float = 0.0
    ) -> DpGradient:
        """Full-batch steps whose total cost is at most mu."""
        step = Gaussian.for_mu(clip * (2 if replaces else 1) + slack, mu / math.sqrt(max(steps, 1)), dimension)
        return cls(step.sigma * (1 + 1e-15), clip, steps, dimension, replaces=replaces, slack=slack)

    @property
    def rows(self) -> tuple[int, int]:
        """How many rows of a sum one record touches on either side."""
        return self.group or ((1, 1) if self.replaces else (1, 0))

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Gdp(0.0)
        slack = gaussian_overhead(self.dimension) * self.sigma + self.slack
        if self.rate == 1:
            distance = sensitivity * sum(self.rows)
            return Gdp(math.sqrt(self.steps) * (distance + slack) / self.sigma)
        return SampledGaussian(self.sigma / (sensitivity + slack), self.rate, self.steps, self.replaces, self.group)

    def words(self) -> str:
        batch = "full batches" if self.rate == 1 else f"Poisson batches of rate {self.rate:.4g}"
        noise = f"clip {self.clip:g}, noise {self.sigma:.4g} on {self.dimension} numbers"
        rows = f", groups of {self.group} rows" if self.group else ""
        return f"{self.steps} gradient steps, {noise}, {batch}{rows}"

    @property
    def sums(self) -> NoisySums:
        return NoisySums(self.steps, self.clip, self.rate)

    @property
    def poisson(self) -> DpGradient | None:
        return self if self.rate < 1 else None

    def allowance(self, bound: float) -> float:
        return bound * sum(self.rows)

    def row_worlds(self, before: Array, after: Array) -> list[Law]:
        """Of all steps on Poisson batches, from (rows, steps, numbers) tables of the rows that differ.

        One mixture per step, along the direction in which the two sums differ.
        """
        direction = (before - after).sum(axis=0)
        flat = ~direction.any(axis=1)
        direction[flat] = (before - after)[0][flat]
        direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        along = [np.einsum("jtd,td->tj", rows, direction) for rows in (before, after)]
        pairs = [(here, there) for here, there in zip(*along, strict=True) if np.any(here != there)]
        return [SampledShift(self.sigma, self.rate, here, there) for here, there in pairs]

    def worst_pair(self, bound: float) -> list[Law]:
        if self.rate == 1:
            return [Shift(self.sigma, self.allowance(bound) * math.sqrt(self.steps))]
        a, b = self.rows
        before = np.concatenate([np.full(a, bound), np.zeros(b)])
        after = np.concatenate([np.zeros(a), np.full(b, -bound)])
        return [SampledShift(self.sigma, self.rate, before, after)] * self.steps


@dataclass(frozen=True)
class Exact(Mechanism):
    """No noise at all: only for ``epsilon = inf``, and never the result of a scale that came out as zero."""

    kind: ClassVar[str] = "exact"
    random: ClassVar[bool] = False
    steps: int = 1

    def loss(self, sensitivity: float) -> Loss:
        return Gdp(0.0) if sensitivity == 0 else Unbounded()

    def apply(self, value: Any, noise: Noise) -> Any:
        return value

    def words(self) -> str:
        return f"NO NOISE ({self.steps} steps)"

    @property
    def sums(self) -> NoisySums:
        return NoisySums(self.steps)

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return euclidean(before, after)

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        return [] if np.array_equal(before, after) else [Visible()]
