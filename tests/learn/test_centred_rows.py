"""Centred rows behave like the explicit matrix, and never report less than their true length."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import InputError
from graphveil.graph.rows import DenseRows, Rows, SparseRows
from graphveil.learn import CentredRows


def make(values: np.ndarray, centre: np.ndarray, sparse: bool, **options: float) -> CentredRows:
    base = SparseRows(sp.csr_matrix(values)) if sparse else DenseRows(torch.from_numpy(values))
    return CentredRows(base, centre, **options)


def definition(values: np.ndarray, centre: np.ndarray, floor: float = 1e-3, bias: float = 0.1) -> np.ndarray:
    difference = values - centre
    rows = difference / np.maximum(np.linalg.norm(difference, axis=1, keepdims=True), floor)
    rows[~values.any(axis=1)] = 0
    return np.hstack([rows, np.full((len(values), 1), bias)])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 6), width=st.integers(1, 6), sparse=st.booleans())
def test_products_norms_and_selection_are_those_of_the_explicit_matrix(seed, count, width, sparse):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, width)) * (rng.random((count, width)) < 0.5)
    centre = rng.normal(size=width)
    rows, expected = make(values, centre, sparse), definition(values, centre)
    assert isinstance(rows, Rows)
    assert rows.shape == expected.shape
    weight, gradient = rng.normal(size=(width + 1, 3)), rng.normal(size=(count, 3))
    np.testing.assert_allclose(rows.matmul(torch.from_numpy(weight)), expected @ weight, atol=1e-12)
    np.testing.assert_allclose(rows.transpose_matmul(torch.from_numpy(gradient)), expected.T @ gradient, atol=1e-12)
    np.testing.assert_allclose(rows.squared_norms(), np.square(expected).sum(axis=1), rtol=1e-9)
    if count:
        index = rng.integers(0, count, 4)
        taken = rows.take(index)
        np.testing.assert_allclose(taken.matmul(torch.from_numpy(weight)), expected[index] @ weight, atol=1e-12)
        np.testing.assert_array_equal(taken.squared_norms(), rows.squared_norms()[index])
        mask = rng.random(count) < 0.5
        assert rows.take(mask).shape == (mask.sum(), width + 1)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.integers(1, 30),
    gap=st.sampled_from((0.0, 1e-16, 1e-9, 1e-6, 3e-4, 1e-3, 1e-2, 1.0)),
    scale=st.sampled_from((1e-3, 1.0, 30.0)),
    sparse=st.booleans(),
)
def test_the_reported_norm_is_never_below_the_exact_norm_of_the_row_that_is_used(seed, width, gap, scale, sparse):
    rng = np.random.default_rng(seed)
    values = scale * rng.normal(size=(3, width))
    centre = values[0] + gap * rng.normal(size=width)
    rows = make(values, centre, sparse)
    for row, factor, reported in zip(values, rows._scale.tolist(), rows.squared_norms().tolist(), strict=True):
        square = sum((Fraction(x) - Fraction(m)) ** 2 for x, m in zip(row, centre, strict=True))
        assert Fraction(reported) * (1 + Fraction(1, 10**14)) >= Fraction(factor) ** 2 * square + Fraction(0.1) ** 2


def test_the_reported_norm_of_ordinary_rows_is_tight():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 1000))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    norms = make(values, values.mean(axis=0), sparse=False).squared_norms()
    np.testing.assert_allclose(norms, 1.01, rtol=1e-11)


@pytest.mark.parametrize("sparse", [True, False])
def test_empty_rows_have_only_the_constant(sparse):
    rows = make(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([0.3, 0.4]), sparse)
    weight = torch.tensor([[5.0], [7.0], [10.0]], dtype=torch.float64)
    assert rows.matmul(weight)[0] == 1.0
    assert rows.squared_norms()[0] == pytest.approx(0.01, rel=1e-15)
    only_first = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    np.testing.assert_array_equal(rows.transpose_matmul(only_first)[:2], 0.0)


def test_a_row_at_the_centre_is_short_instead_of_amplified_rounding():
    centre = np.array([0.6, 0.8])
    rows = make(np.array([[0.6, 0.8], [0.6, 0.8 + 1e-4]]), centre, sparse=False)
    features = rows.matmul(torch.eye(3, dtype=torch.float64))[:, :2]
    np.testing.assert_allclose(features, [[0, 0], [0, 0.1]], atol=1e-11)


@pytest.mark.parametrize("sparse", [True, False])
def test_rows_that_are_not_finite_report_an_infinite_norm(sparse):
    values = np.array([[np.nan, 1.0], [np.inf, 1.0], [1e200, 1.0], [1.0, 1.0]])
    norms = make(values, np.zeros(2), sparse).squared_norms()
    assert torch.isinf(norms[:3]).all() and torch.isfinite(norms[3])


def test_a_wrong_centre_or_floor_is_refused():
    with pytest.raises(InputError, match="columns"):
        make(np.ones((2, 3)), np.ones(2), sparse=False)
    with pytest.raises(InputError, match="floor"):
        make(np.ones((2, 3)), np.ones(3), sparse=False, floor=0.0)
