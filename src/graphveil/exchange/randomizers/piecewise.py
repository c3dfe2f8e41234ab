"""The piecewise mechanism (Wang et al. 2019) on m of d attributes, on a finite grid; and how LGA-PGNN reads it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers import checks
from graphveil.exchange.randomizers.base import SampledRows, table
from graphveil.privacy.noise import LARGEST_LOCAL_EPSILON, Array, Noise
from graphveil.privacy.response import coin_below

BLOCK = 1 << 20  # numbers drawn at a time where all attributes are


class Rest(StrEnum):
    """What happens to the attributes that are not chosen."""

    ZERO = "zero"  # sound
    RAW = "raw"  # the reading that fits LGA-PGNN's experiments: they are sent in the clear


class PerDimension(StrEnum):
    """The budget of each chosen attribute."""

    SPLIT = "eps_over_m"
    WHOLE = "eps"  # as LGA-PGNN's Algorithm 1 is printed


@dataclass(frozen=True)
class PiecewiseLaw:
    """One number x in [-1, 1] becomes one of 2 ``half`` grid points -half+1/2, ..., half-1/2 (0 is never one of them).

    A window of W points around ``mid = x M`` (M = half - W/2, rounded at random so that its mean is exact) is uniform with
    probability p, the other N - W points with 1 - p, where p/(1-p) (N-W)/W <= e^epsilon. Lemma: every point has one of two
    probabilities whose ratio is at most e^epsilon, whatever x: pure epsilon on the grid that is really used, no rounding
    left to argue about. E[j | x] = gain M x with gain = p - (1-p) W/(N-W), so j/(gain M) is unbiased. As half grows this is
    the piecewise mechanism, W/N = 1/(e^(epsilon/2)+1). Tests: ``tests/exchange/test_piecewise.py``.
    """

    epsilon: float
    half: int = 1 << 20

    @cached_property
    def window(self) -> int:
        return max(2, 2 * round(self.half / (math.exp(self.epsilon / 2) + 1)))

    @cached_property
    def inside(self) -> float:
        odds = math.exp(self.epsilon) * self.window / (2 * self.half - self.window)
        return coin_below(odds / (1 + odds))

    @property
    def reach(self) -> int:
        """M: the largest |mid|."""
        return self.half - self.window // 2

    @property
    def scale(self) -> float:
        """gain M: grid points per unit of x."""
        outer = 2 * self.half - self.window
        return (self.inside - (1 - self.inside) * self.window / outer) * self.reach

    @property
    def exact_epsilon(self) -> float:
        return math.log(self.inside / (1 - self.inside) * (2 * self.half - self.window) / self.window)

    def draw(self, x: Array, rng: Noise) -> Array:
        """Unbiased noisy values of numbers in [-1, 1]."""
        place = np.clip(x, -1, 1).ravel() * self.reach
        low = np.floor(place)
        mid = (low + (rng.uniform(place.size) < place - low)).astype(np.int64)
        first = mid - self.window // 2 + self.half  # number of the first point of the window, from 0
        inner = first + rng.integers(self.window, place.size)
        outer = rng.integers(2 * self.half - self.window, place.size)
        outer += np.where(outer >= first, self.window, 0)
        number = np.where(rng.coins(self.inside, place.size), inner, outer)
        return ((number - self.half + 0.5) / self.scale).reshape(x.shape)

    def possible(self, values: Array) -> np.ndarray:
        """Whether each of these is a grid point."""
        number = values * self.scale + self.half - 0.5
        return (np.abs(number - np.rint(number)) < 1e-6) & (number > -0.5) & (number < 2 * self.half - 0.5)

    def log_mass(self, x: Array, values: Array) -> Array:
        """Log-probability of each value for each x."""
        point = np.asarray(values, dtype=np.float64) * self.scale
        place = np.clip(np.asarray(x, dtype=np.float64), -1, 1) * self.reach
        low = np.floor(place)
        near = self.inside / self.window
        far = (1 - self.inside) / (2 * self.half - self.window)
        here, next_one = (np.where(np.abs(point - mid) < self.window / 2, near, far) for mid in (low, low + 1))
        return np.asarray(np.log((1 - (place - low)) * here + (place - low) * next_one))

    def second_moment(self, x: Array) -> Array:
        """E[value^2 | x], exactly."""
        place = np.clip(np.asarray(x, dtype=np.float64), -1, 1) * self.reach
        share = place - np.floor(place)
        mid = place**2 + share * (1 - share)
        points, window = 2 * self.half, self.window
        inner = mid + (window**2 - 1) / 12
        outer = (points * (points**2 - 1) / 12 - window * inner) / (points - window)
        return (self.inside * inner + (1 - self.inside) * outer) / self.scale**2


@dataclass(frozen=True)
class Piecewise(SampledRows):
    """m of d attributes by :class:`PiecewiseLaw` with epsilon/m each, the others 0; estimate (d/m) value.

    ``sampled``: a number, ``"argmin"`` (least expected variance for a public ``second_moment`` of the scaled attributes; 1 is
    the worst case), ``"paper"``, m* = max(1, min(d, floor(epsilon/2.42))), or ``"all"``, m = d. Published readings:
    ``rest=raw`` sends the other d - m attributes in the clear (epsilon infinite, delta 1 - m/d: gap L3);
    ``per_dimension=eps`` gives every attribute the whole budget (m epsilon: gap L2). Lemma and test as for ``MultiBit``:
    ``test_piecewise.py``.
    """

    kind: ClassVar[str] = "piecewise"
    lower: float = -1.0
    upper: float = 1.0
    sampled: int | str = "argmin"
    second_moment: float = 1.0
    rest: Rest = Rest.ZERO
    per_dimension: PerDimension = PerDimension.SPLIT
    half: int = 1 << 20

    def __post_init__(self) -> None:
        super().__post_init__()
        choices: tuple[tuple[str, type[StrEnum]], ...] = (("rest", Rest), ("per_dimension", PerDimension))
        for name, kind in choices:
            given = getattr(self, name)
            if given not in list(kind):
                raise InputError(f"{name} takes {' or '.join(kind)}, got {given!r}")
            object.__setattr__(self, name, kind(given))
        if not (isinstance(self.sampled, int) and self.sampled >= 1) and self.sampled not in ("argmin", "paper", "all"):
            raise InputError(f"sampled takes a number of at least 1, argmin, paper or all, got {self.sampled!r}")
        if not self.law.reach >= 1:
            raise InputError(f"half={self.half} grid points are too few for epsilon {self.law.epsilon:g}")

    @cached_property
    def m(self) -> int:
        if isinstance(self.sampled, int):
            return min(self.sampled, self.width)
        if self.sampled == "all":
            return self.width
        if self.sampled == "paper":
            return max(1, min(self.width, math.floor(self.budget / 2.42)))
        candidates = range(1, min(self.width, math.ceil(self.budget / 1.2) + 1) + 1)
        return min(candidates, key=lambda m: expected_variance(self.budget, self.width, m, self.second_moment))

    @cached_property
    def law(self) -> PiecewiseLaw:
        return PiecewiseLaw(self.budget / (self.m if self.per_dimension is PerDimension.SPLIT else 1), self.half)

    @property
    def epsilon(self) -> float:
        if self.rest is Rest.RAW and self.m < self.width:
            return math.inf
        return self.m * self.law.exact_epsilon

    @property
    def unbounded(self) -> str:
        """Why there is no epsilon under ``rest=raw``: an attribute that is not chosen tells the two records apart."""
        if math.isfinite(self.epsilon):
            return ""
        return (
            f"{self.width - self.m} of {self.width} attributes, chosen at random for every vertex, are sent as they are; "
            f"any delta is at least {self.least_delta:.4g}"
        )

    @property
    def least_delta(self) -> float:
        """Under ``rest=raw`` the probability that one given attribute is sent in the clear: a lower bound on any delta."""
        return 1 - self.m / self.width if self.rest is Rest.RAW else 0.0

    def randomize(self, records: Any, broadcast: Any, rng: Noise) -> Any:
        """Dense where all attributes are drawn, some rows at a time; else as :class:`SampledRows` does."""
        if self.m < self.width:
            return super().randomize(records, broadcast, rng)
        rows, one = table(records, self.width)
        reports, step = np.empty(rows.shape), max(1, BLOCK // self.width)
        for start in range(0, rows.shape[0], step):
            here = rows[start : start + step]
            reports[start : start + step] = self.drawn(here.toarray() if sp.issparse(here) else here, rng)
        return reports[0] if one else reports

    def drawn(self, values: Array, rng: Noise) -> Array:
        """On the scale [-1, 1]."""
        return self.law.draw(self.scaled(values), rng)

    def possible(self, values: Array) -> np.ndarray:
        return self.law.possible(values)

    def check_report(self, reports: Any, slots: int) -> checks.Defects:
        """Under ``rest=raw`` at most m of the numbers lie outside -1..1, where attributes are sent as they are."""
        if self.rest is Rest.ZERO:
            yield from super().check_report(reports, slots)
            return
        yield from checks.numbers(reports, self.width)

        def never_drawn(values: Array) -> np.ndarray:
            return np.asarray((np.abs(values) > 1) & ~self.possible(values))

        yield checks.counted(reports, self.width, never_drawn) > 0, "a number that is never drawn"
        far = checks.counted(reports, self.width, lambda values: np.abs(values) > 1)
        yield far > self.m, f"more than {self.m} noisy numbers"

    def log_masses(self, values: Array, reports: Array) -> Array:
        return self.law.log_mass(self.scaled(values), reports)

    def unchosen(self, rows: Any) -> Any:
        if self.rest is Rest.ZERO:
            return 0.0
        return self.scaled(rows.toarray() if sp.issparse(rows) else rows)

    def estimate(self, reports: Any, broadcast: Any = None) -> Array:
        dense = reports.toarray() if sp.issparse(reports) else np.asarray(reports, dtype=np.float64)
        scale = 1.0 if self.rest is Rest.RAW else self.width / self.m
        return np.asarray(self.middle + self.reach * scale * dense)

    def variance(self, record: Any = None) -> Array:
        """Of each coordinate of the estimate: (d/m) E[value^2] - x^2 in units of half the range (``rest=zero``)."""
        x = self.scaled(np.asarray(record, dtype=np.float64))
        second = self.law.second_moment(x)
        share = self.m / self.width
        spread = share * (second - x**2) if self.rest is Rest.RAW else second / share - x**2
        return self.reach**2 * spread

    def scaled(self, values: Array) -> Array:
        """The range as -1..1."""
        return np.clip((values - self.middle) / self.reach, -1, 1)


def expected_variance(epsilon: float, width: int, m: int, second_moment: float) -> float:
    """(d/m) (E[x^2] + E[Var(x)]) - E[x^2] of the (continuous) piecewise mechanism at epsilon/m, s = e^(epsilon/(2m)):

    Var(x) = x^2/(s-1) + (s+3)/(3 (s-1)^2).
    """
    excess = math.expm1(min(epsilon, LARGEST_LOCAL_EPSILON) / (2 * m))
    spread = second_moment / excess + (excess + 4) / (3 * excess**2)
    return width / m * (second_moment + spread) - second_moment


def least_noisy_range(
    epsilon: float, width: int, lower: float, upper: float, filled: float
) -> tuple[float, float, float]:
    """The range to scale to -1..1, as it is or made symmetric about 0, whichever leaves less variance; and E[x^2] on it.

    The (public) prior has a share ``filled`` of the attributes at the end of the range that is farther from 0 and the others
    as near to 0 as the range allows. On a symmetric range zeros stay zeros, whose square d/m does not scale up; the range as it
    is, if it is shorter, has less noise. Nothing private is read.
    """
    reach = max(abs(lower), abs(upper))
    far, near = (upper if abs(upper) >= abs(lower) else lower), min(max(0.0, lower), upper)

    def moment(low: float, high: float) -> float:
        scaled = [(value - (low + high) / 2) / ((high - low) / 2) for value in (far, near)]
        return filled * scaled[0] ** 2 + (1 - filled) * scaled[1] ** 2

    candidates = [(low, high, moment(low, high)) for low, high in ((lower, upper), (-reach, reach))]
    counts = range(1, min(width, math.ceil(epsilon / 1.2) + 1) + 1)

    def noise(candidate: tuple[float, float, float]) -> float:
        low, high, second = candidate
        return ((high - low) / 2) ** 2 * min(expected_variance(epsilon, width, m, second) for m in counts)

    return min(candidates, key=noise)
