"""Batches of wide sparse rows take a way of their own through the three products; it leads to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.graph.rows import SparseRows
from graphveil.learn import MLP, clipped_gradient_sum
from graphveil.learn.kernels import COLUMNS, unit_columns


@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_a_small_batch_of_wide_rows_has_the_products_of_the_dense_matrix(width):
    rng = np.random.default_rng(width)
    dense = np.where(rng.random((6, 200)) < 0.04, rng.normal(size=(6, 200)), 0.0)
    rows = SparseRows(sp.csr_matrix(dense))
    weight, gradient = torch.from_numpy(rng.normal(size=(width, 200))), torch.from_numpy(rng.normal(size=(6, width)))
    assert rows.meets_few_columns
    np.testing.assert_allclose(rows.matmul(weight.T).numpy(), dense @ weight.numpy().T, atol=1e-13)
    np.testing.assert_allclose(rows.squared_norms().numpy(), (dense**2).sum(1), rtol=1e-13)
    total = torch.ones(width, 200, dtype=torch.float64)
    rows.turned_product(gradient, total)
    np.testing.assert_allclose(total.numpy(), gradient.numpy().T @ dense, atol=1e-13)


def test_clipped_sums_are_the_same_on_either_way_and_in_a_used_buffer():
    rng = np.random.default_rng(3)
    dense = np.where(rng.random((9, 300)) < 0.03, 1.0, 0.0)
    network, labels = MLP((300, 4, 3)).initialise(rng), rng.integers(0, 3, 9)
    wide = SparseRows(sp.csr_matrix(dense))
    expected = clipped_gradient_sum(network, torch.from_numpy(dense), labels, 0.3)
    used = torch.full_like(network.parameters, 7.0)
    actual = clipped_gradient_sum(network, wide, labels, 0.3, out=used)
    assert wide.meets_few_columns and actual is used
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("columns", [1, COLUMNS, 2 * COLUMNS + 3])
def test_every_column_gets_norm_one_and_an_empty_one_stays_empty(columns):
    weight = np.random.default_rng(0).normal(size=(5, columns))
    weight[:, 0] = 0.0
    expected = weight / np.maximum(np.linalg.norm(weight, axis=0), 1e-12)
    unit_columns(weight, 1e-12)
    np.testing.assert_allclose(weight, expected, rtol=1e-14)
