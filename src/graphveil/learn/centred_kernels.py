"""Centred unit rows one at a time: their scores, and sums of what they bring, exact whatever the order.

A row is ``s (u - m)`` and a constant: u the features divided by their norm, m the centre, ``s = 1 / max(|u - m|, floor)``, 0
where there are no features. Every number of a row depends on that row and released numbers alone and is computed in one fixed
order, so that it does not matter how records were cut into blocks. Sums are kept in whole units of a public grid: additions do
not round. Labels below 0 mean that a row takes no part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

LEAST = 2.0**-1000  # below this 1/x overflows: such rows count as empty
SHORTER = 1 - 2.0**-52  # unit rows are not longer than 1
RESERVE = 1 - 1e-10  # of a clipping norm, for the rounding of norms


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nnan", "ninf", "nsz"})
def _largest(values: Any, size: int) -> float:
    most = 0.0
    for j in range(size):
        most = max(most, abs(float(values[j])))
    return most


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _divided(values: Any, divisor: float, row: Any, size: int) -> float:
    """``row`` becomes the values divided; its squared norm."""
    square = 0.0
    for j in range(size):
        value = float(values[j]) / divisor
        row[j] = value
        square += value * value
    return square


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _moved(row: Any, factor: float, centre: Any, size: int) -> float:
    """``row`` becomes ``factor row - centre``; its squared norm."""
    square = 0.0
    for j in range(size):
        value = row[j] * factor - centre[j]
        row[j] = value
        square += value * value
    return square


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a: Any, b: Any, size: int) -> float:
    total = 0.0
    for j in range(size):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True)
def dense_row(values: Any, centre: Any, floor: float, row: Any) -> float:
    """The first numbers of ``row`` become the centred unit row of these values; its squared norm."""
    d = len(centre)
    largest = _largest(values, d)
    if not largest > LEAST:
        for j in range(d):
            row[j] = 0.0
        return 0.0
    shrink = SHORTER / max(math.sqrt(_divided(values, largest, row, d)), 1.0)
    far = _moved(row, shrink, centre, d)
    scale = 1.0 / max(math.sqrt(far), floor)
    for j in range(d):
        row[j] *= scale
    return _dot(row, row, d)


@njit(cache=True, nogil=True)
def _read_row(values: Any, ready: bool, centre: Any, floor: float, row: Any) -> float:
    """The same, of values that may be centred already."""
    if not ready:
        return dense_row(values, centre, floor, row)
    for j in range(len(centre)):
        row[j] = values[j]
    return _dot(row, row, len(centre))


@njit(cache=True, nogil=True)
def dense_rows(x: Any, centre: Any, floor: float, out: Any) -> None:
    """``out[i]`` becomes the centred row of ``x[i]``."""
    for i in range(len(x)):
        dense_row(x[i], centre, floor, out[i])


@njit(cache=True, nogil=True)
def _sparse_row(
    data: Any, columns: Any, first: int, last: int, centre: Any, length: float, floor: float, row: Any
) -> tuple[float, float]:
    """``row`` becomes the entries ``s u`` of a row; s, and the squared norm of ``s (u - m)``, not below the truth.

    ``length`` is |m|^2. What is subtracted from it is among its own terms, so its error is some 1e-16 |m|^2; ``floor^2`` is 1e-4.
    """
    largest = 0.0
    for at in range(first, last):
        largest = max(largest, abs(data[at]))
    if not largest > LEAST:
        return 0.0, 0.0
    square = 0.0
    for at in range(first, last):
        value = data[at] / largest
        row[at - first] = value
        square += value * value
    shrink, far, rest = SHORTER / max(math.sqrt(square), 1.0), 0.0, length
    for at in range(first, last):
        middle = centre[columns[at]]
        row[at - first] *= shrink
        value = row[at - first] - middle
        far += value * value
        rest -= middle * middle
    far += max(rest, 0.0)
    scale = 1.0 / max(math.sqrt(far), floor)
    for at in range(first, last):
        row[at - first] *= scale
    return scale, (far + 1e-13 * (1.0 + length)) * scale * scale


@njit(cache=True, nogil=True)
def _residual(scores: Any, label: int, wide: float, clip: float, unit: float) -> None:
    """Scores become ``f (softmax - y) / unit``, f = min(1, clip / |gradient|) for a row of squared norm ``wide``."""
    most, total, square = -np.inf, 0.0, 0.0
    for c in range(len(scores)):
        most = max(most, scores[c])
    for c in range(len(scores)):
        scores[c] = math.exp(scores[c] - most)
        total += scores[c]
    for c in range(len(scores)):
        scores[c] /= total
        if c == label:
            scores[c] -= 1.0
        square += scores[c] * scores[c]
    norm = math.sqrt(square * wide)
    factor = (min(1.0, clip * RESERVE / norm) if norm > 0.0 else 1.0) / unit
    for c in range(len(scores)):
        scores[c] *= factor


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _four_dots(rows: Any, weights: Any, size: int, out: Any, at: int) -> None:
    a = b = c = d = 0.0
    first, second, third, fourth = rows[0], rows[1], rows[2], rows[3]
    for j in range(size):
        weight = weights[j]
        a += first[j] * weight
        b += second[j] * weight
        c += third[j] * weight
        d += fourth[j] * weight
    out[0, at], out[1, at], out[2, at], out[3, at] = a, b, c, d


@njit(cache=True, nogil=True)
def _add_four(rows: Any, a: float, b: float, c: float, d: float, size: int, out: Any) -> None:
    first, second, third, fourth = rows[0], rows[1], rows[2], rows[3]
    for j in range(size):
        near = np.trunc(first[j] * a) + np.trunc(second[j] * b)
        out[j] += near + (np.trunc(third[j] * c) + np.trunc(fourth[j] * d))


@njit(cache=True, nogil=True)
def dense_sums(
    x: Any,
    ready: bool,
    labels: Any,
    centre: Any,
    floor: float,
    bias: float,
    weights: Any,
    clip: float,
    unit: float,
    out: Any,
) -> None:
    """Add to ``out`` (C, d + 1), in units of ``unit``, the clipped softmax gradients of the rows; each shortened to whole units.

    Four rows share a pass over the weights and the sums; what becomes of one does not depend on the other three.
    """
    d, classes, filled = len(centre), len(weights), 0
    rows, scores = np.zeros((4, d + 1)), np.zeros((4, classes))
    wide, known = np.zeros(4), np.zeros(4, dtype=np.int64)
    rows[:, d] = bias
    for i in range(len(x) + 1):
        if i < len(x):
            if labels[i] < 0:
                continue
            wide[filled] = _read_row(x[i], ready, centre, floor, rows[filled]) + bias * bias
            known[filled] = labels[i]
            filled += 1
            if filled < 4:
                continue
        for c in range(classes):
            _four_dots(rows, weights[c], d + 1, scores, c)
        for k in range(4):
            if k < filled:
                _residual(scores[k], known[k], wide[k], clip, unit)
            else:
                scores[k] = 0.0
        for c in range(classes):
            _add_four(rows, scores[0, c], scores[1, c], scores[2, c], scores[3, c], d + 1, out[c])
        filled = 0


@njit(cache=True, nogil=True)
def sparse_sums(
    starts: Any,
    columns: Any,
    data: Any,
    labels: Any,
    centre: Any,
    floor: float,
    bias: float,
    weights: Any,
    clip: float,
    unit: float,
    out: Any,
) -> None:
    """The same for rows in CSR; the last two columns of ``out`` (C, d + 2) are the sums of s f (p - y) and of the constant."""
    d, classes = len(centre), len(weights)
    scores, length = np.empty(classes), _dot(centre, centre, d)
    middle = np.array([_dot(centre, weights[c], d) for c in range(classes)])
    row = np.empty(max(1, np.max(np.diff(starts)) if len(starts) > 1 else 1))
    for i in range(len(starts) - 1):
        if labels[i] < 0:
            continue
        first, last = starts[i], starts[i + 1]
        scale, square = _sparse_row(data, columns, first, last, centre, length, floor, row)
        for c in range(classes):
            total = 0.0
            for at in range(first, last if scale > 0.0 else first):
                total += row[at - first] * weights[c, columns[at]]
            scores[c] = total - scale * middle[c] + bias * weights[c, d]
        _residual(scores, labels[i], square + bias * bias, clip, unit)
        for c in range(classes):
            told = scores[c]
            if scale > 0.0:
                for at in range(first, last):
                    out[c, columns[at]] += np.trunc(row[at - first] * told)
                out[c, d] += np.trunc(scale * told)
            out[c, d + 1] += np.trunc(bias * told)


@njit(cache=True, nogil=True)
def dense_scores(
    x: Any, ready: bool, wanted: Any, centre: Any, floor: float, bias: float, weights: Any, out: Any
) -> None:
    """``out[i]`` becomes the scores of row i, where it is wanted."""
    d, filled = len(centre), 0
    rows, scores, whose = np.zeros((4, d + 1)), np.zeros((4, len(weights))), np.zeros(4, dtype=np.int64)
    rows[:, d] = bias
    for i in range(len(x) + 1):
        if i < len(x):
            if not wanted[i]:
                continue
            _read_row(x[i], ready, centre, floor, rows[filled])
            whose[filled] = i
            filled += 1
            if filled < 4:
                continue
        for c in range(len(weights)):
            _four_dots(rows, weights[c], d + 1, scores, c)
        for k in range(filled):
            out[whose[k]] = scores[k]
        filled = 0


@njit(cache=True, nogil=True)
def sparse_scores(
    starts: Any,
    columns: Any,
    data: Any,
    wanted: Any,
    centre: Any,
    floor: float,
    bias: float,
    weights: Any,
    out: Any,
) -> None:
    """The same for rows in CSR."""
    d, classes = len(centre), len(weights)
    length = _dot(centre, centre, d)
    middle = np.array([_dot(centre, weights[c], d) for c in range(classes)])
    row = np.empty(max(1, np.max(np.diff(starts)) if len(starts) > 1 else 1))
    for i in range(len(starts) - 1):
        if wanted[i]:
            first, last = starts[i], starts[i + 1]
            scale, _ = _sparse_row(data, columns, first, last, centre, length, floor, row)
            for c in range(classes):
                total = 0.0
                for at in range(first, last if scale > 0.0 else first):
                    total += row[at - first] * weights[c, columns[at]]
                out[i, c] = total - scale * middle[c] + bias * weights[c, d]
