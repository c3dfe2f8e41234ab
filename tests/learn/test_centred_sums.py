"""Sums of clipped softmax gradients of centred rows: what they are, what one record can move, and that no order matters."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil import learn
from graphveil.graph.rows import DenseRows, SparseRows
from graphveil.graph.unit import unit_rows
from graphveil.learn.centred_sums import BIAS, FLOOR, CentredSums, sum_grid, truncation_slack

FEATURES, CLASSES, CLIP = 7, 3, 0.5


def case(seed, records=40, sparse=False):
    """Rows with empty, tiny, huge and nearly central ones among them, labels with gaps, a centre and weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(records, FEATURES)) * (rng.random((records, FEATURES)) < 0.6)
    centre = rng.normal(size=FEATURES) * 0.2
    x[0], x[1], x[2] = 0.0, x[1] * 1e-290, x[2] * 1e150
    x[3] = centre / np.linalg.norm(centre) + 1e-7
    centre = x[3] / np.linalg.norm(x[3]) * 0.999
    labels = rng.integers(-1, CLASSES, records)
    rows = SparseRows(sp.csr_matrix(x)) if sparse else DenseRows(torch.from_numpy(x))
    return rows, labels, CentredSums(centre, rng.normal(size=(CLASSES, FEATURES + 1)))


def summed(sums, rows, labels, clip=CLIP):
    grid = sum_grid(len(labels), clip)
    return sums.finished(sums.gradients(rows, labels, clip, grid), grid)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_clipped_gradient_sum_of_the_network_up_to_the_grid(seed, sparse):
    rows, labels, sums = case(seed, sparse=sparse)
    network = learn.MLP((FEATURES + 1, CLASSES), bias=False)
    network.parameters.copy_(torch.from_numpy(sums.weights.ravel()))
    inputs = learn.CentredRows(unit_rows(rows), sums.centre, floor=FLOOR, bias=BIAS)
    expected = learn.clipped_gradient_sum(network, inputs, labels, CLIP).numpy().reshape(CLASSES, -1)
    assert np.allclose(summed(sums, rows, labels), expected, atol=2e-5)
    assert np.allclose(sums.scores(rows), network(inputs).numpy(), atol=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_one_record_moves_the_sum_by_its_clipping_norm_and_the_slack_at_most(sparse):
    farthest = 0.0
    for seed in range(30):
        rows, labels, sums = case(seed, records=12, sparse=sparse)
        for r in np.flatnonzero(labels >= 0):
            without = np.where(np.arange(len(labels)) == r, -1, labels)
            farthest = max(farthest, np.linalg.norm(summed(sums, rows, labels) - summed(sums, rows, without)))
    assert 0.99 * CLIP < farthest <= CLIP + truncation_slack(12, FEATURES, CLASSES, CLIP)
    if not sparse:
        assert farthest <= CLIP


@pytest.mark.parametrize("sparse", [False, True])
def test_no_order_and_no_cut_changes_a_single_bit(sparse):
    rows, labels, sums = case(5, records=500, sparse=sparse)
    whole = summed(sums, rows, labels, 1.0)
    order = np.random.default_rng(1).permutation(500)
    assert np.array_equal(whole, summed(sums, rows.take(order), labels[order], 1.0))
    grid = sum_grid(500, 1.0)
    for cuts in ([1, 2, 3], [100, 101, 499], range(7, 500, 7)):
        ends = [0, *cuts, 500]
        pairs = [slice(a, b) for a, b in pairwise(ends)]
        parts = [sums.gradients(rows.block(part), labels[part], 1.0, grid) for part in pairs]
        assert np.array_equal(whole, sums.finished(sum(parts), grid))
        assert np.array_equal(sums.scores(rows), np.concatenate([sums.scores(rows.block(part)) for part in pairs]))


def test_float32_rows_are_read_as_the_numbers_they_are():
    rows, labels, sums = case(2)
    single = rows.values[4:].to(torch.float32)
    assert np.array_equal(
        summed(sums, DenseRows(single), labels[4:]), summed(sums, DenseRows(single.to(torch.float64)), labels[4:])
    )


def test_the_slack_stays_below_a_thousandth_of_the_clip_for_ten_million_people():
    assert truncation_slack(10**7, 32, 10, 1.0) < 1e-3
    assert sum_grid(10**7, 1.0) * 2.0**53 > 10**7 * 2000  # every sum of terms that long has its bits
