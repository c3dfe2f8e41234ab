"""Optimisers on one flat vector: ``step(parameters, gradient)`` changes the parameters in place.

They read only the gradient they are given. Given a noisy one, everything they do is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from graphveil.errors import InputError

Schedule = Callable[[int], float]


class Optimizer(Protocol):
    """Anything that turns a gradient into a step."""

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        """Move ``parameters`` in place; ``gradient`` is left as it is."""


def linear_decay(rate: float, steps: int) -> Schedule:
    """``rate (1 - t / steps)`` for step ``t = 0, 1, ...``, never negative."""
    return lambda step: rate * max(0.0, 1.0 - step / steps)


class SGD:
    """``v <- momentum v + g``, ``theta <- theta - rate v``."""

    def __init__(self, rate: float | Schedule, momentum: float = 0.0) -> None:
        self._rate = _schedule(rate)
        self._momentum = _fraction("momentum", momentum)
        self._velocity: Tensor | None = None
        self._step = 0

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        direction = gradient
        if self._momentum:
            if self._velocity is None:
                self._velocity = torch.zeros_like(parameters)
            direction = self._velocity.mul_(self._momentum).add_(gradient)
        parameters.add_(direction, alpha=-self._rate(self._step))
        self._step += 1


class Adam:
    """``theta <- theta - rate m / (sqrt(v) + epsilon)``, bias-corrected moments per coordinate (Kingma and Ba 2015)."""

    def __init__(
        self, rate: float | Schedule = 1e-3, momentum: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self._rate = _schedule(rate)
        self._momentum, self._beta2 = _fraction("momentum", momentum), _fraction("beta2", beta2)
        self._epsilon = epsilon
        self._moments: tuple[Tensor, ...] = ()
        self._step = 0

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        if not self._moments:
            self._moments = torch.zeros(3, parameters.numel(), dtype=parameters.dtype).unbind()
        first, second, scratch = self._moments
        rate = self._rate(self._step)
        self._step += 1
        first.lerp_(gradient, 1 - self._momentum)
        second.mul_(self._beta2).addcmul_(gradient, gradient, value=1 - self._beta2)
        # Corrected, sqrt(v) is sqrt(second) / root, so both corrections fit into two scalars.
        root = math.sqrt(1 - self._beta2**self._step)
        torch.sqrt(second, out=scratch).add_(self._epsilon * root)
        parameters.addcdiv_(first, scratch, value=-rate * root / (1 - self._momentum**self._step))


class GlobalMoment:
    """Adam's momentum divided by the root of *one* second moment, that of all coordinates together.

    ``m <- b1 m + (1 - b1) g``, ``v <- b2 v + (1 - b2) mean(g^2)``,
    ``theta <- theta - rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)``.
    Noise makes the second moments of single coordinates nearly equal anyway; one number keeps the direction of the
    gradient. Steps do not change when all gradients are multiplied by a constant.
    """

    def __init__(
        self, rate: float | Schedule = 0.1, momentum: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-12
    ) -> None:
        self._rate = _schedule(rate)
        self._momentum, self._beta2 = _fraction("momentum", momentum), _fraction("beta2", beta2)
        self._epsilon = epsilon
        self._first: Tensor | None = None
        self._second = 0.0
        self._step = 0

    def step(self, parameters: Tensor, gradient: Tensor) -> None:
        if self._first is None:
            self._first = torch.zeros_like(parameters)
        rate = self._rate(self._step)
        self._step += 1
        self._first.lerp_(gradient, 1 - self._momentum)
        mean_square = float(torch.dot(gradient, gradient)) / max(1, gradient.numel())
        self._second = self._beta2 * self._second + (1 - self._beta2) * mean_square
        scale = math.sqrt(self._second / (1 - self._beta2**self._step)) + self._epsilon
        parameters.add_(self._first, alpha=-rate / (scale * (1 - self._momentum**self._step)))


class IterateAverage:
    """The mean of the iterates from step ``start`` on (all of them by default)."""

    def __init__(self, start: int = 0) -> None:
        self._start = start
        self._seen = 0
        self._mean: Tensor | None = None

    def update(self, parameters: Tensor) -> None:
        """Count in the iterate after one more step."""
        self._seen += 1
        counted = self._seen - self._start
        if counted > 0 and self._mean is None:
            self._mean = parameters.clone()
        elif self._mean is not None:
            self._mean.lerp_(parameters, 1 / counted)

    def value(self) -> Tensor | None:
        """The mean, or None before step ``start``."""
        return self._mean


def _schedule(rate: float | Schedule) -> Schedule:
    if callable(rate):
        return rate
    if not (math.isfinite(rate) and rate > 0):
        raise InputError(f"the learning rate must be positive and finite, got {rate}")
    return lambda step: rate


def _fraction(name: str, value: float) -> float:
    if not 0 <= value < 1:
        raise InputError(f"{name} must be at least 0 and less than 1, got {value}")
    return value
