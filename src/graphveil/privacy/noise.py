"""Noise that its last digits cannot betray.

Three dangers are closed here. *Predictable noise*: the stream is AES-128 in counter mode, keyed by operating-system entropy; a
seed may be given for research and is then reported. *Repeated noise*: a process that was forked draws under a key of its own,
copies and pickles are refused, and large releases draw by counter (``chunks.py``). *Floating point*: the set of doubles
``value + noise`` can reach depends on ``value`` (Mironov 2012), so a value is rounded to a public power-of-two grid and the noise
is a whole number of its cells, each number with its ideal probability (``samplers.py``); IEEE addition rounds the exact sum
and is a function of it. Rounding can push two neighbouring values apart by one cell per coordinate, and the sampler errs a
little: ``gaussian_overhead`` and ``laplace_overhead`` are charged for both.

*Why cells cost what a density costs.* P(k) ~ exp(-k^2 / 2 S^2) is the mass that k gets where x ~ N(0, S^2) is rounded to whole
numbers, up to a relative (k/S)^2 / 24 S^2 < 2^-75 (far below ``ERROR``), and a shift by whole numbers commutes with rounding: a
release is post-processing of the Gaussian mechanism. For exp(-|k| / S), log-ratios after a shift by t are at most t / S.
Tests: ``tests/privacy/test_noise.py``, ``tests/privacy/test_samplers.py``.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

from graphveil.errors import InputError, PrivacyError
from graphveil.threads import in_stretches

if TYPE_CHECKING:
    from graphveil.privacy.words import Stream

GRID_BITS = 40
ERROR = 1e-13  # relative, of the probability of every number that is drawn
KEY_BITS = 128
LARGEST = (
    2.0**100
)  # scales from zero that a value may lie; farther ones are moved there, which brings none further apart
COIN = 2.0**-53  # uniform numbers are multiples of this
LARGEST_LOCAL_EPSILON = 30.0  # e^-30 is 843 coins; much smaller probabilities cannot be drawn

Array = NDArray[np.float64]


def grid(scale: float) -> float:
    """The public grid for noise of this scale: the power of two about 2^-40 below it."""
    if not 2.0**-900 < scale < 2.0**900:  # far inside the doubles: neither cells nor values in cells overflow
        raise PrivacyError(f"a noise scale must be positive and finite, got {scale}; nothing was released")
    return math.ldexp(1.0, math.frexp(scale)[1] - 1 - GRID_BITS)


def gaussian_overhead(dimension: int) -> float:
    """What so many numbers cost in mu beside their ideal law: one cell (2^-40 sigma) of rounding each, and ``ERROR``."""
    return math.sqrt(dimension) * 2.0**-GRID_BITS + 3 * dimension * ERROR


def laplace_overhead(dimension: int) -> float:
    """The same in epsilon, for noise of which distances are sums."""
    return dimension * (2.0**-GRID_BITS + 2 * ERROR)


def gumbel_overhead() -> float:
    """What one choice by Gumbel noise costs beside its ideal law, in units of sensitivity/scale: half the range of log-ratios.

    Chances are within factors 1 +- ``ERROR`` on either side, so a log-ratio is off by 2 ``ERROR`` and their range by 4.
    """
    return 2 * ERROR


def scaling_error(records: int, least: float = 1e-9) -> float:
    """By which share of its sensitivity a table of exact sums over so many records may move further once it is scaled.

    Let B be the sensitivity. The rows that one record moves are sums of the messages of ``records`` senders, each of which can
    move them by no more than B: their norm is at most records B. Scaling rounds every number by a relative 2^-53 at most, up to
    four times over, in both worlds: records B 2^-50 in all. ``least``: what is kept in reserve anyway. Test: ``test_noise.py``.
    """
    return max(least, records * 2.0**-50)


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
        return cls(sigma, sigma, _unit_gaussian)

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


def _unit_gaussian(x: Any) -> Array:
    """The distribution function of Gaussian noise of variance 1."""
    from scipy.special import ndtr  # slow to import, and only an audit asks

    return np.asarray(ndtr(x))


def _unit_laplace(x: Any) -> Array:
    """The distribution function of Laplace noise of variance 1."""
    tail = np.exp(-math.sqrt(2) * np.abs(x)) / 2
    return np.asarray(np.where(np.asarray(x) < 0, tail, 1 - tail))


_forks = [0]  # between this process and the first one; a pid alone comes again, in another namespace or later
os.register_at_fork(after_in_child=lambda: _forks.__setitem__(0, _forks[0] + 1))


def _process() -> tuple[int, int]:
    return os.getpid(), _forks[0]


class Noise:
    """A stream of secret random numbers; equal seeds give equal streams, with any number of ``threads``."""

    def __init__(self, seed: int | None = None, threads: int = 1) -> None:
        if seed is not None and seed < 0:
            raise InputError(f"a seed must not be negative, got {seed}")
        self.seed, self.threads = seed, threads
        self._start()

    _held: Stream | None

    def _start(self) -> None:
        process, key = _process(), secrets.randbits(KEY_BITS)
        if self.seed is not None:  # for research
            words = np.random.SeedSequence(self.seed).generate_state(4, np.uint32)
            key = sum(int(word) << (32 * place) for place, word in enumerate(words))
        self._stream, self._held = np.random.Generator(AESCounter(key=key)), None
        self._process = process  # last: another thread of a fork must not take the parent's stream for its own

    @property
    def _generator(self) -> np.random.Generator:
        """The stream of this process: a fork that went on with its parent's would draw the same noise."""
        if self._process != _process():
            if self.seed is not None:
                raise PrivacyError(
                    "a seeded stream was forked: both processes would draw the same noise, give each its own"
                )
            self._start()
        return self._stream

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise PrivacyError("a copy of a noise stream would draw the same noise again: make a new one, Noise()")

    def gaussian(self, sigma: float, shape: int | tuple[int, ...]) -> Array:
        """Independent N(0, sigma^2) entries on the grid."""
        from graphveil.privacy.samplers import draw_gaussian

        return self._on_grid(draw_gaussian, sigma, shape)

    def laplace(self, scale: float, shape: int | tuple[int, ...]) -> Array:
        """Independent Laplace entries of this scale on the grid."""
        from graphveil.privacy.samplers import draw_laplace

        return self._on_grid(draw_laplace, scale, shape)

    def uniform(self, size: int) -> Array:
        """Uniform numbers in [0, 1), multiples of ``COIN``."""
        return self._generator.random(size)

    def coins(self, rate: float, size: int) -> NDArray[np.bool_]:
        """Independent coins that show True with probability ``rate``, or up to ``COIN`` less often: one Poisson batch."""
        return self.uniform(size) < math.floor(rate / COIN) * COIN

    def integers(self, below: int, size: int) -> NDArray[np.int64]:
        """Uniform whole numbers 0 .. below - 1."""
        return self._generator.integers(below, size=size)

    def exponential(self, size: int) -> Array:
        """Independent standard exponential numbers, small ones with all their digits."""
        halvings = np.zeros(size)
        going = np.arange(size)
        while going.size:
            with self._words.lock:
                leading = self._words(going.size) >> np.uint64(11)  # 53 bits
            halvings[going] += np.where(leading == 0, 53, 53 - np.frexp(leading.astype(np.float64))[1])
            going = going[leading == 0]
        return -np.log1p(-np.ldexp(1 + self.uniform(size), -1 - halvings.astype(np.int64)))

    def gumbel(self, size: int) -> Array:
        """Independent standard Gumbel numbers: the largest of scores plus Gumbel numbers is each with its ideal probability.

        A column of chance p wins where its exponential number is about p times the others', so it is small ones that need all
        their digits (relative error 2^-52), and the far lower end of Gumbel that does not.
        """
        return -np.log(self.exponential(size))

    def positions(self, rate: float, below: int) -> NDArray[np.int64]:
        """Which of the coins 0 .. below - 1 show True if each does with probability ``rate``: drawn by their gaps."""
        found: list[NDArray[np.int64]] = []
        last = -1
        while last < below:
            expected = rate * (below - 1 - last)
            gaps = self._gaps(rate, below, min(int(expected + 6 * math.sqrt(expected)) + 16, 1 << 22))
            drawn = last + np.cumsum(gaps + 1)
            found.append(drawn[drawn < below])
            last = int(drawn[-1])
        return np.concatenate(found)

    def _gaps(self, rate: float, most: int, size: int) -> NDArray[np.int64]:
        """Failures before a success of chance ``rate``, cut at ``most``: every length with its ideal probability up to 1e-14.

        Whole stretches of about 1 / rate failures are coins, since the law has no memory; the rest of a stretch is uniform,
        accepted with (1 - rate)^rest.
        """
        if not 0 < rate < 1:
            raise PrivacyError(f"a rate must lie between 0 and 1, got {rate}")
        stretch, failure = max(1, round(1 / rate)), math.log1p(-rate)
        gaps = np.zeros(size, dtype=np.int64)
        going = np.arange(size)
        while going.size:
            going = going[self.uniform(going.size) < math.exp(stretch * failure)]
            going = going[gaps[going] <= most]
            gaps[going] += stretch
        going = np.arange(size)
        while going.size:
            rest = self.integers(stretch, going.size)
            accepted = self.uniform(going.size) < np.exp(rest * failure)
            gaps[going[accepted]] += rest[accepted]
            going = going[~accepted]
        return np.minimum(gaps, most + 1)

    def add_gaussian(self, value: Any, sigma: float) -> Array:
        """``value`` plus N(0, sigma^2) on every entry, all on the grid."""
        return self.add(value, self.gaussian(sigma, np.shape(value)), sigma)

    def add_laplace(self, value: Any, scale: float) -> Array:
        """``value`` plus Laplace noise of this scale on every entry, all on the grid."""
        return self.add(value, self.laplace(scale, np.shape(value)), scale)

    def add(self, value: Any, noise: Array, scale: float) -> Array:
        """``value`` rounded to the grid of ``scale``, plus ``noise`` from this grid, in the place of this noise."""
        from graphveil.privacy.samplers import add_on_grid

        clean = np.asarray(value, dtype=np.float64, order="C")
        if clean.shape != noise.shape:
            raise PrivacyError(f"the value has shape {clean.shape}, the noise {noise.shape}; nothing was released")
        values, total, cell, most = clean.reshape(-1), noise.reshape(-1), grid(scale), LARGEST * scale
        in_stretches(lambda part: add_on_grid(values[part], cell, most, total[part]), len(total), self.threads)
        return noise

    def _on_grid(self, draw: Callable[..., None], scale: float, shape: int | tuple[int, ...]) -> Array:
        from graphveil.privacy.chunks import CHUNK, fill

        noise, draw = np.empty(shape), partial(draw, scale, grid(scale))
        if noise.size > CHUNK:
            fill(draw, noise.reshape(-1), self._key(), self.threads)
            return noise
        with self._words.lock:
            draw(noise.reshape(-1), self._words)
        return noise

    def _key(self) -> int:
        """A key for one release: words of the stream that nothing else gets."""
        with self._words.lock:
            low, high = map(int, self._words(2))
        return high << 64 | low

    @property
    def _words(self) -> Stream:
        """Secret 64-bit words of this process; to be taken under its lock."""
        from graphveil.privacy.words import Stream

        source = self._generator.bit_generator
        if self._held is None:
            self._held = Stream(source)
        return self._held
