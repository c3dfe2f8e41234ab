"""Splits: disjoint, repeatable, and honest about what they read."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphveil.errors import DataWarning, InputError
from graphveil.graph import (
    inductive_split,
    official_split,
    per_class_split,
    powerlaw_sbm,
    random_split,
    seeded_splits,
    stratified_split,
)
from graphveil.graph.data import splits
from graphveil.graph.data.splits import cut_edges
from graphveil.graph.validate import validate

MASKS = ("train_mask", "val_mask", "test_mask")


@pytest.fixture
def blocks() -> Data:
    data = powerlaw_sbm(0, nodes=400, classes=4)
    data.y[:10] = -1
    return data


def sizes(data: Data) -> list[int]:
    return [int(data[name].sum()) for name in MASKS]


@given(st.integers(0, 500), st.integers(0, 2**31), st.tuples(*[st.floats(0.01, 1)] * 3))
def test_random_masks_are_a_partition_of_the_asked_sizes(nodes: int, seed: int, shares: tuple[float, ...]) -> None:
    fractions = tuple(share / sum(shares) for share in shares)
    data = Data()
    data.num_nodes = nodes
    random_split(data, seed, fractions)
    assert torch.equal(sum(data[name].int() for name in MASKS), torch.ones(nodes, dtype=torch.int32))
    assert all(abs(size - nodes * share) <= 1 for size, share in zip(sizes(data), fractions, strict=True))


def test_a_random_split_reads_nothing_but_the_number_of_nodes(blocks: Data) -> None:
    bare = Data()
    bare.num_nodes = 400
    first, second = random_split(blocks, 3), random_split(bare, 3)
    assert all(torch.equal(first[name], second[name]) for name in MASKS)
    assert "notes" not in first and sizes(first) == [300, 40, 60]


def test_a_stratified_split_keeps_class_shares_and_is_recorded(blocks: Data) -> None:
    data = stratified_split(blocks, 0)
    for label in range(4):
        members = data.y == label
        assert abs(int((data.train_mask & members).sum()) - 0.75 * int(members.sum())) <= 1
    assert not any((data[name] & (data.y == -1)).any() for name in MASKS)
    assert data.notes == ("the split is stratified by class: it reads every label",)


def test_a_per_class_split_takes_equal_counts_and_is_recorded(blocks: Data) -> None:
    data = per_class_split(blocks, 0, train=5, val=30, test=50)
    assert np.bincount(data.y[data.train_mask]).tolist() == [5] * 4 and sizes(data) == [20, 30, 50]
    assert "reads every label" in data.notes[0]
    with pytest.raises(InputError, match="not the 1000 asked"):
        per_class_split(blocks, train=1000)
    with pytest.raises(InputError, match="are left for 300 validation"):
        per_class_split(blocks, train=5, val=300, test=300)


def test_an_official_split_is_chosen_by_number(small: Data) -> None:
    assert official_split(copy.copy(small)).train_mask.sum() == 3
    for name in MASKS:
        small[name] = torch.stack([small[name], small[name].roll(1)], dim=1)
    assert official_split(copy.copy(small), 1).train_mask.nonzero().ravel().tolist() == [1, 2, 3]
    with pytest.raises(InputError, match="split number 2 does not exist"):
        official_split(small, 2)
    with pytest.raises(InputError, match="no official split"):
        official_split(Data())


def test_a_fully_inductive_split_makes_two_disjoint_graphs(blocks: Data) -> None:
    data = random_split(blocks, 0)
    training, inference = inductive_split(data, "fully")
    test = data.test_mask.numpy()
    for part, inside in ((training, ~test), (inference, test)):
        assert inside[part.edge_index.numpy()].all()
        assert not part.x[torch.from_numpy(~inside)].any() and (part.y[torch.from_numpy(~inside)] == -1).all()
    arcs = data.edge_index.numpy()
    crossing = int((test[arcs[0]] != test[arcs[1]]).sum())
    assert crossing > 0 and training.num_edges + inference.num_edges + crossing == data.num_edges
    with pytest.warns(DataWarning, match="unlabelled"):
        assert not training.test_mask.any() and not validate(training).present[test].any()
    assert cut_edges(data).num_edges == data.num_edges - crossing


def test_an_incrementally_inductive_split_predicts_on_the_whole_graph(blocks: Data) -> None:
    data = random_split(blocks, 0)
    training, inference = inductive_split(data, "incrementally")
    assert inference.num_edges == data.num_edges and torch.equal(inference.x, data.x)
    assert not data.test_mask.numpy()[training.edge_index.numpy()].any()
    assert data.test_mask.sum() == 60  # the given data are untouched


def test_several_seeds_give_several_splits_of_one_graph(blocks: Data) -> None:
    first, second = seeded_splits(blocks, seeds=(1, 2))
    assert not torch.equal(first.train_mask, second.train_mask) and first.x is second.x
    assert torch.equal(first.train_mask, random_split(copy.copy(blocks), 1).train_mask)


@pytest.mark.parametrize("fractions", [(0.5, 0.5, 0.5), (-0.1, 0.6, 0.5), (1.0, 0.0), (float("nan"), 0.5, 0.5)])
def test_impossible_fractions_are_refused(fractions: tuple[float, ...]) -> None:
    data = Data()
    data.num_nodes = 5
    with pytest.raises(InputError, match="add up to 1"):
        random_split(data, 0, fractions)


def test_misuse_is_explained(small: Data) -> None:
    with pytest.raises(InputError, match="'fully' or 'incrementally'"):
        inductive_split(small, "half")
    del small.test_mask, small.y
    with pytest.raises(InputError, match="split the data first"):
        inductive_split(small)
    with pytest.raises(InputError, match="needs labels"):
        stratified_split(small)


def test_clusters_are_of_one_size_and_cut_few_edges():
    """Nine rings of cliques joined by a few edges: most edges stay inside; a random split of one ninth keeps one in nine."""
    rng = np.random.default_rng(0)
    blocks, size = 9, 40
    inside = [(b * size + i, b * size + j) for b in range(blocks) for i, j in rng.integers(0, size, (300, 2)) if i != j]
    joins = [tuple(pair) for pair in rng.integers(0, blocks * size, (40, 2)) if pair[0] != pair[1]]
    arcs = np.array([*inside, *joins]).T
    edges = torch.from_numpy(np.concatenate([arcs, arcs[::-1]], axis=1))
    data = Data(x=torch.zeros(blocks * size, 1), y=torch.zeros(blocks * size, dtype=torch.long), edge_index=edges)
    found = splits.cut_edges(splits.clusters_split(data, seed=1))
    counts = [int(found[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask")]
    assert sum(counts) == blocks * size and abs(counts[2] - size) <= 3 and abs(counts[1] - size) <= 3
    test = found.test_mask
    touching = edges[:, test[edges].any(dim=0)].shape[1]
    kept = int(test[found.edge_index].all(dim=0).sum())
    assert kept > touching / 2 and splits.CLUSTERS in found.notes
    assert not (test[found.edge_index[0]] != test[found.edge_index[1]]).any()
