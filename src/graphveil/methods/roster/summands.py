"""The gradient sums of one step in one pass over the records of a block: logits, residuals, their clipped share, messages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from graphveil.graph.kernels.list_sums import add_listed, add_to_listed
from graphveil.graph.lists import GRID
from graphveil.learn.centred_sums import BIAS
from graphveil.learn.grid_kernels import dense_scores, dense_sums, sparse_scores, sparse_sums

CHUNK = 64  # records whose rows stay in the cache from the scores to the sums


@njit(cache=True, nogil=True)
def _residuals(told: Any, start: int, people: Any, read: Any, weights: Any, out: Any) -> None:
    """``told``, the logits that the features of records from ``start`` on give, become ``f (softmax - y)``; 0 without a label.

    ``share sum of codes[j], j in list`` and ``constant`` are added to the logits first. ``f = scale min(1, clip / norm)``,
    ``norm^2 = |softmax - y|^2 wide + slot^2 (1 - 1/C)``: the whole summand, of which the residual is multiplied by rows of
    squared norm ``wide`` and ``slot (1/C - y)`` goes into the own slot. Messages, own slot and constant are truncated towards
    zero to the grid 2^-24, so that their sums are exact in any order.
    """
    starts, entries, chosen, share, labels, wide = people
    codes, constant = read
    of_lists, slot, clip, scale = weights
    messages, own, bias = out
    classes = told.shape[1]
    heard, even = np.empty(classes), 1.0 / classes
    for k in range(len(told)):
        i = start + k
        y = labels[i]
        if y < 0:
            told[k] = 0.0
            continue
        if of_lists > 0.0:
            add_listed(entries, starts[chosen[i]], starts[chosen[i] + 1], codes, classes, heard)
            for c in range(classes):
                told[k, c] += share[i] * heard[c]
        most = -np.inf
        for c in range(classes):
            told[k, c] += constant[c]
            most = max(most, told[k, c])
        total = 0.0
        for c in range(classes):
            told[k, c] = np.exp(told[k, c] - most)
            total += told[k, c]
        square = 0.0
        for c in range(classes):
            residual = told[k, c] / total
            if c == y:
                residual -= 1.0
            told[k, c] = residual
            square += residual * residual
        norm = math.sqrt(square * wide[i] + slot * slot * (1.0 - even))
        factor = scale * min(1.0, clip / norm) if norm > 0.0 else scale
        for c in range(classes):
            told[k, c] *= factor
            bias[c] += np.trunc(BIAS * told[k, c] / GRID) * GRID
        if of_lists > 0.0:
            for c in range(classes):
                messages[i, c] = np.trunc(share[i] * (of_lists * told[k, c]) / GRID) * GRID
            if slot > 0.0:
                for c in range(classes):
                    mine = even - 1.0 if c == y else even
                    own[i, c] = np.trunc(slot * factor * mine / GRID) * GRID


@njit(cache=True, nogil=True)
def dense_summands(
    x: Any, model: Any, features: float, unit: float, total: Any, people: Any, read: Any, weights: Any, out: Any
) -> None:
    """Residuals of dense rows; those times ``features`` and their rows are added to ``total`` (C, d); ``model`` is (C, d)."""
    told = np.zeros((CHUNK, len(model)))
    for first in range(0, len(x), CHUNK):
        part = told[: min(CHUNK, len(x) - first)]
        if features > 0.0:
            dense_scores(x[first : first + len(part)], model, part)
        else:
            part[:] = 0.0
        _residuals(part, first, people, read, weights, out)
        if features > 0.0:
            part *= features
            dense_sums(x[first : first + len(part)], part, unit, total)


@njit(cache=True, nogil=True)
def sparse_summands(
    x: Any, model: Any, features: float, unit: float, total: Any, people: Any, read: Any, weights: Any, out: Any
) -> None:
    """The same of sparse rows, in whole numbers (``sparse_sums``); ``model``: weights in fours, those of the centre, the grid."""
    (starts, columns, values, scales), (of_features, offsets, grid) = x, model
    told = np.zeros((CHUNK, len(offsets)))
    for first in range(0, len(scales), CHUNK):
        part = told[: min(CHUNK, len(scales) - first)]
        here, scale = starts[first : first + len(part) + 1], scales[first : first + len(part)]
        if features > 0.0:
            sparse_scores(here, columns, values, scale, grid, of_features, offsets, part)
        else:
            part[:] = 0.0
        _residuals(part, first, people, read, weights, out)
        if features > 0.0:
            part *= features
            sparse_sums(here, columns, values, scale, part, unit, total)


@njit(cache=True, nogil=True)
def spread_rows(starts: Any, entries: Any, chosen: Any, messages: Any, table: Any) -> None:
    """Row i of ``messages`` is added to every row of ``table`` that the list at ``chosen[i]`` names."""
    written, width = table.ravel(), table.shape[1]
    for i in range(len(messages)):
        add_to_listed(entries, starts[chosen[i]], starts[chosen[i] + 1], messages[i], width, written)


@njit(cache=True, nogil=True)
def add_rows(slots: Any, rows: Any, table: Any) -> None:
    """Row i is added to row ``slots[i]`` of ``table``."""
    for i in range(len(rows)):
        for c in range(rows.shape[1]):
            table[slots[i], c] += rows[i, c]


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
