"""Sums along contact lists given by their entries alone: no weights are stored, none are multiplied.

Columns are taken four at a time: four sums stay in registers while a list is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@njit(cache=True, nogil=True)
def add_listed(entries: Any, first: int, last: int, table: Any, width: int, total: Any) -> None:
    """``total`` becomes the sum of the rows of the flat ``table`` that ``entries[first:last]`` names."""
    columns, column = np.uint64(width), 0
    while column + 4 <= width:
        a = b = c = d = 0.0
        offset = np.uint64(column)
        for at in range(first, last):
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
            a += table[np.uint64(entries[at]) * columns + offset]
        total[rest] = a


@njit(cache=True, nogil=True)
def add_to_listed(entries: Any, first: int, last: int, row: Any, width: int, table: Any) -> None:
    """``row`` is added to every row of the flat ``table`` that ``entries[first:last]`` names."""
    columns, column = np.uint64(width), 0
    while column + 4 <= width:
        a, b, c, d = row[column], row[column + 1], row[column + 2], row[column + 3]
        offset = np.uint64(column)
        for at in range(first, last):
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
            table[np.uint64(entries[at]) * columns + offset] += a


@njit(cache=True, nogil=True)
def read(starts: Any, entries: Any, table: Any, out: Any) -> None:
    """``out[i]`` becomes the sum of the rows of ``table`` that list i names."""
    flat, width = table.ravel(), table.shape[1]
    for i in range(len(starts) - 1):
        add_listed(entries, starts[i], starts[i + 1], flat, width, out[i])


@njit(cache=True, nogil=True)
def spread(starts: Any, entries: Any, values: Any, out: Any) -> None:
    """Row i of ``values`` is added to every row of ``out`` that list i names."""
    flat, width = out.ravel(), out.shape[1]
    for i in range(len(starts) - 1):
        add_to_listed(entries, starts[i], starts[i + 1], values[i], width, flat)


@njit(cache=True, nogil=True)
def count_heard(starts: Any, entries: Any, place: Any, out: Any) -> None:
    """``out[i]`` becomes the number of entries of list i that have a place."""
    for i in range(len(starts) - 1):
        heard = 0
        for at in range(starts[i], starts[i + 1]):
            heard += place[entries[at]] >= 0
        out[i] = heard


@njit(cache=True, nogil=True)
def spread_to(starts: Any, entries: Any, place: Any, values: Any, out: Any) -> None:
    """Row i of ``values`` is added to the row of ``out`` at the place of everybody whom list i names."""
    width = values.shape[1]
    for i in range(len(starts) - 1):
        silent = True
        for c in range(width):
            silent = silent and values[i, c] == 0.0
        if silent:
            continue
        for at in range(starts[i], starts[i + 1]):
            row = place[entries[at]]
            if row >= 0:
                for c in range(width):
                    out[row, c] += values[i, c]
