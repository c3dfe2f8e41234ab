"""No example, however hostile, moves the clipped sum by more than the clipping norm."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.graph.rows import DenseRows, SparseRows
from graphveil.learn import MLP, Branches, CentredRows, clipped_gradient_sum
from graphveil.privacy.noise import summation_error
from tests.learn import per_example

HOSTILE = (5e-324, 1e-320, 1e-200, 1e-162, 1e-9, 1.0, 1e9, 1e76, 1e153, 1e155, 1e300, np.inf, np.nan)


def exact_norm(vector: torch.Tensor) -> float:
    return float(np.sqrt(np.square(vector.numpy().astype(np.longdouble)).sum()))


@settings(max_examples=250, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    entry=st.sampled_from(HOSTILE),
    weight=st.sampled_from((1e-150, 1e-3, 1.0, 1e3, 1e150)),
    parameter=st.sampled_from((1e-160, 1.0, 1e3, 1e160)),
    clip=st.sampled_from((1e-6, 0.5, 1e6)),
    branched=st.booleans(),
)
def test_one_example_alone_contributes_at_most_the_clip(seed, entry, weight, parameter, clip, branched):
    rng = np.random.default_rng(seed)
    network = per_example.random_network(rng, 4, 3, branched)
    network.parameters *= parameter
    values = rng.normal(size=(1, 4))
    values[0, rng.integers(4)] = entry
    block = torch.from_numpy(values) if rng.integers(2) else SparseRows(sp.csr_matrix(values))
    inputs = [block] * len(network.branches) if branched else block
    total = clipped_gradient_sum(network, inputs, torch.tensor([1]), clip, torch.tensor([weight]))
    assert exact_norm(total) <= clip


@pytest.mark.parametrize(("entry", "weight"), [(1e-162, 1e154), (5e153, 1e-162)])
def test_squares_that_vanish_do_not_hide_a_gradient(entry, weight):
    network = MLP((2, 3), bias=False)
    x = torch.full((1, 2), entry, dtype=torch.float64)
    weights = torch.tensor([weight], dtype=torch.float64)
    assert exact_norm(clipped_gradient_sum(network, x, torch.tensor([0]), None, weights)) > 1e-9
    assert exact_norm(clipped_gradient_sum(network, x, torch.tensor([0]), 1e-10, weights)) <= 1e-10


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), entry=st.sampled_from(HOSTILE), kind=st.sampled_from(per_example.KINDS[:3]))
def test_zeroing_out_one_example_of_a_batch_moves_the_sum_by_at_most_the_clip(seed, entry, kind):
    rng = np.random.default_rng(seed)
    clip, count = 0.5, 20
    network = per_example.random_network(rng, 4, 3, branched=False)
    values = rng.normal(size=(count, 4))
    values[7] *= entry if np.isfinite(entry) else 1
    values[7, 2] = entry
    labels = torch.from_numpy(rng.integers(0, 3, count))
    present = torch.ones(count)
    present[7] = 0
    empty = values.copy()
    empty[7] = 0

    def block(matrix):
        return {
            "tensor": torch.from_numpy,
            "dense": lambda x: DenseRows(torch.from_numpy(x)),
            "sparse": lambda x: SparseRows(sp.csr_matrix(x)),
        }[kind](matrix)

    with_it = clipped_gradient_sum(network, block(values), labels, clip)
    without = clipped_gradient_sum(network, block(empty), labels, clip, present)
    assert torch.isfinite(with_it).all()
    assert exact_norm(with_it - without) <= clip + 2 * summation_error(count, clip) + 1e-12


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("kind", ["tensor", "dense", "sparse", "centred dense", "centred sparse", "branched"])
@pytest.mark.parametrize("clip", [1.0, None])
def test_a_row_that_is_not_finite_contributes_zero_and_leaves_the_others_alone(bad, kind, clip):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 4))
    values[2, 1] = bad
    labels = torch.tensor([0, 1, 2, 0, 1])
    others = np.array([0, 1, 3, 4])

    def block(matrix):
        rows = SparseRows(sp.csr_matrix(matrix)) if "sparse" in kind else DenseRows(torch.from_numpy(matrix))
        if kind.startswith("centred"):
            return CentredRows(rows, np.full(4, 0.1))
        if kind == "branched":
            return [SparseRows(sp.csr_matrix(matrix)), torch.from_numpy(matrix)]
        return torch.from_numpy(matrix) if kind == "tensor" else rows

    width = 5 if kind.startswith("centred") else 4
    for network in [Branches([(4, 3), (4, 2)], (3,))] if kind == "branched" else [MLP((width, 3)), MLP((width, 6, 3))]:
        network.initialise(rng)
        total = clipped_gradient_sum(network, block(values), labels, clip)
        expected = clipped_gradient_sum(network, block(values[others]), labels[others], clip)
        torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("poison", ["target", "weight"])
def test_a_target_or_weight_that_is_not_finite_contributes_zero(poison):
    rng = np.random.default_rng(0)
    network = MLP((4, 6, 3)).initialise(rng)
    x, targets = torch.from_numpy(rng.normal(size=(3, 4))), torch.from_numpy(rng.dirichlet(np.ones(3), 3))
    weights = torch.ones(3)
    expected = clipped_gradient_sum(network, x[:2], targets[:2], 1.0)
    (targets[2] if poison == "target" else weights[2:]).fill_(torch.nan)
    total = clipped_gradient_sum(network, x, targets, 1.0, weights)
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from((1, 2, 4, 300)),
    gap=st.sampled_from((0.0, 1e-17, 1e-12, 1e-8, 3e-4, 1e-3)),
    sparse=st.booleans(),
)
def test_identical_rows_close_to_the_private_mean_contribute_at_most_the_clip(seed, width, gap, sparse):
    rng = np.random.default_rng(seed)
    clip, count = 0.5, 8
    row = rng.normal(size=width)
    row /= np.linalg.norm(row)
    values = np.tile(row, (count, 1))
    base = SparseRows(sp.csr_matrix(values)) if sparse else DenseRows(torch.from_numpy(values))
    rows = CentredRows(base, row + gap * rng.normal(size=width) / np.sqrt(width))
    network = MLP((width + 1, 3), bias=False)
    network.parameters.copy_(torch.from_numpy(rng.normal(size=network.parameters.numel())))
    alone = clipped_gradient_sum(network, rows.take(np.array([3])), torch.tensor([1]), clip)
    assert exact_norm(alone) <= clip
    labels = torch.from_numpy(rng.integers(0, 3, count))
    present = torch.ones(count)
    present[3] = 0
    moved = clipped_gradient_sum(network, rows, labels, clip) - clipped_gradient_sum(
        network, rows, labels, clip, present
    )
    growth = (1 + np.linalg.norm(row + gap)) / (1e-3 * 0.1)
    assert exact_norm(moved) <= clip + 2 * summation_error(count, clip, growth)


def test_the_summation_error_bounds_the_distance_to_the_exact_sum():
    rng = np.random.default_rng(0)
    clip, count = 0.5, 3000
    network = MLP((3, 2), bias=False).initialise(rng)
    x, y = torch.from_numpy(rng.normal(size=(count, 3))), torch.from_numpy(rng.integers(0, 2, count))
    total = clipped_gradient_sum(network, x, y, clip).numpy().astype(np.longdouble)
    terms = [clipped_gradient_sum(network, x[i : i + 1], y[i : i + 1], clip).numpy() for i in range(count)]
    exact = np.sum([term.astype(np.longdouble) for term in terms], axis=0)
    assert 0 < np.linalg.norm((total - exact).astype(float)) <= summation_error(count, clip)
