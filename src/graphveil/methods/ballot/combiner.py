"""The combiner: own log-probabilities plus evidence, calibrated by private gradients on calibration nodes.

    logits_i = a z_i + T_i U + c,     homophilous: U = b I, learn (log a, log b, c);   structural: learn (log a, U, c)

z_i is a function of i's own features, T_i a released row. Formal guarantee: a calibration record owns one gradient of
norm at most ``clip``; nobody else's depends on it. Tests: ``tests/methods/test_ballot_combiner.py``,
``tests/audit/test_ballot_audit.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from graphveil.graph import Graph
from graphveil.privacy.curator import Curator
from graphveil.privacy.noise import Array

LOG_SCALE, OFFSET_SCALE = 0.5, 0.3  # step sizes of (log a, log b) and c relative to U
CLIP_RESERVE = 1 - 1e-10  # rounding of a norm must not lengthen a clipped gradient


@dataclass(frozen=True)
class Combiner:
    """a, U and c, and whether U is b times the identity."""

    log_scale: float
    mixing: Array
    offset: Array
    scalar: bool

    @classmethod
    def homophilous(cls, classes: int, weight: float) -> Combiner:
        return cls(0.0, max(weight, 1e-12) * np.eye(classes), np.zeros(classes), True)

    @classmethod
    def structural(cls, classes: int, width: int) -> Combiner:
        return cls(0.0, np.zeros((width, classes)), np.zeros(classes), False)

    def logits(self, z: Array, table: Array) -> Array:
        return math.exp(self.log_scale) * z + table @ self.mixing + self.offset

    def moved(self, step: Array) -> Combiner:
        """The combiner after a step in its scaled coordinates (log a, log b or U, c)."""
        classes = len(self.offset)
        middle, offset = step[1:-classes], self.offset + OFFSET_SCALE * step[-classes:]
        if self.scalar:
            mixing = self.mixing * math.exp(LOG_SCALE * middle[0])
        else:
            mixing = self.mixing + middle.reshape(self.mixing.shape)
        return Combiner(self.log_scale + LOG_SCALE * step[0], mixing, offset, self.scalar)

    def gradient_sum(self, z: Array, table: Array, labels: np.ndarray, clip: float | None) -> Array:
        """Sum over labelled rows of the clipped cross-entropy gradients in the scaled coordinates."""
        labelled = labels >= 0
        z, table, labels = z[labelled], table[labelled], labels[labelled]
        error = softmax(self.logits(z, table), axis=1)
        error[np.arange(len(labels)), labels] -= 1.0
        scale = LOG_SCALE * math.exp(self.log_scale) * np.einsum("ij,ij->i", error, z)
        squares = scale**2 + OFFSET_SCALE**2 * np.square(error).sum(axis=1)
        if self.scalar:
            middle = (LOG_SCALE * np.einsum("ij,ij->i", error, table @ self.mixing))[:, None]
            squares += middle[:, 0] ** 2
        else:
            squares += np.square(table).sum(axis=1) * np.square(error).sum(axis=1)
        finite = np.isfinite(squares)
        factor = np.where(finite, 1.0, 0.0)
        if clip is not None:
            factor[finite] = np.minimum(1.0, clip * CLIP_RESERVE / np.sqrt(squares[finite] + 1e-300))
        error, scale = np.where(finite[:, None], error, 0.0), np.where(finite, scale, 0.0)
        weighted = factor[:, None] * error
        if self.scalar:
            body = factor @ np.where(finite[:, None], middle, 0.0)
        else:
            body = (table.T @ weighted).ravel()
        return np.concatenate([[factor @ scale], body, OFFSET_SCALE * weighted.sum(axis=0)])


class SteadyMomentum:
    """Momentum with one global second moment, shrunk by James and Stein: steps that could be noise alone are not made.

    The step is multiplied by max(0, 1 - dim V_t s^2 / ||m_t||^2) with s the known noise of one mean gradient and V_t the
    variance factor of the momentum average, so that at small budgets the combiner stays where it started.
    """

    def __init__(self, rate: float, steps: int, noise: float, momentum: float = 0.9, beta2: float = 0.99) -> None:
        self._rate, self._steps, self._noise = rate, steps, noise
        self._momentum, self._beta2 = momentum, beta2
        self._first: Any = 0.0
        self._second = 0.0
        self._done = 0

    def step(self, gradient: Array) -> Array:
        """The change of the parameters for this mean gradient."""
        rate = self._rate * (1 - self._done / self._steps)
        self._done += 1
        keep, corrected = self._momentum, 1 - self._momentum**self._done
        self._first = keep * self._first + (1 - keep) * gradient
        self._second = self._beta2 * self._second + (1 - self._beta2) * float(np.mean(gradient**2))
        mean = self._first / corrected
        root = math.sqrt(self._second / (1 - self._beta2**self._done)) + 1e-12
        factor = (1 - keep) ** 2 * (1 - keep ** (2 * self._done)) / (1 - keep**2) / corrected**2
        noise = gradient.size * factor * self._noise**2
        shrink = max(0.0, 1 - noise / max(float(mean @ mean), 1e-300))
        return np.asarray(-rate * shrink * mean / root)


def calibrate(
    curator: Curator,
    name: str,
    start: Combiner,
    own: Callable[[Graph], Array],
    table: Array,
    *,
    share: float,
    rate: float,
) -> Combiner:
    """Spend the gradient release ``name`` on the combiner; ``own(private)`` and ``table`` have a row per calibration node."""

    def prepare(private: Graph, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return own(private), table, private.labels[rows]

    session = curator.gradients(name, prepare, share, np.flatnonzero(curator.masks["calibration"]))
    voters = curator.facts.count("calibration")
    optimizer = SteadyMomentum(rate, session.total, curator.noise_scale(name) / voters)
    combiner = start

    def query(prepared: tuple[Array, Array, np.ndarray], batch: np.ndarray | None) -> Array:
        return combiner.gradient_sum(*prepared, clip=session.clip)

    for _ in range(session.total):
        combiner = combiner.moved(optimizer.step(session.step(query) / voters))
    return combiner
