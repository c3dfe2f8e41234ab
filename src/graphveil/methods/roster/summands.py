"""The gradient sums of one step in one pass over the records: logits, residuals, their clipped share, sums along lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from graphveil.graph.kernels.list_sums import add_listed, add_to_listed
from graphveil.graph.lists import GRID


@njit(cache=True)
def add_summands(
    logits: Any,
    labels: Any,
    starts: Any,
    entries: Any,
    share: Any,
    slots: Any,
    codes: Any,
    constant: Any,
    wide: Any,
    lists: float,
    slot: float,
    clip: float,
    scale: float,
    out: Any,
) -> None:
    """``logits`` become ``f_i (softmax - y_i)``, and ``out`` gets what goes into the codes; zero where there is no label.

    Given are the logits of the features; ``share_i sum of codes[j], j in list i`` and ``constant`` are added here.
    ``f_i = scale min(1, clip / norm_i)``, ``norm_i^2 = |softmax - y|^2 wide_i + slot^2 (1 - 1/C)``: the whole summand, of which
    the residual is multiplied by rows of squared norm ``wide_i`` and ``slot (1/C - y)`` goes into the own slot. Messages are
    truncated towards zero to the grid 2^-24, so that the sums are exact in any order.
    """
    n, classes = logits.shape
    even = 1.0 / classes
    own = slot * slot * (1.0 - even)
    read, written, message = codes.ravel(), out.ravel(), np.empty(classes)
    for i in range(n):
        y = labels[i]
        if y < 0:
            logits[i] = 0.0
            continue
        first, last = starts[i], starts[i + 1]
        if lists > 0.0:
            add_listed(entries, first, last, read, classes, message)
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
        factor = scale * min(1.0, clip / norm) if norm > 0.0 else scale
        for c in range(classes):
            logits[i, c] *= factor
        if lists > 0.0:
            for c in range(classes):
                message[c] = np.trunc(share[i] * (lists * logits[i, c]) / GRID) * GRID
            add_to_listed(entries, first, last, message, classes, written)
            if slot > 0.0:
                for c in range(classes):
                    told = even - 1.0 if c == y else even
                    out[slots[i], c] += np.trunc(slot * factor * told / GRID) * GRID


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
