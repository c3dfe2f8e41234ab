"""Loops that pass once over parameters or rows, where one operation after another would pass many times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, error_model="numpy", nogil=True)
def adam_step(
    parameters: Any,
    gradient: Any,
    divisor: float,
    first: Any,
    second: Any,
    beta1: float,
    beta2: float,
    rate: float,
    floor: float,
) -> None:
    """Moments, then ``theta <- theta - rate first / (sqrt(second) + floor)``; corrections are in ``rate`` and ``floor``."""
    share = 1 / divisor
    for at in range(len(parameters)):
        slope = gradient[at] * share
        moment = first[at] + (1 - beta1) * (slope - first[at])
        square = second[at] * beta2 + (1 - beta2) * (slope * slope)
        first[at] = moment
        second[at] = square
        parameters[at] -= rate * (moment / (np.sqrt(square) + floor))


@njit(cache=True, error_model="numpy")
def kept_where(values: Any, coins: Any, least: int, scale: float, kept: Any) -> None:
    """``kept = scale values`` where the coin is at least ``least``, else 0."""
    factor = np.float32(scale)
    for at in range(len(values)):
        kept[at] = values[at] * factor if coins[at] >= least else np.float32(0.0)


@njit(cache=True, error_model="numpy")
def unit_rows(weight: Any, least: float) -> None:
    """Every row of ``weight`` to norm 1, in place; shorter ones than ``least`` count as this long."""
    for row in range(len(weight)):
        part, square = weight[row], 0.0
        for at in range(len(part)):
            square += part[at] * part[at]
        factor = 1 / max(np.sqrt(square), least)
        for at in range(len(part)):
            part[at] *= factor


@njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def calibrated_rows(start: Any, base: Any, slope: Any, nodes: Any, tau: float, least: float, out: Any) -> None:
    """``start + gamma moved``, ``moved = base - tau slope``, ``gamma = max(1 - tau/||moved||, 0)`` of some nodes, and below that
    the derivative by tau."""
    step = np.float32(tau)
    for number in range(len(nodes)):
        node = nodes[number]
        square, along = np.float32(0.0), np.float32(0.0)
        for at in range(start.shape[1]):
            moved = base[node, at] - step * slope[node, at]
            square += moved * moved
            along += moved * slope[node, at]
        distance = max(np.sqrt(square), np.float32(least))
        gamma = np.float32(max(1 - step / distance, 0.0))
        turn = np.float32((-step * along / (distance * distance) - 1) / distance if gamma > 0 else 0.0)
        for at in range(start.shape[1]):
            moved = base[node, at] - step * slope[node, at]
            out[number, at] = start[node, at] + gamma * moved
            out[len(nodes) + number, at] = turn * moved - gamma * slope[node, at]
