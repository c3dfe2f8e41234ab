"""Mixtures of rows: products equal those of the explicit matrix, and no term of a clipped sum exceeds its clip."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.errors import InputError
from graphveil.graph.rows import DenseRows, SparseRows
from graphveil.learn import MLP, CentredRows, MixtureRows, clipped_gradient_sum

rng = np.random.default_rng(4)
X = np.where(rng.random((9, 5)) < 0.6, rng.normal(size=(9, 5)), 0.0)
WEIGHTS = sp.random(7, 9, density=0.4, random_state=3, format="csr") + sp.csr_matrix(([1.0], ([0], [2])), shape=(7, 9))


@pytest.fixture(params=["dense", "sparse", "centred"])
def rows(request):
    if request.param == "dense":
        return DenseRows(torch.from_numpy(X))
    sparse = SparseRows(sp.csr_matrix(X))
    return sparse if request.param == "sparse" else CentredRows(sparse, np.full(5, 0.1))


def explicit(rows):
    return WEIGHTS.toarray() @ rows.matmul(torch.eye(rows.shape[1], dtype=torch.float64)).numpy()


def test_products_are_those_of_the_explicit_matrix(rows):
    mixed, matrix = MixtureRows(rows, WEIGHTS), explicit(rows)
    right, left = torch.from_numpy(rng.normal(size=(matrix.shape[1], 3))), torch.from_numpy(rng.normal(size=(7, 3)))
    assert mixed.shape == matrix.shape
    assert np.allclose(mixed.matmul(right), matrix @ right.numpy())
    assert np.allclose(mixed.transpose_matmul(left), matrix.T @ left.numpy())
    few = mixed.take(np.array([5, 0]))
    assert np.allclose(few.matmul(right), matrix[[5, 0]] @ right.numpy())
    assert np.array_equal(mixed.occupied().numpy(), (np.abs(matrix) > 0).any(axis=1))


def test_norms_are_never_smaller_than_the_truth_and_exact_for_single_entries(rows):
    true = np.linalg.norm(explicit(rows), axis=1)
    assert np.all(MixtureRows(rows, WEIGHTS).squared_norms().sqrt().numpy() >= true * (1 - 1e-12))
    alone = MixtureRows(rows, sp.csr_matrix(np.eye(9))).squared_norms()
    assert torch.allclose(alone, rows.squared_norms())


def test_no_term_of_a_clipped_sum_exceeds_the_clip(rows):
    network = MLP((rows.shape[1], 4), bias=False).initialise(np.random.default_rng(0))
    for i in range(7):
        one = MixtureRows(rows, WEIGHTS).take(np.array([i]))
        assert clipped_gradient_sum(network, one, torch.tensor([1]), 0.05).norm() <= 0.05


def test_rows_that_no_mixture_uses_do_not_enter():
    x = torch.from_numpy(X.copy())
    x[3, 0] = torch.inf
    weights = WEIGHTS.toarray()
    weights[:, 3] = 0
    network = MLP((5, 4), bias=False).initialise(np.random.default_rng(0))
    total = clipped_gradient_sum(network, MixtureRows(DenseRows(x), sp.csr_matrix(weights)), torch.zeros(7).long(), 0.1)
    expected = MixtureRows(DenseRows(torch.from_numpy(X)), sp.csr_matrix(weights))
    assert torch.equal(total, clipped_gradient_sum(network, expected, torch.zeros(7).long(), 0.1))


def test_weights_of_another_size_are_refused(rows):
    with pytest.raises(InputError, match="columns"):
        MixtureRows(rows, sp.csr_matrix((2, 3)))
