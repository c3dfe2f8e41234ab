"""The functions of a row between two layers: what becomes of a number depends on its row alone, not on where that row stands.

Vectorised libraries compute the last numbers of an array in another way than the others; these loops do not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from graphveil.learn.grid_kernels import squared

SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717  # of SELU
LEAST = 1e-12  # shorter rows are not made longer
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.693147180369123816490, 1.90821492927058770002e-10
INVERSE_FACTORIALS = tuple(1 / math.factorial(k) for k in range(13))


@njit(cache=True, nogil=True, inline="always")
def _exp(value: float) -> float:
    """``e^value`` of a number that is not above 0, up to some 1e-16: plain operations, of which several are done at a time."""
    value = max(value, -700.0)
    twos = np.rint(value * LOG2_E)
    rest = (value - twos * LN2_HIGH) - twos * LN2_LOW
    found = INVERSE_FACTORIALS[12]
    found = found * rest + INVERSE_FACTORIALS[11]
    found = found * rest + INVERSE_FACTORIALS[10]
    found = found * rest + INVERSE_FACTORIALS[9]
    found = found * rest + INVERSE_FACTORIALS[8]
    found = found * rest + INVERSE_FACTORIALS[7]
    found = found * rest + INVERSE_FACTORIALS[6]
    found = found * rest + INVERSE_FACTORIALS[5]
    found = found * rest + INVERSE_FACTORIALS[4]
    found = found * rest + INVERSE_FACTORIALS[3]
    found = found * rest + INVERSE_FACTORIALS[2]
    found = found * rest + 1.0
    found = found * rest + 1.0
    return float(found * np.int64((np.int64(twos) + 1023) << 52).view(np.float64))  # 2^twos by its bits


@njit(cache=True, nogil=True)
def selu(x: Any, out: Any) -> None:
    for i in range(len(x)):
        value = x[i]
        below = SCALE * ALPHA * (_exp(min(value, 0.0)) - 1.0)
        out[i] = SCALE * value if value > 0.0 else below


@njit(cache=True, nogil=True)
def selu_slope(found: Any, gradient: Any, out: Any) -> None:
    """``gradient`` times the slope where SELU has the value ``found``."""
    for i in range(len(found)):
        out[i] = gradient[i] * (SCALE if found[i] > 0.0 else found[i] + SCALE * ALPHA)


@njit(cache=True, nogil=True)
def unit(x: Any, out: Any, norms: Any) -> None:
    for i in range(len(x)):
        norms[i] = max(math.sqrt(squared(x[i])), LEAST)
        factor = 1.0 / norms[i]
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * factor


@njit(cache=True, nogil=True)
def unit_slope(found: Any, norms: Any, gradient: Any, out: Any) -> None:
    """The gradient before rows were divided by their norms, given the one after."""
    for i in range(len(found)):
        along, factor = 0.0, 1.0 / norms[i]
        for j in range(found.shape[1]):
            along += found[i, j] * gradient[i, j]
        for j in range(found.shape[1]):
            out[i, j] = (gradient[i, j] - along * found[i, j]) * factor


@njit(cache=True, nogil=True)
def residuals(logits: Any, labels: Any, out: Any) -> None:
    """``softmax - y``, the gradient of the cross-entropy at the logits; 0 for labels that are none."""
    classes = logits.shape[1]
    for i in range(len(logits)):
        if labels[i] < 0 or labels[i] >= classes:
            out[i] = 0.0
            continue
        most, total = -np.inf, 0.0
        for c in range(classes):
            most = max(most, logits[i, c])
        for c in range(classes):
            out[i, c] = math.exp(logits[i, c] - most)
            total += out[i, c]
        for c in range(classes):
            out[i, c] /= total
        out[i, labels[i]] -= 1.0
