"""Feature rows centred at a released mean, and mixtures of rows, without ever storing a dense matrix.

Subtracting a mean makes sparse rows dense. Here the centred matrix exists only through its products: with
``X' = diag(s) (X - 1 m^T)``, ``X' W = s * (X W - m W)`` and ``X'^T G = X^T (s * G) - m (1^T (s * G))``.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.errors import InputError
from graphveil.graph.rows import Rows, blocks

UNIT_ROUNDOFF = 2.0**-53


class CentredRows:
    """Unit-length differences to a centre, and a constant last column.

    Row ``i`` is ``[s_i (x_i - m), bias]`` with ``s_i = 1 / max(||x_i - m||, floor)``; an empty row (``x_i = 0``) has
    ``s_i = 0``, i.e. only the constant. Both products use exactly these ``s_i``, so the row *is* this vector whatever
    rounding went into ``s_i``.

    Clipping divides by ``squared_norms()``, which therefore must not be smaller than the truth. The distance comes from
    ``x.x - 2 x.m + m.m``, which cancels when ``x`` is close to ``m``: its absolute error is at most
    ``(d + 8) u (||x|| + ||m||)^2`` with ``u = 2^-53``. Twice that bound is added before the norm is reported; relative
    to ``floor^2`` it is about 1e-9 for unit rows and a thousand columns. A row whose entries are not finite, or whose
    square is not, reports an infinite norm: it is dropped by the gradient engine. Before the subtraction in
    ``transpose_matmul``, terms of unit rows are at most ``(1 + ||m||) / (floor bias)`` times longer than the clipped
    ones: the ``growth`` of ``privacy.noise.summation_error``.
    Test: ``tests/learn/test_centred_rows.py``.
    """

    def __init__(self, rows: Rows, centre: Tensor | np.ndarray, floor: float = 1e-3, bias: float = 0.1) -> None:
        self._rows = rows
        self._centre = torch.as_tensor(centre, dtype=torch.float64)
        self._bias = bias
        width = rows.shape[1]
        if self._centre.shape != (width,):
            raise InputError(f"the centre has shape {tuple(self._centre.shape)}, the rows have {width} columns")
        if not floor > 0:
            raise InputError(f"floor must be positive, got {floor}")

        squares = rows.squared_norms().to(torch.float64)
        centre_square = self._centre.square().sum()
        distance = squares - 2 * rows.matmul(self._centre[:, None])[:, 0] + centre_square
        error = 2 * (width + 8) * UNIT_ROUNDOFF * (squares.sqrt() + centre_square.sqrt()).square()
        distance.clamp_(min=0)
        finite = torch.isfinite(distance)
        self._scale = torch.where(finite & rows.occupied(), 1 / distance.sqrt().clamp(min=floor), 0.0)
        norms = self._scale.square() * (distance + error) + bias * bias
        self._squared_norms = torch.where(finite, norms, torch.inf)

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows.shape[0], self._rows.shape[1] + 1

    def matmul(self, weight: Tensor) -> Tensor:
        features, constant = weight[:-1], weight[-1]
        product = self._rows.matmul(features)
        product -= self._centre @ features
        product *= self._scale[:, None]
        return product.add_(constant, alpha=self._bias)

    def transpose_matmul(self, gradient: Tensor) -> Tensor:
        scaled = gradient * self._scale[:, None]
        result = gradient.new_empty(self.shape[1], gradient.shape[1])
        torch.outer(self._centre, column_sums(scaled), out=result[:-1])
        torch.sub(self._rows.transpose_matmul(scaled), result[:-1], out=result[:-1])
        torch.mul(column_sums(gradient), self._bias, out=result[-1])
        return result

    def squared_norms(self) -> Tensor:
        return self._squared_norms

    def occupied(self) -> Tensor:
        if self._bias:
            return torch.ones(self.shape[0], dtype=torch.bool)
        return self._scale > 0

    def take(self, index: np.ndarray) -> Self:
        chosen = torch.from_numpy(np.asarray(index))
        taken = object.__new__(type(self))
        taken._rows = self._rows.take(index)
        taken._centre, taken._bias = self._centre, self._bias
        taken._scale, taken._squared_norms = self._scale[chosen], self._squared_norms[chosen]
        return taken


def column_sums(values: Tensor) -> Tensor:
    """The sum of all rows, added up in blocks like ``Rows.transpose_matmul``."""
    parts = [values[block].sum(dim=0) for block in blocks(len(values))]
    return sum(parts[1:], start=parts[0])


class MixtureRows:
    """Weighted sums of rows: row ``i`` is ``sum_j w_ij x_j``.

    Clipping divides by ``squared_norms()``, here ``(sum_j |w_ij| ||x_j||)^2``: never smaller than the truth, and the truth
    itself where a row has a single entry. Test: ``tests/learn/test_mixture_rows.py``.
    """

    def __init__(self, rows: Rows, weights: sp.csr_matrix) -> None:
        if weights.shape[1] != rows.shape[0]:
            raise InputError(f"the weights have {weights.shape[1]} columns, there are {rows.shape[0]} rows")
        # Rows that nobody mixes must not enter, not even as 0 * inf.
        used, where = np.unique(weights.indices, return_inverse=True)
        self._weights = sp.csr_matrix((weights.data, where, weights.indptr), shape=(weights.shape[0], used.size))
        self._rows, self._back = rows.take(used), self._weights.T.tocsr()

    @property
    def shape(self) -> tuple[int, int]:
        return self._weights.shape[0], self._rows.shape[1]

    def matmul(self, weight: Tensor) -> Tensor:
        return torch.from_numpy(self._weights @ self._rows.matmul(weight).numpy())

    def transpose_matmul(self, gradient: Tensor) -> Tensor:
        return self._rows.transpose_matmul(torch.from_numpy(self._back @ gradient.numpy(force=True)))

    def squared_norms(self) -> Tensor:
        return torch.from_numpy(abs(self._weights) @ self._rows.squared_norms().sqrt().numpy()).square_()

    def occupied(self) -> Tensor:
        return torch.from_numpy(abs(self._weights) @ self._rows.occupied().numpy().astype(np.float64) > 0)

    def take(self, index: np.ndarray) -> MixtureRows:
        return MixtureRows(self._rows, self._weights[np.asarray(index)])
