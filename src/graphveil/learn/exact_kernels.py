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


@njit(cache=True, nogil=True)
def selu(x: Any, out: Any) -> None:
    for i in range(len(x)):
        value = x[i]
        out[i] = SCALE * value if value > 0.0 else SCALE * ALPHA * (math.exp(value) - 1.0)


@njit(cache=True, nogil=True)
def selu_slope(found: Any, gradient: Any, out: Any) -> None:
    """``gradient`` times the slope where SELU has the value ``found``."""
    for i in range(len(found)):
        out[i] = gradient[i] * (SCALE if found[i] > 0.0 else found[i] + SCALE * ALPHA)


@njit(cache=True, nogil=True)
def unit(x: Any, out: Any, norms: Any) -> None:
    for i in range(len(x)):
        norms[i] = max(math.sqrt(squared(x[i])), LEAST)
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] / norms[i]


@njit(cache=True, nogil=True)
def unit_slope(found: Any, norms: Any, gradient: Any, out: Any) -> None:
    """The gradient before rows were divided by their norms, given the one after."""
    for i in range(len(found)):
        along = 0.0
        for j in range(found.shape[1]):
            along += found[i, j] * gradient[i, j]
        for j in range(found.shape[1]):
            out[i, j] = (gradient[i, j] - along * found[i, j]) / norms[i]


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
