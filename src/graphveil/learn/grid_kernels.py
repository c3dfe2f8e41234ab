"""Loops over rows on a grid (``grid_rows.py``): four dense rows share a pass over weights and sums, sparse ones go one by one.

Products and sums are exact, so compilers may add up in any order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from graphveil.graph.kernels.list_sums import ONE, THREE, TWO
from graphveil.learn.centred_kernels import dense_row

ANY_ORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True)
def dense_rows(x: Any, chosen: Any, centre: Any, floor: float, steps: float, out: Any, squares: Any) -> None:
    """``out[i]`` becomes the centred row of ``x[chosen[i]]`` truncated to 1 / steps, ``squares[i]`` its squared norm."""
    row = np.empty(len(centre))
    for i in range(len(chosen)):
        dense_row(x[chosen[i]], centre, floor, row)
        square = 0.0
        for j in range(len(centre)):
            whole = np.trunc(row[j] * steps)
            square += whole * whole
            out[i, j] = whole / steps
        squares[i] = square / (steps * steps)


@njit(cache=True, nogil=True)
def sparse_scales(
    starts: Any,
    columns: Any,
    values: Any,
    occupied: Any,
    middle: Any,
    floor: float,
    grid: float,
    scales: Any,
    squares: Any,
) -> None:
    """s and the squared norm of ``s (u - m)`` of every row."""
    length = np.int64(0)
    for j in range(len(middle)):
        length += middle[j] * middle[j]
    for i in range(len(starts) - 1):
        if not occupied[i]:
            scales[i] = squares[i] = 0.0
            continue
        far = length
        for at in range(starts[i], starts[i + 1]):
            value = np.int64(values[at])
            far += value * (value - 2 * middle[columns[at]])
        distance = math.sqrt(float(far)) * grid
        scales[i] = 1.0 / max(distance, floor)
        squares[i] = (scales[i] * distance) ** 2


@njit(cache=True, nogil=True)
def _load(x: Any, first: int, filled: int, rows: Any) -> None:
    """Up to four rows of x as float64; the others become zero."""
    for k in range(4):
        if k < filled:
            for j in range(x.shape[1]):
                rows[k, j] = x[first + k, j]
        else:
            rows[k] = 0.0


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _four_scores(rows: Any, weights: Any, out: Any, at: int) -> None:
    """``out[:, at]`` becomes the products of four rows with these weights."""
    a = b = c = d = 0.0
    first, second, third, fourth = rows[0], rows[1], rows[2], rows[3]
    for j in range(len(weights)):
        weight = weights[j]
        a += first[j] * weight
        b += second[j] * weight
        c += third[j] * weight
        d += fourth[j] * weight
    out[0, at], out[1, at], out[2, at], out[3, at] = a, b, c, d


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _add_four(rows: Any, a: float, b: float, c: float, d: float, out: Any) -> None:
    """Four rows, times a, b, c and d, are added to ``out``."""
    first, second, third, fourth = rows[0], rows[1], rows[2], rows[3]
    for j in range(len(out)):
        out[j] += (first[j] * a + second[j] * b) + (third[j] * c + fourth[j] * d)


@njit(cache=True, nogil=True)
def dense_scores(x: Any, weights: Any, out: Any) -> None:
    """``out[i]`` becomes the scores of row i; weights are (C, d)."""
    rows, scores = np.zeros((4, x.shape[1])), np.zeros((4, len(weights)))
    for first in range(0, len(x), 4):
        filled = min(4, len(x) - first)
        _load(x, first, filled, rows)
        for c in range(len(weights)):
            _four_scores(rows, weights[c], scores, c)
        for k in range(filled):
            out[first + k] = scores[k]


@njit(cache=True, nogil=True)
def dense_sums(x: Any, coefficients: Any, unit: float, out: Any) -> None:
    """Rows times their coefficients, truncated to ``unit``, are added to ``out`` (C, d)."""
    rows, told, steps = np.zeros((4, x.shape[1])), np.zeros((4, len(out))), 1 / unit
    for first in range(0, len(x), 4):
        filled = min(4, len(x) - first)
        _load(x, first, filled, rows)
        told[:] = 0.0
        for k in range(filled):
            for c in range(len(out)):
                told[k, c] = np.trunc(coefficients[first + k, c] * steps) * unit
        for c in range(len(out)):
            _add_four(rows, told[0, c], told[1, c], told[2, c], told[3, c], out[c])


@njit(cache=True, nogil=True)
def sparse_scores(
    starts: Any, columns: Any, values: Any, scales: Any, grid: float, weights: Any, offsets: Any, out: Any
) -> None:
    """``out[i]`` becomes ``s (u - m) . weights`` of row i; ``offsets`` is m . weights.

    Weights are (d, P), P the number of classes rounded up to fours: four sums stay in registers while a row is read.
    """
    flat, padded = weights.ravel(), weights.shape[1]
    width, row = np.uint64(padded), np.empty(padded)
    for i in range(len(scales)):
        for c in range(0, padded, 4):
            one = two = three = four = 0.0
            for at in range(starts[i], starts[i + 1]):
                value, where = float(values[at]), np.uint64(columns[at]) * width + np.uint64(c)
                one += value * flat[where]
                two += value * flat[where + ONE]
                three += value * flat[where + TWO]
                four += value * flat[where + THREE]
            row[c], row[c + 1], row[c + 2], row[c + 3] = one, two, three, four
        for c in range(out.shape[1]):
            out[i, c] = scales[i] * (row[c] * grid - offsets[c])


@njit(cache=True, nogil=True)
def sparse_sums(starts: Any, columns: Any, values: Any, scales: Any, coefficients: Any, unit: float, out: Any) -> None:
    """Rows times their coefficients are added to ``out`` (d + 1, P), in whole numbers; the last row is for m."""
    flat, padded, steps = out.ravel(), out.shape[1], 1 / unit
    width, of_centre, whole = np.uint64(padded), len(out) - 1, np.zeros(padded, dtype=np.int64)
    for i in range(len(scales)):
        for c in range(coefficients.shape[1]):
            whole[c] = np.int64(scales[i] * coefficients[i, c] * steps)  # towards zero
            out[of_centre, c] += whole[c]
        for c in range(0, padded, 4):
            one, two, three, four = whole[c], whole[c + 1], whole[c + 2], whole[c + 3]
            for at in range(starts[i], starts[i + 1]):
                value, where = np.int64(values[at]), np.uint64(columns[at]) * width + np.uint64(c)
                flat[where] += value * one
                flat[where + ONE] += value * two
                flat[where + TWO] += value * three
                flat[where + THREE] += value * four


@njit(cache=True, nogil=True)
def scaled_rows(x: Any, steps: float, values: Any, factors: Any, squares: Any) -> None:
    """``x[i]`` becomes ``factors[i] values[i]``: a power of two, and numbers truncated to 1 / steps, 1 long at the most.

    And its squared norm; a row that is not finite becomes zero, and its squared norm infinite.
    """
    for i in range(len(x)):
        norm = math.sqrt(squared(x[i]))
        if not norm < np.inf:
            values[i], factors[i], squares[i] = 0.0, 1.0, np.inf
            continue
        factor = math.ldexp(1.0, math.frexp(norm)[1]) if norm > 0.0 else 1.0
        factors[i] = factor
        to_whole, back = steps / factor, 1 / steps
        for j in range(x.shape[1]):
            values[i, j] = np.trunc(x[i, j] * to_whole) * back
        squares[i] = squared(values[i]) * factor * factor


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def squared(row: Any) -> float:
    """The sum of squares, in an order that depends on nothing but the length."""
    total = 0.0
    for j in range(len(row)):
        total += row[j] * row[j]
    return total


@njit(cache=True, nogil=True)
def row_squares(x: Any, out: Any) -> None:
    """``out[i]`` becomes the squared norm of row i."""
    for i in range(len(x)):
        out[i] = squared(x[i])


@njit(cache=True, nogil=True)
def kept(x: Any, coins: Any, least: int, scale: float, out: Any) -> None:
    """``out`` becomes ``scale x`` where the coin is at least ``least``, else 0."""
    for i in range(len(x)):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * (scale if coins[i, j] >= least else 0.0)  # no branch to be guessed


@njit(cache=True, nogil=True)
def cut(x: Any, shares: Any, unit: float, out: Any) -> None:
    """``out[i]`` becomes ``shares[i] x[i]`` truncated towards zero to multiples of ``unit``."""
    for i in range(len(x)):
        steps = shares[i] / unit
        for j in range(x.shape[1]):
            out[i, j] = np.trunc(x[i, j] * steps) * unit


@njit(cache=True, nogil=True)
def cut_sum(x: Any, shares: Any, unit: float, total: Any) -> None:
    """The rows of ``cut`` are added to ``total``; whole units, so in any order."""
    for i in range(len(x)):
        steps = shares[i] / unit
        for j in range(x.shape[1]):
            total[j] += np.trunc(x[i, j] * steps) * unit


@njit(cache=True, nogil=True)
def scaled(x: Any, factors: Any) -> None:
    for i in range(len(x)):
        for j in range(x.shape[1]):
            x[i, j] *= factors[i]


@njit(cache=True, nogil=True)
def moved_and_scaled(x: Any, offsets: Any, factors: Any) -> None:
    """``x[i]`` becomes ``factors[i] (x[i] - offsets)``."""
    for i in range(len(x)):
        for j in range(x.shape[1]):
            x[i, j] = factors[i] * (x[i, j] - offsets[j])
