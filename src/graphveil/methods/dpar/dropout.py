"""Dropout whose coins are a public function of key, slot and column.

A stream of coins would be read further where a record has more features, and then shift everybody else's; here a record's coins
are its own. The authors' code never switches dropout off, so the predictor reads the same function with a key of its own.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from graphveil.graph.rows import SparseRows


def dropped(rows: SparseRows, slots: np.ndarray, key: int, rate: float) -> SparseRows:
    """Every number is zero with probability ``rate``, else divided by 1 - rate; row i is that of ``slots[i]``."""
    if rate == 0:
        return rows
    values = rows.values
    owners = np.repeat(np.asarray(slots), np.diff(values.indptr))
    data = values.data * _factors(owners, values.indices, key, rate)
    return SparseRows(sp.csr_matrix((data, values.indices, values.indptr), shape=values.shape))


def dropped_units(slots: np.ndarray, width: int, key: int, rate: float) -> np.ndarray:
    """What ``width`` hidden units of each of these slots are multiplied by."""
    columns = np.arange(width)
    return _factors(np.asarray(slots)[:, None], -1 - columns[None, :], key, rate)


def _factors(slots: np.ndarray, columns: np.ndarray, key: int, rate: float) -> np.ndarray:
    with np.errstate(over="ignore"):
        mixed = np.uint64(key) + slots.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed = mixed ^ (columns.astype(np.int64).astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    uniform = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.where(uniform < rate, 0.0, 1 / (1 - rate))
