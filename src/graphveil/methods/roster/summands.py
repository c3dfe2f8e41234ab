"""The gradient sums of one step in one pass over the records of a block: logits, residuals, their clipped share, messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from graphveil.graph.kernels.list_sums import add_listed, add_to_listed
from graphveil.graph.lists import GRID
from graphveil.learn.centred_sums import BIAS
from graphveil.learn.grid_kernels import add_four, add_sparse, four_scores, load_rows, sparse_score


@njit(cache=True, nogil=True)
def _residual(told: Any, i: int, lists: Any, read: Any, weights: Any, heard: Any, out: Any) -> None:
    """``told``, the logits that the features of record i give, becomes ``f (softmax - y)``; zero where there is no label.

    ``share sum of codes[j], j in list`` and ``constant`` are added to the logits first. ``f = scale min(1, clip / norm)``,
    ``norm^2 = |softmax - y|^2 wide + slot^2 (1 - 1/C)``: the whole summand, of which the residual is multiplied by rows of
    squared norm ``wide`` and ``slot (1/C - y)`` goes into the own slot. Messages, own slot and constant are truncated towards
    zero to the grid 2^-24, so that their sums are exact in any order.
    """
    starts, entries, chosen, share, labels, wide = lists
    codes, constant = read
    of_lists, slot, clip, scale = weights
    messages, own, bias = out
    classes, y = len(told), labels[i]
    if y < 0:
        told[:] = 0.0
        return
    if of_lists > 0.0:
        add_listed(entries, starts[chosen[i]], starts[chosen[i] + 1], codes, classes, heard)
        for c in range(classes):
            told[c] += share[i] * heard[c]
    most = -np.inf
    for c in range(classes):
        told[c] += constant[c]
        most = max(most, told[c])
    total = 0.0
    for c in range(classes):
        told[c] = np.exp(told[c] - most)
        total += told[c]
    square, even = 0.0, 1.0 / classes
    for c in range(classes):
        told[c] /= total
        if c == y:
            told[c] -= 1.0
        square += told[c] * told[c]
    norm = math.sqrt(square * wide[i] + slot * slot * (1.0 - even))
    factor = scale * min(1.0, clip / norm) if norm > 0.0 else scale
    for c in range(classes):
        told[c] *= factor
        bias[c] += np.trunc(BIAS * told[c] / GRID) * GRID
    if of_lists > 0.0:
        for c in range(classes):
            messages[i, c] = np.trunc(share[i] * (of_lists * told[c]) / GRID) * GRID
        if slot > 0.0:
            for c in range(classes):
                mine = even - 1.0 if c == y else even
                own[i, c] = np.trunc(slot * factor * mine / GRID) * GRID


@njit(cache=True, nogil=True)
def dense_summands(
    x: Any, model: Any, features: float, unit: float, total: Any, lists: Any, read: Any, weights: Any, out: Any
) -> None:
    """Residuals of dense rows; those times ``features`` and their rows are added to ``total`` (C, d); ``model`` is (C, d)."""
    classes = len(model)
    rows, told, heard = np.zeros((4, x.shape[1])), np.zeros((4, classes)), np.zeros(classes)
    steps = 1 / unit
    for first in range(0, len(x), 4):
        filled = min(4, len(x) - first)
        told[:] = 0.0
        if features > 0.0:
            load_rows(x, first, filled, rows)
            for c in range(classes):
                four_scores(rows, model[c], told, c)
        for k in range(filled):
            _residual(told[k], first + k, lists, read, weights, heard, out)
        if features == 0.0:
            continue
        for k in range(4):
            for c in range(classes):
                told[k, c] = np.trunc(features * told[k, c] * steps) * unit
        for c in range(classes):
            add_four(rows, told[0, c], told[1, c], told[2, c], told[3, c], total[c])


@njit(cache=True, nogil=True)
def sparse_summands(
    x: Any,
    model: Any,
    offsets: Any,
    grid: float,
    features: float,
    unit: float,
    total: Any,
    lists: Any,
    read: Any,
    weights: Any,
    out: Any,
) -> None:
    """The same of sparse rows, in whole numbers; ``model`` is (d, C), ``offsets`` is the centre times it."""
    starts, columns, values, scales = x
    classes, read_by, written = model.shape[1], model.ravel(), total.ravel()
    told, heard, whole = np.zeros(classes), np.zeros(classes), np.zeros(classes, dtype=np.int64)
    for i in range(len(scales)):
        first, last = starts[i], starts[i + 1] if features > 0.0 else starts[i]
        sparse_score(columns, values, first, last, scales[i], read_by, offsets, grid, told)
        _residual(told, i, lists, read, weights, heard, out)
        for c in range(classes):
            told[c] *= features
        add_sparse(columns, values, first, last, scales[i], told, 1 / unit, whole, written)


@njit(cache=True, nogil=True)
def spread_rows(starts: Any, entries: Any, chosen: Any, messages: Any, table: Any) -> None:
    """Row i of ``messages`` is added to every row of ``table`` that the list at ``chosen[i]`` names."""
    written, width = table.ravel(), table.shape[1]
    for i in range(len(messages)):
        add_to_listed(entries, starts[chosen[i]], starts[chosen[i] + 1], messages[i], width, written)


@njit(cache=True, nogil=True)
def read_rows(starts: Any, entries: Any, chosen: Any, table: Any, out: Any) -> None:
    """``out[i]`` becomes the sum of the rows of ``table`` that the list at ``chosen[i]`` names."""
    read, width = table.ravel(), table.shape[1]
    for i in range(len(out)):
        add_listed(entries, starts[chosen[i]], starts[chosen[i] + 1], read, width, out[i])


@njit(cache=True, nogil=True)
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
