"""Noise that its last digits cannot betray.

Two dangers are closed here. *Predictable noise*: the stream is AES-128 in counter mode, keyed by operating-system entropy; a
seed may be given for research and is then reported. *Floating point*: the set of doubles ``value + noise`` can reach
depends on ``value`` (Mironov 2012), so value and noise are both rounded to one public power-of-two grid before they are
added. ``round(value) + round(noise)`` equals the ideal mechanism's output on ``round(value)``, rounded to that grid, i.e.
post-processing; IEEE addition rounds the exact sum and is a function of it, too. Rounding can push two neighbouring values
apart by one grid cell per coordinate, hence ``rounding(sigma, dimension)`` is added to every sensitivity.
Tests: ``tests/privacy/test_noise.py``.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter
from scipy.special import ndtr

from graphveil.errors import InputError, PrivacyError

GRID_BITS = 40
COIN = 2.0**-53  # uniform numbers are multiples of this
LARGEST_LOCAL_EPSILON = 30.0  # e^-30 is 843 coins; much smaller probabilities cannot be drawn

Array = NDArray[np.float64]


def grid(scale: float) -> float:
    """The public grid for noise of this scale: the power of two about 2^-40 below it."""
    if not (math.isfinite(scale) and scale > 0):
        raise PrivacyError(f"a noise scale must be positive and finite, got {scale}; nothing was released")
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - GRID_BITS)


def rounding(scale: float, dimension: int) -> float:
    """How much rounding to the grid can add to a Euclidean distance in this many dimensions."""
    return math.sqrt(dimension) * grid(scale)


def summation_error(examples: int, clip: float, growth: float = 1.0) -> float:
    """How far float64 addition can move a sum of ``examples`` terms of norm <= clip from the exact sum.

    Any order of adding n products errs by at most ``gamma_n sum_i |g_i| |a_i|^T`` entry by entry, ``gamma_n = n u / (1 - n u)``
    with ``u = 2^-53``; its norm is at most ``gamma_n n clip``. Two neighbouring sums can be moved apart, so twice this
    belongs to a sensitivity. ``growth``: the factor by which intermediate terms are longer than final ones.
    """
    steps = (examples + 2) * 2.0**-53
    return growth * examples * clip * steps / (1 - steps)


@dataclass(frozen=True)
class Added:
    """Independent noise on every number: the scale that sets its grid, its standard deviation, its law in units of that."""

    scale: float
    deviation: float
    distribution: Callable[[Any], Array]

    @classmethod
    def gaussian(cls, sigma: float) -> Added:
        return cls(sigma, sigma, ndtr)

    @classmethod
    def laplace(cls, scale: float) -> Added:
        return cls(scale, math.sqrt(2) * scale, _unit_laplace)

    def residual(self, clean: Array, released: Array) -> Array:
        """What was added, in standard deviations."""
        return np.asarray((released - clean).ravel() / self.deviation)

    def on_grid(self, released: Array) -> bool:
        """Whether released values lie on the public grid, as they must."""
        cells = np.asarray(released) / grid(self.scale)
        return np.array_equal(cells, np.rint(cells))


def _unit_laplace(x: Any) -> Array:
    """The distribution function of Laplace noise of variance 1."""
    tail = np.exp(-math.sqrt(2) * np.abs(x)) / 2
    return np.asarray(np.where(np.asarray(x) < 0, tail, 1 - tail))


class Noise:
    """A stream of secret random numbers; equal seeds give equal streams."""

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None and seed < 0:
            raise InputError(f"a seed must not be negative, got {seed}")
        self.seed, key = seed, secrets.randbits(128)
        if seed is not None:  # for research
            words = np.random.SeedSequence(seed).generate_state(4, np.uint32)
            key = sum(int(word) << (32 * place) for place, word in enumerate(words))
        self._generator = np.random.Generator(AESCounter(key=key))

    def gaussian(self, sigma: float, shape: int | tuple[int, ...]) -> Array:
        """Independent N(0, sigma^2) entries, rounded to the grid."""
        return self._on_grid(self._generator.standard_normal(shape), sigma)

    def laplace(self, scale: float, shape: int | tuple[int, ...]) -> Array:
        """Independent Laplace entries of this scale, rounded to the grid."""
        return self._on_grid(self._generator.laplace(size=shape), scale)

    def uniform(self, size: int) -> Array:
        """Uniform numbers in [0, 1), for coins."""
        return self._generator.random(size)

    def coins(self, rate: float, size: int) -> NDArray[np.bool_]:
        """Independent coins that show True with probability ``rate``: one Poisson batch."""
        return self.uniform(size) < rate

    def integers(self, below: int, size: int) -> NDArray[np.int64]:
        """Uniform whole numbers 0 .. below - 1."""
        return self._generator.integers(below, size=size)

    def gumbel(self, size: int) -> Array:
        """Independent standard Gumbel numbers."""
        return -np.log(-np.log(self._generator.random(size) + 2.0**-54))

    def positions(self, rate: float, below: int) -> NDArray[np.int64]:
        """Which of the coins 0 .. below - 1 show True if each does with probability ``rate``: drawn by their gaps."""
        found: list[NDArray[np.int64]] = []
        last = -1
        while last < below:
            expected = rate * (below - 1 - last)
            size = min(int(expected + 6 * math.sqrt(expected)) + 16, 1 << 22)
            gaps = np.floor(np.log1p(-self.uniform(size)) / math.log1p(-rate)) + 1.0
            drawn = last + np.cumsum(np.minimum(gaps, float(below + 1))).astype(np.int64)
            found.append(drawn[drawn < below])
            last = int(drawn[-1])
        return np.concatenate(found)

    def add_gaussian(self, value: Any, sigma: float) -> Array:
        """``value`` plus N(0, sigma^2) on every entry, all on the grid."""
        return self.add(value, self.gaussian(sigma, np.shape(value)), sigma)

    def add_laplace(self, value: Any, scale: float) -> Array:
        """``value`` plus Laplace noise of this scale on every entry, all on the grid."""
        return self.add(value, self.laplace(scale, np.shape(value)), scale)

    def add(self, value: Any, noise: Array, scale: float) -> Array:
        """``value`` rounded to the grid of ``scale``, plus ``noise`` from this grid."""
        cell = grid(scale)
        rounded = np.array(value, dtype=np.float64)
        if rounded.shape != noise.shape:
            raise PrivacyError(f"the value has shape {rounded.shape}, the noise {noise.shape}; nothing was released")
        rounded *= 1 / cell
        np.rint(rounded, out=rounded)
        rounded *= cell
        rounded += noise
        return rounded

    @staticmethod
    def _on_grid(standard: Array, scale: float) -> Array:
        cell = grid(scale)
        standard *= scale / cell
        np.rint(standard, out=standard)
        standard *= cell
        return standard
