"""The residuals of one gradient step in one pass over the records of a block: logits, softmax, their clipped share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from graphveil.graph.kernels.list_sums import add_listed


@njit(cache=True, nogil=True)
def residuals(
    logits: Any,
    labels: Any,
    starts: Any,
    entries: Any,
    share: Any,
    codes: Any,
    constant: Any,
    wide: Any,
    lists: float,
    slot: float,
    clip: float,
    scale: float,
    factors: Any,
) -> None:
    """``logits`` become ``f_i (softmax - y_i)``, ``factors`` f_i; zero where there is no label.

    Given are the logits of the features; ``share_i sum of codes[j], j in list i`` and ``constant`` are added here.
    ``f_i = scale min(1, clip / norm_i)``, ``norm_i^2 = |softmax - y|^2 wide_i + slot^2 (1 - 1/C)``: the whole summand, of which
    the residual is multiplied by rows of squared norm ``wide_i`` and ``slot (1/C - y)`` goes into the own slot.
    """
    n, classes = logits.shape
    own = slot * slot * (1.0 - 1.0 / classes)
    read, message = codes.ravel(), np.empty(classes)
    for i in range(n):
        y = labels[i]
        if y < 0:
            logits[i], factors[i] = 0.0, 0.0
            continue
        if lists > 0.0:
            add_listed(entries, starts[i], starts[i + 1], read, classes, message)
            for c in range(classes):
                logits[i, c] += share[i] * message[c]
        most = -np.inf
        for c in range(classes):
            logits[i, c] += constant[c]
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
        factors[i] = scale * min(1.0, clip / norm) if norm > 0.0 else scale
        for c in range(classes):
            logits[i, c] *= factors[i]


@njit(cache=True)
def shorten(table: Any, most: float, out: Any) -> None:
    """Rows of ``table``, shortened to norm ``most`` where they are longer."""
    for r in range(len(table)):
        square = 0.0
        for c in range(table.shape[1]):
            square += table[r, c] * table[r, c]
        norm = math.sqrt(square)
        factor = most / norm if norm > most else 1.0
        for c in range(table.shape[1]):
            out[r, c] = table[r, c] * factor
