"""Public grids on which sums of products are exact in float64, whatever their order.

What a record adds to a sum is a row, in multiples of 2^-a, times coefficients, in multiples of 2^-b. With n such terms of norm at
most L and ``n L 2^(a + b) <= 2^53`` their sum is a 53-bit whole number of 2^-(a+b), and so is every part of it: float64 does not
round. All of n, L, a and b are public. Tests: ``tests/learn/test_grid_rows.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

MOST_BITS = 20  # of a number of a row: rows fit into float32, and weights keep 33 bits
WORD = 53


def row_bits(records: int) -> int:
    """a: half of the bits that a sum over so many records leaves, so that coefficients get as many."""
    return min(MOST_BITS, (WORD - _bits(records)) // 2)


def coefficient_grid(records: int, length: float) -> float:
    """2^-b for a sum over so many records of terms of this length; both are public."""
    return math.ldexp(1.0, row_bits(records) + _bits(records * length) - WORD)


def coefficient_grain(records: int, length: float, classes: int) -> float:
    """How much further two terms of one row can be apart because their coefficients are truncated.

    Coefficients move by one step in every class, and ``u - m``, by which they are multiplied, is at most 2 long.
    """
    return 2 * math.sqrt(classes) * coefficient_grid(records, length)


@dataclass(frozen=True)
class SumGrid:
    """a and 2^-b for sums whose terms may be long, so that both factors get half of the bits that are left."""

    bits: int
    unit: float

    @classmethod
    def of(cls, records: int, length: float) -> Self:
        """For so many records with terms of this length; both are public."""
        free = WORD - _bits(records * length)
        bits = min(MOST_BITS, free // 2)
        return cls(bits, math.ldexp(1.0, bits - free))


def _bits(number: float) -> int:
    return math.ceil(math.log2(max(number, 2.0**-40)))


def rounded_weights(weights: np.ndarray, bits: int) -> np.ndarray:
    """Weights (d, C) on a grid on which their products with rows of ``bits`` bits are exact: |x . w| <= |x| |w|."""
    longest = 1.01 * float(np.sqrt(np.max(np.sum(weights * weights, axis=0), initial=0.0)))
    if not longest:
        return np.ascontiguousarray(weights)
    step = math.ldexp(1.0, _bits(longest) + bits - WORD)
    return np.ascontiguousarray(np.rint(weights / step) * step)
