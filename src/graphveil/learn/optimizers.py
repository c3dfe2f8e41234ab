"""Optimisers on one flat vector: ``step(parameters, gradient)`` changes the parameters in place.

They read only the gradient they are given: a sum, and the public number it is divided by. Given a noisy one, everything they do
is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.learn.kernels import adam_step
from graphveil.threads import in_stretches

BETA1, BETA2 = 0.9, 0.999


class Optimizer(Protocol):
    """Anything that turns a gradient into a step."""

    def step(self, parameters: Tensor, gradient: Tensor, divisor: float = 1.0) -> None:
        """Move ``parameters`` in place along ``gradient / divisor``; the gradient is left as it is."""


class Adam:
    """``theta <- theta - rate m / (sqrt(v) + 1e-8)``, bias-corrected moments per coordinate (Kingma and Ba 2015)."""

    def __init__(self, rate: float) -> None:
        self._rate = _checked(rate)
        self._moments: tuple[np.ndarray, ...] = ()
        self._step = 0

    def step(self, parameters: Tensor, gradient: Tensor, divisor: float = 1.0) -> None:
        if not self._moments:
            self._moments = np.zeros(parameters.numel()), np.zeros(parameters.numel())
        (first, second), self._step = self._moments, self._step + 1
        # Corrected, sqrt(v) is sqrt(second) / root, so both corrections fit into two scalars.
        root = math.sqrt(1 - BETA2**self._step)
        rate, floor = self._rate * root / (1 - BETA1**self._step), 1e-8 * root
        moved, slope = parameters.numpy(), gradient.numpy()

        def descend(part: slice) -> None:
            adam_step(moved[part], slope[part], divisor, first[part], second[part], BETA1, BETA2, rate, floor)

        in_stretches(descend, len(moved), torch.get_num_threads())


class Descent:
    """``theta <- theta - rate g``."""

    def __init__(self, rate: float) -> None:
        self._rate = _checked(rate)

    def step(self, parameters: Tensor, gradient: Tensor, divisor: float = 1.0) -> None:
        parameters.add_(gradient, alpha=-self._rate / divisor)


class GlobalMoment:
    """Adam's momentum divided by the root of *one* second moment, that of all coordinates together.

    ``m <- b1 m + (1 - b1) g``, ``v <- b2 v + (1 - b2) mean(g^2)``,
    ``theta <- theta - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + 1e-12)``.
    Noise makes the second moments of single coordinates nearly equal anyway; one number keeps the direction of the
    gradient. Steps do not change when all gradients are multiplied by a constant. ``rates``: what the momentum was multiplied
    by in every step so far, its own correction aside.
    """

    def __init__(self, rate: float) -> None:
        self._rate = _checked(rate)
        self._first: list[Tensor] = []
        self._second = 0.0
        self._step = 0
        self.rates: list[float] = []

    def step(self, parameters: Tensor, gradient: Tensor, divisor: float = 1.0) -> None:
        self.advance([(parameters, gradient, 1.0)], divisor)

    def advance(self, parts: Sequence[tuple[Tensor, Tensor, float]], divisor: float = 1.0) -> None:
        """Parameters, their gradient and what their step is multiplied by, part by part; one second moment for all of them."""
        if not self._first:
            self._first = [torch.zeros_like(parameters) for parameters, _, _ in parts]
        self._step += 1
        square, numbers = 0.0, 0
        for first, (_, gradient, _) in zip(self._first, parts, strict=True):
            first.mul_(BETA1).add_(gradient, alpha=(1 - BETA1) / divisor)
            square += float(torch.dot(gradient.reshape(-1), gradient.reshape(-1))) / divisor**2
            numbers += gradient.numel()
        self._second = BETA2 * self._second + (1 - BETA2) * square / max(1, numbers)
        scale = math.sqrt(self._second / (1 - BETA2**self._step)) + 1e-12
        self.rates.append(self._rate / scale)
        for first, (parameters, _, weight) in zip(self._first, parts, strict=True):
            parameters.add_(first, alpha=-weight * self._rate / (scale * (1 - BETA1**self._step)))

    def weights_of_gradients(self) -> np.ndarray:
        """By how much the parameters moved, all in all, for each gradient so far, per unit of it."""
        corrected = [rate / (1 - BETA1**step) for step, rate in enumerate(self.rates, start=1)]
        weights, later = np.zeros(len(corrected)), 0.0
        for step in reversed(range(len(corrected))):
            later = BETA1 * later + corrected[step]
            weights[step] = (1 - BETA1) * later
        return weights


def _checked(rate: float) -> float:
    if not (math.isfinite(rate) and rate > 0):
        raise InputError(f"the learning rate must be positive and finite, got {rate}")
    return rate
