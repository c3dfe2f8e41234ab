"""Rows on a grid: within a step of the ideal ones, never longer, and sums of products with them exact in any order."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.graph import DenseRows, Graph, Lists, SparseRows
from graphveil.graph.blocks import Block
from graphveil.learn.centred_sums import FLOOR
from graphveil.learn.grid_rows import grid_rows
from graphveil.learn.grids import coefficient_grain, coefficient_grid, rounded_weights, row_bits

RECORDS, FEATURES, CLASSES = 37, 9, 3


def block_of(x, sparse):
    rows = SparseRows(sp.csr_matrix(x)) if sparse else DenseRows(torch.from_numpy(x.astype(np.float32)))
    nobody = dict.fromkeys(("train", "calibration", "query"), np.zeros(len(x), dtype=bool))
    lists = Lists.from_edge_index(np.zeros((2, 0), dtype=np.int64), len(x))
    return Block(Graph(rows, np.full(len(x), -1), lists, nobody, CLASSES), slice(0, len(x)))


def some(seed, sparse):
    """Features of all sizes, some empty, one at the centre, and a centre."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(RECORDS, FEATURES)) * rng.choice([1e-3, 1.0, 1e3], size=(RECORDS, 1))
    x *= rng.random(x.shape) < 0.5
    x[3] = 0.0
    x = x.astype(np.float32).astype(np.float64)
    centre = rng.normal(size=FEATURES)
    centre *= 0.6 / np.linalg.norm(centre)
    if seed % 2:
        centre = x[5] / np.linalg.norm(x[5]) * (1 - 1e-3)
    return block_of(x, sparse), x, centre


def as_array(rows):
    """The rows, by asking for the scores of unit vectors."""
    return rows.scores(np.eye(FEATURES))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_rows_are_those_of_the_formula_up_to_the_grid_and_no_longer_than_one(seed, sparse):
    block, x, centre = some(seed, sparse)
    chosen, bits = np.arange(0, RECORDS, 2), row_bits(RECORDS)
    rows = grid_rows(block, chosen, centre, bits)
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    apart = x / np.where(norms > 0, norms, 1) - centre
    distance = np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), FLOOR)
    ideal = np.where(norms > 0, apart / distance, 0.0)[chosen]
    step = 2.0**-bits * (
        1 if not sparse else 4 * math.sqrt(FEATURES) / distance[chosen]
    )  # s multiplies what is rounded
    assert np.all(np.abs(as_array(rows) - ideal) <= 1.001 * step)
    assert np.allclose(rows.squares, np.sum(as_array(rows) ** 2, axis=1), rtol=1e-12, atol=0)
    assert rows.squares.max() <= 1 + 1e-15


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_are_exact_for_any_order_and_any_cut(sparse):
    block, _, centre = some(2, sparse)
    rng, bits, unit = np.random.default_rng(0), row_bits(RECORDS), coefficient_grid(RECORDS, 1.0)
    told = rng.normal(size=(RECORDS, CLASSES)) / 3
    whole = grid_rows(block, np.arange(RECORDS), centre, bits).sums(told, unit)
    parts = [np.sort(part) for part in np.array_split(rng.permutation(RECORDS), 5)]
    assert np.array_equal(sum(grid_rows(block, part, centre, bits).sums(told[part], unit) for part in parts), whole)
    weights = rounded_weights(rng.normal(size=(FEATURES, CLASSES)) * 1e3, bits)
    scores = grid_rows(block, np.arange(RECORDS), centre, bits).scores(weights)
    assert all(np.array_equal(grid_rows(block, part, centre, bits).scores(weights), scores[part]) for part in parts)


def test_dense_sums_and_scores_are_those_of_rational_arithmetic():
    block, _, centre = some(1, False)
    rng, bits, unit = np.random.default_rng(1), row_bits(RECORDS), coefficient_grid(RECORDS, 1.0)
    rows, told = grid_rows(block, np.arange(RECORDS), centre, bits), rng.normal(size=(RECORDS, CLASSES)) / 3
    exact = [[Fraction(float(v)) for v in row] for row in rows.values]
    cut = [[Fraction(math.trunc(v / unit)) * Fraction(unit) for v in row] for row in told]
    found, weights = rows.sums(told, unit), rounded_weights(rng.normal(size=(FEATURES, CLASSES)), bits)
    scores = rows.scores(weights)
    for c in range(CLASSES):
        for j in range(FEATURES):
            assert Fraction(float(found[j, c])) == sum(exact[i][j] * cut[i][c] for i in range(RECORDS))
        for i in range(RECORDS):
            assert Fraction(float(scores[i, c])) == sum(
                exact[i][j] * Fraction(float(weights[j, c])) for j in range(FEATURES)
            )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_one_record_moves_a_sum_by_its_own_term_which_truncation_has_not_lengthened(seed, sparse):
    block, _, centre = some(seed, sparse)
    bits, unit = row_bits(RECORDS), coefficient_grid(RECORDS, 1.0)
    rng, everybody = np.random.default_rng(seed), np.arange(RECORDS)
    told = rng.normal(size=(RECORDS, CLASSES))
    told /= np.linalg.norm(told, axis=1, keepdims=True)
    rows = grid_rows(block, everybody, centre, bits)
    total, longest = rows.sums(told, unit), 0.0
    for r in everybody:
        rest = np.delete(everybody, r)
        change = np.linalg.norm(total - grid_rows(block, rest, centre, bits).sums(told[rest], unit))
        assert change <= math.sqrt(rows.squares[r]) * (1 + 1e-12)
        longest = max(longest, change)
    assert longest > 1 - 1e-4


@pytest.mark.parametrize("sparse", [False, True])
def test_two_terms_of_one_row_are_at_most_the_grain_further_apart_than_their_coefficients(sparse):
    block, _, centre = some(1, sparse)
    unit, rng = coefficient_grid(10**9, 1.0), np.random.default_rng(0)  # coarse steps
    worst = 0.0
    for r in range(RECORDS):
        row = grid_rows(block, np.array([r]), centre, row_bits(10**9))
        for size in (0.1, 1e-4, 1e-5):
            one = rng.normal(size=(1, CLASSES)) / 3
            other = one + size * rng.normal(size=(1, CLASSES))
            further = np.linalg.norm(row.sums(one, unit) - row.sums(other, unit)) - np.linalg.norm(one - other)
            worst = max(worst, further)
    assert 0 < worst <= coefficient_grain(10**9, 1.0, CLASSES)


def test_a_sum_of_the_longest_terms_has_at_most_53_bits():
    for records in (1, 2, 5, 1000, 2**20, 10**7, 3 * 10**8):
        for length in (1e-4, 0.35, 1.0, 30.0):
            step = Fraction(coefficient_grid(records, length)) / 2 ** row_bits(records)
            assert records * Fraction(length) / step <= 2**53
