"""Batches of wide sparse rows take a way of their own through the three products; it leads to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.errors import InputError
from graphveil.graph.rows import SparseRows
from graphveil.learn import MLP, Network, clipped_gradient_sum
from graphveil.learn.kernels import unit_rows
from graphveil.learn.modules import Linear, LinearByInput


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
    by_columns = torch.ones(200, width, dtype=torch.float64)
    rows.turned_product(gradient, by_columns.T)
    np.testing.assert_allclose(by_columns.numpy().T, total.numpy(), atol=1e-13)
    by_input = torch.from_numpy(np.ascontiguousarray(weight.numpy().T))
    np.testing.assert_array_equal(rows.matmul(by_input).numpy(), rows.values @ by_input.numpy())


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_are_taken_as_by_scipy_in_any_order_and_under_a_mask(kind):
    rng = np.random.default_rng(5)
    matrix = sp.csr_matrix(np.where(rng.random((40, 30)) < 0.2, rng.normal(size=(40, 30)), 0.0))
    matrix.indices, matrix.indptr = matrix.indices.astype(kind), matrix.indptr.astype(kind)
    rows, mask = SparseRows(matrix), rng.random(40) < 0.5
    for chosen in (rng.integers(0, 40, 60), np.arange(0), np.array([39, 0]), mask, ~(mask | True)):
        np.testing.assert_array_equal(rows.take(chosen).values.toarray(), matrix[chosen].toarray())
    for wrong in (np.array([0, 40]), np.array([0, -1]), mask[:30], np.append(mask, False), mask[:, None], np.array(3)):
        with pytest.raises(IndexError):
            rows.take(wrong)


@pytest.mark.parametrize("turned", [False, True])
def test_a_weight_of_another_width_is_refused(turned):
    rows = SparseRows(sp.random(6, 200, density=0.01, format="csr", random_state=0))
    weight = torch.ones(10, 3, dtype=torch.float64)
    with pytest.raises(InputError, match="200 columns"):
        rows.matmul(weight.T.contiguous().T if turned else weight)


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


class OneLayer(Network):
    def forward(self, inputs, apply):
        return apply(self.layers[0], inputs)


@pytest.mark.parametrize("filled", [0.03, 0.6])
def test_a_layer_by_input_has_the_outputs_and_gradients_of_any_other(filled):
    rng = np.random.default_rng(4)
    dense = np.where(rng.random((9, 300)) < filled, rng.normal(size=(9, 300)), 0.0)
    labels, plain = rng.integers(0, 3, 9), OneLayer([Linear(300, 3)]).initialise(rng)
    turned = OneLayer([LinearByInput(300, 3)]).load(plain.state())
    assert not turned.layers[0].weight.is_contiguous() and turned.layers[0].weight.T.is_contiguous()
    for inputs in (SparseRows(sp.csr_matrix(dense)), torch.from_numpy(dense)):
        torch.testing.assert_close(turned(inputs), plain(inputs), rtol=1e-12, atol=1e-12)
        expected, found = (
            network.layers[0].views(clipped_gradient_sum(network, inputs, labels, 0.3)) for network in (plain, turned)
        )
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)


def test_every_row_gets_norm_one_and_an_empty_one_stays_empty():
    weight = np.random.default_rng(0).normal(size=(130, 5))
    weight[0] = 0.0
    expected = weight / np.maximum(np.linalg.norm(weight, axis=1, keepdims=True), 1e-12)
    unit_rows(weight, 1e-12)
    np.testing.assert_allclose(weight, expected, rtol=1e-14)
