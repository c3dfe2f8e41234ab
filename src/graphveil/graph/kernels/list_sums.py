"""Sums along contact lists given by their entries alone: no weights are stored, none are multiplied."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def read(starts: Any, entries: Any, table: Any, out: Any) -> None:
    """``out[i]`` becomes the sum of the rows of ``table`` that list i names."""
    for i in range(len(starts) - 1):
        for c in range(table.shape[1]):
            out[i, c] = 0.0
        for at in range(starts[i], starts[i + 1]):
            j = entries[at]
            for c in range(table.shape[1]):
                out[i, c] += table[j, c]


@njit(cache=True)
def spread(starts: Any, entries: Any, values: Any, out: Any) -> None:
    """Row i of ``values`` is added to every row of ``out`` that list i names."""
    for i in range(len(starts) - 1):
        for at in range(starts[i], starts[i + 1]):
            j = entries[at]
            for c in range(values.shape[1]):
                out[j, c] += values[i, c]
