"""Mechanisms as inert descriptions: how much noise, on how many numbers, how often; what that costs, and how to check it.

Everything that plans, curators, certificates and audits want to know of a mechanism they ask the mechanism itself. A new one is a
frozen dataclass with a ``kind`` of its own; defining it makes it known to saved ledgers (``mechanism_from_json``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphveil.errors import InputError, PrivacyError
from graphveil.privacy.accounting.loss import Gdp, LaplaceLoss, Loss, Pure, SampledGaussian, Unbounded, Zcdp
from graphveil.privacy.laws import Flips, LaplaceShift, Law, Picks, Responses, SampledShift, Shift, Visible
from graphveil.privacy.noise import Added, Array, Noise, gaussian_overhead, gumbel_overhead, laplace_overhead
from graphveil.privacy.response import BitFlips, CategoryResponse

ADDED = {"added": "later"}  # metadata of a field that earlier versions did not write
MECHANISMS: dict[str, type[Mechanism]] = {}


@dataclass(frozen=True)
class NoisySums:
    """A session of noisy sums: how many, the norm to which rows are clipped, and the rate at which they take part."""

    steps: int
    clip: float | None = None
    rate: float = 1.0


class Mechanism(ABC):
    """How one release perturbs its clean value.

    ``random``: whether there is noise at all. ``shaped``: whether the shape of the clean value is public (that of a set is not).
    """

    kind: ClassVar[str]
    random: ClassVar[bool] = True
    shaped: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" not in vars(cls):
            return
        if MECHANISMS.setdefault(cls.kind, cls).__qualname__ != cls.__qualname__:
            raise InputError(f"there is already a mechanism of the kind {cls.kind!r}: give yours another one")
        MECHANISMS[cls.kind] = cls

    @abstractmethod
    def loss(self, sensitivity: float) -> Loss:
        """The loss of a record that can move the clean value by ``sensitivity``, rounding included; none if it is not read."""

    @abstractmethod
    def apply(self, value: Any, noise: Noise) -> Any:
        """The clean value, perturbed."""

    @abstractmethod
    def words(self) -> str:
        """The noise, in words for the certificate."""

    @property
    def unbounded(self) -> str:
        """Why there is no finite epsilon, in words; empty if there is one."""
        return ""

    @property
    def edge_change(self) -> str:
        """What happens to the edge whose cost a local certificate states; empty where there is none."""
        return ""

    @property
    def added(self) -> Added | None:
        """The noise added number by number, if that is what this mechanism does."""
        return None

    @property
    def size(self) -> int | None:
        """How many numbers the clean value must have, where the plan says so."""
        return getattr(self, "dimension", None)

    @property
    def sums(self) -> NoisySums | None:
        """The session of gradient sums that this mechanism is for, if it is for one."""
        return None

    @property
    def poisson(self) -> DpGradient | None:
        """The gradient steps on Poisson batches that this is, if it is."""
        return None

    def allowance(self, bound: float) -> float:
        """How far the clean value may move in one step for a record whose declared sensitivity is ``bound``."""
        return bound

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        """How far apart two clean values are, in the unit of the sensitivity."""
        raise PrivacyError(f"{self.kind}: no distance is known between two clean values")

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        """What the release looks like around these two clean values; nothing if it is the same for both."""
        raise PrivacyError(f"{self.kind}: no laws are known for two clean values")

    def worst_pair(self, bound: float) -> list[Law]:
        """The dominating pair of laws for this positive sensitivity; nothing where none is known."""
        return []


def _change(before: NDArray[Any], after: NDArray[Any]) -> Array:
    """The first world's clean value minus the second's."""
    return np.asarray(np.asarray(before, dtype=np.float64) - after)


def _euclidean(before: NDArray[Any], after: NDArray[Any]) -> float:
    return float(np.linalg.norm(_change(before, after)))


class _Noisy(Mechanism):
    """A mechanism that perturbs: the numbers that describe it are positive and finite, its counts at least 1.

    A number whose default is 0 may be 0.
    """

    def __post_init__(self) -> None:
        described: Any = self
        for field in fields(described):
            value = getattr(self, field.name)
            if field.type == "int" and not (isinstance(value, int) and value >= 1):
                raise PrivacyError(f"{field.name} must be a whole number of at least 1, got {value}")
            if field.type == "float" and not (math.isfinite(value) and (value > 0 or value == field.default == 0)):
                raise PrivacyError(f"{field.name} must be positive and finite, got {value}")


class _Normal(_Noisy):
    """Noise N(0, sigma^2) on each of ``dimension`` numbers; distances are Euclidean."""

    sigma: float
    dimension: int

    def apply(self, value: Any, noise: Noise) -> Array:
        return noise.add_gaussian(value, self.sigma)

    @property
    def added(self) -> Added:
        return Added.gaussian(self.sigma)

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return _euclidean(before, after)

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        """Of one release whose clean value is known; what Poisson batches draw is in :meth:`DpGradient.row_worlds`."""
        distance = _euclidean(before, after)
        return [Shift(self.sigma, distance)] if distance else []


def _least_noise(sensitivity: float, room: float) -> float:
    """The scale at which this sensitivity costs ``room``, from which the overhead of its numbers has been taken."""
    if not (math.isfinite(room) and room > 0):
        raise PrivacyError(f"the share of the budget for a release must be positive and finite, got {room}")
    return sensitivity / room * (1 + 1e-12)  # more than float64 can lose on the way back


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
        return cls(_least_noise(sensitivity, mu - gaussian_overhead(dimension)), dimension)

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Gdp(0.0)
        return Gdp(sensitivity / self.sigma + gaussian_overhead(self.dimension))

    def words(self) -> str:
        return f"Gaussian noise {self.sigma:.4g} on {self.dimension} numbers"

    def worst_pair(self, bound: float) -> list[Law]:
        return [Shift(self.sigma, bound)]


@dataclass(frozen=True)
class Laplace(_Noisy):
    """``value + Laplace(scale)`` per coordinate, value with bounded L1 sensitivity: pure (sensitivity / scale)."""

    kind: ClassVar[str] = "laplace"
    scale: float
    dimension: int

    @classmethod
    def for_epsilon(cls, sensitivity: float, epsilon: float, dimension: int) -> Laplace:
        """The least noise with which a record of this L1 sensitivity pays at most epsilon, rounding included."""
        return cls(_least_noise(sensitivity, epsilon - laplace_overhead(dimension)), dimension)

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
        return float(np.abs(_change(before, after)).sum())

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        change = _change(before, after)
        return [LaplaceShift(self.scale, change[change != 0])] if change.any() else []

    def worst_pair(self, bound: float) -> list[Law]:
        return [LaplaceShift(self.scale, np.array([bound]))]


@dataclass(frozen=True)
class RandomizedResponse(_Noisy):
    """Each entry keeps its category with e^eps/(e^eps + c - 1), else becomes one of the others: pure eps per entry.

    ``sensitivity`` counts the entries one record can change (1 for a label). The law: ``response.py``.
    """

    kind: ClassVar[str] = "randomized-response"
    epsilon: float
    categories: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.categories < 2:
            raise PrivacyError(f"randomised response needs at least two categories, got {self.categories}")

    def loss(self, sensitivity: float) -> Loss:
        return Pure(self.epsilon * sensitivity)

    def apply(self, value: Any, noise: Noise) -> Any:
        labels = np.asarray(value, dtype=np.int64)
        if labels.size and (labels.min() < 0 or labels.max() >= self.categories):
            raise PrivacyError(f"randomised response got a category outside 0..{self.categories - 1}")
        return self.response.draw(labels, noise)

    @property
    def response(self) -> CategoryResponse:
        return CategoryResponse(self.epsilon, self.categories)

    def words(self) -> str:
        return f"randomised response, epsilon {self.epsilon:.4g}, {self.categories} categories"

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return float(np.count_nonzero(before != after))

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        differs = before != after
        return [Responses(self.response, before[differs], after[differs])] if differs.any() else []

    def worst_pair(self, bound: float) -> list[Law]:
        changed = round(bound)
        return [Responses(self.response, np.zeros(changed, dtype=np.int64), np.ones(changed, dtype=np.int64))]


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
class EdgeFlips(_Noisy):
    """One coin per pair of slots: the pair changes between friends and strangers with probability 1/(e^eps + 1).

    Value and result are sorted pair numbers (``graph`` codes of the pairs that are joined), out of ``pairs`` possible ones.
    Flips are drawn by their gaps (``response.py``), so the cost is the number of flips, never n x n. Pure eps per pair that can
    differ; ``sensitivity`` counts those pairs. Tests: ``tests/methods/test_edge_rand.py``.
    """

    kind: ClassVar[str] = "edge-flips"
    shaped: ClassVar[bool] = False
    epsilon: float
    pairs: int

    @property
    def flips(self) -> BitFlips:
        return BitFlips(self.epsilon)

    def loss(self, sensitivity: float) -> Loss:
        return Pure(self.epsilon * sensitivity)

    def apply(self, value: Any, noise: Noise) -> Any:
        joined = np.asarray(value, dtype=np.int64)
        if joined.size and (joined[0] < 0 or joined[-1] >= self.pairs or np.any(np.diff(joined) <= 0)):
            raise PrivacyError(f"edge flips need increasing pair numbers below {self.pairs}")
        return self.flips.draw(joined, self.pairs, noise)

    def words(self) -> str:
        return f"one coin for each of {self.pairs} pairs, epsilon {self.epsilon:.4g}"

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return float(np.setxor1d(before, after).size)

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        changed = np.setxor1d(before, after)
        return [Flips(self.flips, np.isin(changed, before))] if changed.size else []

    def worst_pair(self, bound: float) -> list[Law]:
        return [Flips(self.flips, np.ones(round(bound), dtype=bool))]


@dataclass(frozen=True)
class GumbelTop(_Noisy):
    """In each of ``rows`` rows the ``picks`` columns of the largest values after Gumbel(scale) noise on every entry.

    The same law as ``picks`` successive choices by the exponential mechanism. One record moves entries by at most
    ``sensitivity``, in all rows; each choice then has range 2 sensitivity/scale and costs rho = (sensitivity/scale)^2/2
    (Durfee and Rogers 2019; Cesar and Rogers 2021). Every choice is drawn within a relative ``noise.ERROR`` of its ideal chance:
    that widens the range of log-ratios by four of them (``gumbel_overhead``). Tests: ``tests/methods/test_dpar.py``.
    """

    kind: ClassVar[str] = "gumbel-top"
    scale: float
    picks: int
    rows: int
    columns: int

    @classmethod
    def for_mu(cls, sensitivity: float, mu: float, picks: int, rows: int, columns: int) -> GumbelTop:
        """The least noise with which a record of this sensitivity pays at most rho = mu^2/2 for all choices."""
        each = mu / math.sqrt(max(rows * picks, 1)) - gumbel_overhead()
        return cls(_least_noise(sensitivity, each), picks, rows, columns)

    def loss(self, sensitivity: float) -> Loss:
        if sensitivity == 0:
            return Zcdp(0.0)
        return Zcdp(self.rows * self.picks * (sensitivity / self.scale + gumbel_overhead()) ** 2 / 2)

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

    def words(self) -> str:
        return f"{self.picks} picks in each of {self.rows} rows of {self.columns}, Gumbel noise {self.scale:.4g}"

    def distance(self, before: NDArray[Any], after: NDArray[Any]) -> float:
        return float(np.abs(_change(before, after)).max())

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        moved = np.flatnonzero(_change(before, after).any(axis=1))
        return [Picks(self.scale, self.picks, before[row], after[row]) for row in moved]


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
        return _euclidean(before, after)

    def worlds(self, before: NDArray[Any], after: NDArray[Any]) -> list[Law]:
        return [] if np.array_equal(before, after) else [Visible()]


def mechanism_to_json(mechanism: Any) -> dict[str, Any]:
    """The public numbers of a mechanism; tables that a published one may hold are left out.

    A field of the metadata ``ADDED`` came later: where it has its default it is left out, as in files written before.
    """
    plain = (int, float, str, bool, tuple, type(None))
    told = ((field, getattr(mechanism, field.name)) for field in fields(mechanism))
    shown = {field.name: value for field, value in told if field.metadata != ADDED or value != field.default}
    return {"kind": mechanism.kind, **{name: value for name, value in shown.items() if isinstance(value, plain)}}


def mechanism_from_json(entry: dict[str, Any]) -> Mechanism:
    """The mechanism that :func:`mechanism_to_json` has described, of any kind that is defined by now."""
    kind = MECHANISMS.get(entry["kind"])
    if kind is None:
        raise InputError(f"unknown mechanism {entry['kind']!r}; known: {', '.join(MECHANISMS)}")
    chosen: Any = kind
    return kind(**{field.name: entry[field.name] for field in fields(chosen) if field.name in entry})
