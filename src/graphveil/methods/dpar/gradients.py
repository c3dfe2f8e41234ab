"""Clipped gradients of rows that mix several nodes.

A row i has entries ``(j, pi_ij)`` and the prediction ``sum_j pi_ij f(x_j)``, ``f(x) = W2 relu(W1 x)``. Its gradient

    dW2_i = g_i (sum_j pi_ij h_ij)^T,   dW1_i = sum_j d_ij x_ij^T,   d_ij = pi_ij (W2^T g_i) * [h_ij > 0]

has squared norm ``||g_i||^2 ||sum_j pi_ij h_ij||^2 + sum_jj' <d_ij, d_ij'> <x_ij, x_ij'>``: clipping needs no per-row gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from graphveil.graph.rows import SparseRows, tensor


@dataclass(frozen=True)
class Entries:
    """The entries of some rows of Pi, row by row: ``row[e]`` counts from 0, ``weight[e]`` is pi, ``x`` has a row per entry.

    ``kept``: what hidden units are multiplied by under dropout, a row per entry.
    """

    row: np.ndarray
    weight: np.ndarray
    x: SparseRows
    kept: np.ndarray | None = None

    @classmethod
    def one_each(cls, x: np.ndarray) -> Entries:
        """Rows of one entry of weight 1."""
        return cls(np.arange(len(x)), np.ones(len(x)), SparseRows(sp.csr_matrix(x)))


def mixed_gradient_sum(
    parameters: np.ndarray, shape: tuple[int, int, int], entries: Entries, labels: np.ndarray, clip: float | None
) -> np.ndarray:
    """``sum_i min(1, clip / ||grad_i||) grad_i`` as one flat vector; rows without a label contribute nothing.

    ``parameters`` is W1 (hidden x features) then W2 (classes x hidden); ``labels`` has one number per row.
    """
    features, hidden, classes = shape
    w1 = parameters[: hidden * features].reshape(hidden, features)
    w2 = parameters[hidden * features :].reshape(classes, hidden)
    row, weight, x = entries.row, entries.weight, entries.x
    kept = 1.0 if entries.kept is None else entries.kept
    h = np.maximum(x.matmul(tensor(w1).T).numpy(), 0.0) * kept
    mixing = sp.csr_matrix((weight, (row, np.arange(row.size))), shape=(labels.size, row.size))
    mixed = np.asarray(mixing @ h)
    logits = mixed @ w2.T
    logits -= logits.max(axis=1, keepdims=True)
    g = np.exp(logits)
    g /= g.sum(axis=1, keepdims=True)
    known = labels >= 0
    g[np.flatnonzero(known), labels[known]] -= 1.0
    g *= known[:, None]
    d = weight[:, None] * (g @ w2)[row] * (h > 0) * kept
    crossed, size = _inner_products(row, d, x)
    squares = (g**2).sum(axis=1) * (mixed**2).sum(axis=1) + np.maximum(_by_row(row, crossed, labels.size), 0.0)
    factors = np.ones(labels.size)
    if clip is not None:
        slack = 1e-9 + 1e-12 * _by_row(row, size, labels.size)
        factors = np.minimum(1.0, clip * (1 - 1e-9) / np.sqrt(squares + slack))
    factors = np.where(np.isfinite(squares), factors, 0.0)
    total = np.empty(parameters.size)
    first = total[: hidden * features].reshape(hidden, features)
    x.turned_product(tensor(d * factors[row][:, None]), tensor(first))
    total[hidden * features :] = ((g * factors[:, None]).T @ mixed).ravel()
    return total


def _by_row(row: np.ndarray, values: np.ndarray, rows: int) -> np.ndarray:
    return np.bincount(row, weights=values, minlength=rows)


def _inner_products(row: np.ndarray, d: np.ndarray, x: SparseRows) -> tuple[np.ndarray, np.ndarray]:
    """By entry j, ``sum_j' <d_j, d_j'> <x_j, x_j'>`` over those at or behind it in its row, pairs twice; and of moduli."""
    found = (d**2).sum(axis=1) * x.squared_norms().numpy()
    size = np.abs(found)
    for apart in range(1, row.size):
        here = np.flatnonzero(row[apart:] == row[:-apart])
        if not here.size:
            break
        near, far = x.values[here], x.values[here + apart]
        product = 2 * (d[here] * d[here + apart]).sum(axis=1) * np.asarray(near.multiply(far).sum(axis=1)).ravel()
        found[here] += product
        size[here] += np.abs(product)
    return found, size
