"""The clipped residual of every record in one pass: softmax, minus the label, shortened."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def clip_residuals(logits: Any, labels: Any, wide: Any, own: float, clip: float, scale: float, factors: Any) -> None:
    """``logits`` become ``f_i (softmax - y_i)`` with ``f_i = scale min(1, clip / norm_i)``; zero where there is no label.

    ``norm_i^2 = |softmax - y|^2 wide_i + own``: the whole summand, of which the residual is multiplied by rows of squared norm
    ``wide_i`` and the label in the own slot has the squared norm ``own``.
    """
    n, classes = logits.shape
    for i in range(n):
        y = labels[i]
        if y < 0:
            factors[i] = 0.0
            for c in range(classes):
                logits[i, c] = 0.0
            continue
        most = logits[i, 0]
        for c in range(1, classes):
            most = max(most, logits[i, c])
        total = 0.0
        for c in range(classes):
            logits[i, c] = np.exp(logits[i, c] - most)
            total += logits[i, c]
        square = 0.0
        for c in range(classes):
            residual = logits[i, c] / total
            if c == y:
                residual -= 1.0
            logits[i, c] = residual
            square += residual * residual
        norm = math.sqrt(square * wide[i] + own)
        factor = scale * min(1.0, clip / norm) if norm > 0.0 else scale
        factors[i] = factor
        for c in range(classes):
            logits[i, c] *= factor
