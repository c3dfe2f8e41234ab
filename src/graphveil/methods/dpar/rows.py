"""DPAR's rows: what is done to a released PageRank matrix, all of it post-processing of its release."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class MixedRows:
    """``columns[i, j]`` with ``weights[i, j]``; weight 0 fills up short rows."""

    columns: np.ndarray
    weights: np.ndarray

    def with_self(self, sources: np.ndarray, weight: float) -> MixedRows:
        """Give the source itself this weight and the picks the rest."""
        if weight == 0:
            return self
        columns = np.concatenate([sources[:, None], self.columns], axis=1)
        own = np.full((len(sources), 1), weight)
        return MixedRows(columns, np.concatenate([own, (1 - weight) * self.weights], axis=1))

    def capped_columns(self, most: int, sources: np.ndarray) -> MixedRows:
        """Keep each column in the ``most`` heaviest of the rows it does not own (l0 cap); ``sources[i]`` owns row i."""
        weights = self.weights.copy()
        visits = np.flatnonzero(self.columns != sources[:, None])
        flat, value = self.columns.ravel()[visits], weights.ravel()
        order = np.lexsort((-value[visits], flat))
        first = np.searchsorted(flat[order], flat[order])
        value[visits[order[np.arange(flat.size) - first >= most]]] = 0.0
        return MixedRows(self.columns, weights)

    def with_own_rows(self, slots: np.ndarray) -> MixedRows:
        """More rows behind these: one for each of ``slots``, of weight 1 on itself."""
        width = self.columns.shape[1]
        own = np.zeros((slots.size, width))
        own[:, :1] = 1.0
        columns = np.concatenate([self.columns, np.repeat(slots[:, None], width, axis=1)])
        return MixedRows(columns, np.concatenate([self.weights, own]))

    def matrix(self, nodes: int) -> sp.csr_matrix:
        """Sparse, one column per node; repeated entries are added up."""
        kept = self.weights != 0
        places = np.nonzero(kept)[0], self.columns[kept]
        return sp.csr_matrix((self.weights[kept], places), shape=(len(self.columns), nodes))

    def clipped_columns(self, norm: float, order: int, up: bool = False) -> MixedRows:
        """Scale columns down whose l1 (``order=1``) or l2 (``order=2``) norm exceeds ``norm``; repeated entries are added up.

        ``up``: shorter ones are scaled up to it, too.
        """
        keys = self.columns + np.arange(len(self.columns))[:, None] * (int(self.columns.max(initial=0)) + 1)
        _, where = np.unique(keys.ravel(), return_inverse=True)
        summed = np.bincount(where, weights=self.weights.ravel())
        column = np.zeros(summed.size, dtype=np.int64)
        column[where] = self.columns.ravel()
        norms = np.bincount(column, weights=np.abs(summed) ** order) ** (1 / order)
        scale = np.minimum(math.inf if up else 1.0, norm / np.maximum(norms, 1e-300)) * (1 - 1e-12)
        return MixedRows(self.columns, self.weights * scale[self.columns])


def top_entries(noisy: np.ndarray, picks: int) -> MixedRows:
    """The ``picks`` largest entries of every row, as they are."""
    columns = np.argpartition(-noisy, picks - 1, axis=1)[:, :picks]
    return MixedRows(columns, np.take_along_axis(noisy, columns, axis=1))


def shares_of(values: np.ndarray) -> np.ndarray:
    """The positive ones of every row, divided by their sum; rows without any are zero."""
    positive = np.maximum(values, 0.0)
    return np.asarray(positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-12))
