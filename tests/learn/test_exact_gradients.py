"""Exact gradient sums: those of the ordinary engine up to the grid, the same for any cut, one clipped term per record."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.errors import PrivacyError
from graphveil.graph import DenseRows, Graph, Lists, SparseRows
from graphveil.graph.blocks import Block
from graphveil.learn import (
    MLP,
    Branches,
    Calls,
    Dropout,
    SummedBranches,
    clipped_gradient_sum,
    exact_gradients,
    exact_kernels,
)
from graphveil.learn.exact_gradients import ExactCalls, exact_gradient_sum, exact_scores
from graphveil.learn.exact_rows import ConstantRows, ScaledRows
from graphveil.learn.grid_rows import cut, grid_rows
from graphveil.learn.grids import MOST_BITS, SumGrid

RECORDS, FEATURES, CLASSES = 61, 9, 4
NETWORKS = {
    "linear": lambda: SummedBranches((FEATURES + 1,), CLASSES),
    "hidden": lambda: MLP((FEATURES + 1, 24, 7, CLASSES)),
    "unit": lambda: MLP((FEATURES + 1, 20, CLASSES), normalise=True),
    "joined": lambda: Branches([(FEATURES + 1, 5), (6, 20)], (CLASSES,)),
    "summed": lambda: SummedBranches((FEATURES + 1, 6), CLASSES),
}


def some(name, sparse, seed=0):
    """A network with large and small weights, and what makes inputs and labels of the records at some positions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(RECORDS, FEATURES)) * (rng.random((RECORDS, FEATURES)) < 0.5)
    x[3] = 0.0
    rows = SparseRows(sp.csr_matrix(x)) if sparse else DenseRows(torch.from_numpy(x))
    nobody = dict.fromkeys(("train", "calibration", "query"), np.zeros(RECORDS, dtype=bool))
    lists = Lists.from_edge_index(np.zeros((2, 0), dtype=np.int64), RECORDS)
    block = Block(Graph(rows, np.full(RECORDS, -1), lists, nobody, CLASSES), slice(0, RECORDS))
    network = NETWORKS[name]()
    network.parameters.copy_(torch.from_numpy(rng.normal(size=network.parameters.numel()) * 1.5))
    centre = rng.normal(size=FEATURES) / 5 if seed % 2 else np.zeros(FEATURES)
    near = rng.normal(size=(RECORDS, 6)) * rng.choice([1e-6, 1.0, 1e3], size=(RECORDS, 1))
    labels = rng.integers(-1, CLASSES, RECORDS)

    def inputs(chosen, bits):
        own = ConstantRows.of(grid_rows(block, chosen, centre, bits), 0.1, bits)
        return (own, ScaledRows.of(near[chosen], bits)) if name in ("joined", "summed") else (own,)

    return network, inputs, labels


def as_tensors(inputs):
    """The same rows as tensors, by asking for the scores of unit vectors."""
    widths = [FEATURES + 1, 6][: len(inputs)]
    return tuple(torch.from_numpy(rows.scores(np.eye(width))) for rows, width in zip(inputs, widths, strict=True))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("seed", range(2))
def test_sums_and_scores_are_those_of_the_ordinary_engine(name, sparse, seed):
    network, inputs, labels = some(name, sparse, seed)
    for clip in (0.5, 256.0):
        grid = SumGrid.of(RECORDS, clip)
        rows = inputs(np.arange(RECORDS), grid.bits)
        expected = clipped_gradient_sum(network, as_tensors(rows), labels, clip).numpy()
        found = exact_gradient_sum(network, rows, labels, clip, grid)
        assert np.abs(found - expected).max() < 3e-4 * np.abs(expected).max()
    logits = network(as_tensors(inputs(np.arange(RECORDS), MOST_BITS))).numpy()
    found = exact_scores(network, inputs(np.arange(RECORDS), MOST_BITS))
    assert np.abs(found - logits).max() < 1e-5 * np.abs(logits).max()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("clip", [0.5, 256.0])
def test_any_cut_and_order_gives_the_same_sums_and_scores_bit_for_bit(name, sparse, clip):
    network, inputs, labels = some(name, sparse, 1)
    grid = SumGrid.of(RECORDS, clip)
    whole = exact_gradient_sum(network, inputs(np.arange(RECORDS), grid.bits), labels, clip, grid)
    scores = exact_scores(network, inputs(np.arange(RECORDS), MOST_BITS))
    shuffled = np.random.default_rng(0).permutation(RECORDS)
    for parts in (
        np.array_split(np.arange(RECORDS), 7),
        np.array_split(shuffled, 3),
        list(np.arange(RECORDS)[:, None]),
    ):
        parts = [np.sort(part) for part in parts]
        sums = [exact_gradient_sum(network, inputs(p, grid.bits), labels[p], clip, grid) for p in parts]
        assert np.array_equal(sum(sums), whole)
        assert all(np.array_equal(exact_scores(network, inputs(p, MOST_BITS)), scores[p]) for p in parts)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_record_that_goes_takes_its_own_term_of_norm_clip_at_most(name, sparse):
    network, inputs, labels = some(name, sparse)
    clip, longest = 0.5, 0.0
    grid = SumGrid.of(RECORDS, clip)
    whole = exact_gradient_sum(network, inputs(np.arange(RECORDS), grid.bits), labels, clip, grid)
    for record in range(RECORDS):
        rest = np.delete(np.arange(RECORDS), record)
        moved = whole - exact_gradient_sum(network, inputs(rest, grid.bits), labels[rest], clip, grid)
        alone = exact_gradient_sum(network, inputs(np.array([record]), grid.bits), labels[[record]], clip, grid)
        assert np.array_equal(moved, alone) and np.linalg.norm(moved) <= clip
        assert labels[record] >= 0 or not moved.any()
        longest = max(longest, np.linalg.norm(moved))
    assert longest > clip * (1 - 1e-3)


def test_the_grid_is_as_fine_as_exact_sums_allow():
    for records in (1, 10, 13_700, 10**6, 10**9):
        for length in (0.1, 0.5, 1.0, 256.0):
            grid = SumGrid.of(records, length)
            bits = np.log2(records * length) + grid.bits - np.log2(grid.unit)
            assert bits <= 53 and (bits > 51.9 or grid.bits == MOST_BITS)


def test_truncation_only_shortens_and_lands_on_the_grid():
    values, unit = np.random.default_rng(0).normal(size=(50, 3)), 2.0**-7
    found = cut(values, np.full(50, 0.3), unit)
    assert np.all(np.abs(found) <= np.abs(0.3 * values) + 1e-15) and not np.any(found % unit)
    assert np.all(np.abs(found - 0.3 * values) < unit)


def test_dropped_inputs_are_those_of_the_example_wherever_it_is():
    network, inputs, labels = some("hidden", False)
    grid, rate, key = SumGrid.of(RECORDS, 256.0), 0.4, 11
    ask = lambda p, first: exact_gradient_sum(
        network, inputs(p, grid.bits), labels[p], 256.0, grid, Dropout(rate, key, first)
    )
    whole = ask(np.arange(RECORDS), 0)
    parts = np.array_split(np.arange(RECORDS), 4)
    assert np.array_equal(sum(ask(part, part[0]) for part in parts), whole)
    assert not np.array_equal(sum(ask(part, 0) for part in parts), whole)
    out = np.ones((4000, 24))
    Dropout(rate, key).at(1, out.shape).keep(out, out)
    assert abs(out.mean() - 1) < 5 * np.sqrt(rate / (1 - rate) / out.size)
    assert set(np.unique(out)) == {0.0, 1 / (1 - rate)}


def test_a_layer_that_one_example_uses_twice_is_refused():
    network, inputs, _ = some("linear", False)
    (rows,) = inputs(np.arange(RECORDS), MOST_BITS)
    for calls, x in ((ExactCalls(), rows), (Calls(), as_tensors((rows,))[0])):
        calls(network.layers[0], x)
        with pytest.raises(PrivacyError, match="used twice"):
            calls(network.layers[0], x)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_was_sent_elsewhere_lives_in_one_vector(name):
    network, inputs, _ = some(name, False)
    copy = pickle.loads(pickle.dumps(network))
    rows = inputs(np.arange(RECORDS), MOST_BITS)
    assert np.array_equal(exact_scores(copy, rows), exact_scores(network, rows))
    copy.parameters.zero_()
    assert not exact_scores(copy, rows).any() and exact_scores(network, rows).any()


def test_a_record_whose_numbers_overflow_between_layers_is_dropped_alone():
    network, inputs, labels = some("joined", False)
    grid = SumGrid.of(RECORDS, 0.5)
    own, near = inputs(np.arange(RECORDS), grid.bits)
    rows = near.scores(np.eye(6))
    rows[7] = np.inf
    labels[7] = 1
    found = exact_gradient_sum(network, (own, ScaledRows.of(rows, grid.bits)), labels, 0.5, grid)
    without = np.where(np.arange(RECORDS) == 7, -1, labels)
    assert np.isfinite(found).all()
    assert np.array_equal(found, exact_gradient_sum(network, (own, near), without, 0.5, grid))


def test_selu_is_selu_and_the_same_wherever_a_number_stands():
    x = np.concatenate([np.random.default_rng(0).normal(size=1001) * 3, [0.0, -1e-9, -40.0, -800.0, -np.inf]])
    whole, alone = np.empty_like(x), np.empty_like(x)
    exact_kernels.selu(x, whole)
    assert np.abs(whole - torch.selu(torch.from_numpy(x)).numpy()).max() < 1e-15
    for at in range(len(x)):
        exact_kernels.selu(x[at : at + 1], alone[at : at + 1])
    assert np.array_equal(alone, whole)


def test_a_lone_record_has_the_norm_that_it_has_among_others(monkeypatch):
    """Gradients of branches are parts of a joined one; the kernel that adds up squares must find them laid out alike."""
    network, inputs, labels = some("joined", False)
    layouts, squares = set(), exact_gradients.row_squares
    watched = lambda x, out: (layouts.add((x.flags.c_contiguous, x.strides[1])), squares(x, out))
    monkeypatch.setattr(exact_gradients, "row_squares", watched)
    grid = SumGrid.of(RECORDS, 1.0)
    for chosen in (np.array([1]), np.arange(RECORDS)):
        exact_gradient_sum(network, inputs(chosen, grid.bits), labels[chosen], 1.0, grid)
    assert layouts == {(True, 8)}


def test_sparse_features_that_are_not_finite_count_as_none():
    """As whole numbers they would pass for finite: the row below had the squared norm 0 and was not clipped."""
    x = sp.csr_matrix(np.array([[np.inf, 1.0, 1.0, 1.0], [0.0, 1.0, 0.0, 0.0]]))
    nobody = dict.fromkeys(("train", "calibration", "query"), np.zeros(2, dtype=bool))
    lists = Lists.from_edge_index(np.zeros((2, 0), dtype=np.int64), 2)
    block = Block(Graph(SparseRows(x), np.zeros(2, dtype=np.int64), lists, nobody, 2), slice(0, 2))
    with np.errstate(invalid="ignore"):
        rows = grid_rows(block, np.arange(2), np.zeros(4), MOST_BITS)
    assert np.abs(rows.scores(np.eye(4))).max() <= 1 and np.all(rows.squares <= 1)


def test_scaled_rows_are_not_longer_than_one():
    x = np.random.default_rng(0).normal(size=(200, 192))
    for bits in (3, 6, MOST_BITS):
        assert np.linalg.norm(ScaledRows.of(x, bits).values, axis=1).max() <= 1
