"""DPAR's rows: what is done to a released PageRank matrix, and clipped gradients of rows that mix several nodes.

A row i has at most K + 1 entries ``(j, pi_ij)`` and the prediction ``sum_j pi_ij f(x_j)``, ``f(x) = W2 relu(W1 x)``. Its gradient

    dW2_i = g_i (sum_j pi_ij h_ij)^T,   dW1_i = sum_j d_ij x_ij^T,   d_ij = pi_ij (W2^T g_i) * [h_ij > 0]

has squared norm ``||g_i||^2 ||sum_j pi_ij h_ij||^2 + sum_jj' <d_ij, d_ij'> <x_ij, x_ij'>``: clipping needs no per-row gradient.
Everything here that touches the matrix alone is post-processing of its release.
"""

from __future__ import annotations

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

    def clipped_columns(self, norm: float, order: int) -> MixedRows:
        """Scale columns down whose l1 (``order=1``) or l2 (``order=2``) norm exceeds ``norm``; repeated entries are added up."""
        keys = self.columns + np.arange(len(self.columns))[:, None] * (int(self.columns.max(initial=0)) + 1)
        _, where = np.unique(keys.ravel(), return_inverse=True)
        summed = np.bincount(where, weights=self.weights.ravel())
        column = np.zeros(summed.size, dtype=np.int64)
        column[where] = self.columns.ravel()
        norms = np.bincount(column, weights=np.abs(summed) ** order) ** (1 / order)
        scale = np.minimum(1.0, norm / np.maximum(norms, 1e-300)) * (1 - 1e-12)
        return MixedRows(self.columns, self.weights * scale[self.columns])


def top_entries(noisy: np.ndarray, picks: int) -> MixedRows:
    """The ``picks`` largest entries of every row; positive ones, made to add up to 1."""
    columns = np.argpartition(-noisy, picks - 1, axis=1)[:, :picks]
    values = np.maximum(np.take_along_axis(noisy, columns, axis=1), 0.0)
    return MixedRows(columns, unit_sum(values))


def unit_sum(values: np.ndarray) -> np.ndarray:
    """Rows divided by their sum; rows of zeros stay."""
    return np.asarray(values / np.maximum(values.sum(axis=1, keepdims=True), 1e-12))


def mixed_gradient_sum(
    parameters: np.ndarray,
    shape: tuple[int, int, int],
    x: np.ndarray,
    weights: np.ndarray,
    labels: np.ndarray,
    clip: float | None,
) -> np.ndarray:
    """``sum_i min(1, clip / ||grad_i||) grad_i`` as one flat vector; rows without a label contribute nothing.

    ``x`` has shape (rows, entries, features), ``parameters`` is W1 (hidden x features) then W2 (classes x hidden).
    """
    features, hidden, classes = shape
    w1 = parameters[: hidden * features].reshape(hidden, features)
    w2 = parameters[hidden * features :].reshape(classes, hidden)
    h = np.maximum(x @ w1.T, 0.0)
    mixed = np.einsum("ij,ijh->ih", weights, h)
    logits = mixed @ w2.T
    logits -= logits.max(axis=1, keepdims=True)
    g = np.exp(logits)
    g /= g.sum(axis=1, keepdims=True)
    known = labels >= 0
    g[np.flatnonzero(known), labels[known]] -= 1.0
    g *= known[:, None]
    d = weights[:, :, None] * (g @ w2)[:, None, :] * (h > 0)
    gram = np.einsum("ijh,ikh->ijk", d, d) * np.einsum("ijf,ikf->ijk", x, x)
    squares = (g**2).sum(axis=1) * (mixed**2).sum(axis=1) + np.maximum(gram.sum(axis=(1, 2)), 0.0)
    factors = np.ones(len(g))
    if clip is not None:
        slack = 1e-9 + 1e-12 * np.abs(gram).sum(axis=(1, 2))
        factors = np.minimum(1.0, clip * (1 - 1e-9) / np.sqrt(squares + slack))
    factors = np.where(np.isfinite(squares), factors, 0.0)
    first = (d * factors[:, None, None]).reshape(-1, hidden).T @ x.reshape(-1, features)
    second = (g * factors[:, None]).T @ mixed
    return np.concatenate([first.ravel(), second.ravel()])
