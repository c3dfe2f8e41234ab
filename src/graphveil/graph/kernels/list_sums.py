"""Sums along contact lists given by their entries alone: no weights are stored, none are multiplied.

Columns are taken eight at a time, a cache line of float64: eight sums stay in registers while a list is read. Rows are asked for
``AHEAD`` entries before they are needed, beyond the end of a list in the next one's: a list alone is too short to wait for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from graphveil.graph.kernels.lines import prefetch

AHEAD = 20
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
FIVE, SIX, SEVEN = np.uint64(5), np.uint64(6), np.uint64(7)


@njit(cache=True, nogil=True)
def add_listed(entries: Any, first: int, last: int, table: Any, width: int, total: Any) -> None:
    """``total`` becomes the sum of the rows of the flat ``table`` that ``entries[first:last]`` names."""
    columns, column, final = np.uint64(width), 0, len(entries) - 1
    while column + 8 <= width:
        a = b = c = d = e = f = g = h = 0.0
        offset = np.uint64(column)
        for at in range(first, last):
            prefetch(table, np.uint64(entries[min(at + AHEAD, final)]) * columns + offset)
            where = np.uint64(entries[at]) * columns + offset
            a += table[where]
            b += table[where + ONE]
            c += table[where + TWO]
            d += table[where + THREE]
            e += table[where + FOUR]
            f += table[where + FIVE]
            g += table[where + SIX]
            h += table[where + SEVEN]
        total[column], total[column + 1], total[column + 2], total[column + 3] = a, b, c, d
        total[column + 4], total[column + 5], total[column + 6], total[column + 7] = e, f, g, h
        column += 8
    if column + 4 <= width:
        a = b = c = d = 0.0
        offset = np.uint64(column)
        for at in range(first, last):
            prefetch(table, np.uint64(entries[min(at + AHEAD, final)]) * columns + offset)
            where = np.uint64(entries[at]) * columns + offset
            a += table[where]
            b += table[where + ONE]
            c += table[where + TWO]
            d += table[where + THREE]
        total[column], total[column + 1], total[column + 2], total[column + 3] = a, b, c, d
        column += 4
    for rest in range(column, width):
        a = 0.0
        offset = np.uint64(rest)
        for at in range(first, last):
            prefetch(table, np.uint64(entries[min(at + AHEAD, final)]) * columns + offset)
            a += table[np.uint64(entries[at]) * columns + offset]
        total[rest] = a


@njit(cache=True, nogil=True)
def add_to_listed(entries: Any, first: int, last: int, row: Any, width: int, table: Any) -> None:
    """``row`` is added to every row of the flat ``table`` that ``entries[first:last]`` names."""
    columns, column, final = np.uint64(width), 0, len(entries) - 1
    while column + 8 <= width:
        a, b, c, d = row[column], row[column + 1], row[column + 2], row[column + 3]
        e, f, g, h = row[column + 4], row[column + 5], row[column + 6], row[column + 7]
        offset = np.uint64(column)
        for at in range(first, last):
            prefetch(table, np.uint64(entries[min(at + AHEAD, final)]) * columns + offset)
            where = np.uint64(entries[at]) * columns + offset
            table[where] += a
            table[where + ONE] += b
            table[where + TWO] += c
            table[where + THREE] += d
            table[where + FOUR] += e
            table[where + FIVE] += f
            table[where + SIX] += g
            table[where + SEVEN] += h
        column += 8
    if column + 4 <= width:
        a, b, c, d = row[column], row[column + 1], row[column + 2], row[column + 3]
        offset = np.uint64(column)
        for at in range(first, last):
            prefetch(table, np.uint64(entries[min(at + AHEAD, final)]) * columns + offset)
            where = np.uint64(entries[at]) * columns + offset
            table[where] += a
            table[where + ONE] += b
            table[where + TWO] += c
            table[where + THREE] += d
        column += 4
    for rest in range(column, width):
        a = row[rest]
        offset = np.uint64(rest)
        for at in range(first, last):
            prefetch(table, np.uint64(entries[min(at + AHEAD, final)]) * columns + offset)
            table[np.uint64(entries[at]) * columns + offset] += a


@njit(cache=True, nogil=True)
def read(starts: Any, entries: Any, table: Any, out: Any) -> None:
    """``out[i]`` becomes the sum of the rows of ``table`` that list i names."""
    flat, width = table.ravel(), table.shape[1]
    for i in range(len(starts) - 1):
        add_listed(entries, starts[i], starts[i + 1], flat, width, out[i])


@njit(cache=True, nogil=True)
def spread(starts: Any, entries: Any, values: Any, out: Any) -> None:
    """Row i of ``values`` is added to every row of ``out`` that list i names; rows of zeros cost nothing."""
    flat, width = out.ravel(), out.shape[1]
    for i in range(len(starts) - 1):
        silent = True
        for c in range(width):
            silent = silent and values[i, c] == 0.0
        if not silent:
            add_to_listed(entries, starts[i], starts[i + 1], values[i], width, flat)


@njit(cache=True, nogil=True)
def placed(starts: Any, entries: Any, place: Any) -> Any:
    """The same lists by place: ``place[k]`` for every entry k that has one (not below 0), and where lists then start."""
    final, filled = len(entries) - 1, 0
    found, begins = np.empty(len(entries), dtype=place.dtype), np.empty(len(starts), dtype=np.int64)
    for i in range(len(starts) - 1):
        begins[i] = filled
        for at in range(starts[i], starts[i + 1]):
            prefetch(place, np.uint64(entries[min(at + AHEAD, final)]))
            row = place[np.uint64(entries[at])]
            found[filled] = row
            filled += row >= 0  # no branch to be guessed
    begins[-1] = filled
    return begins, found[:filled]
