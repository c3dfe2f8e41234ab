"""Several holders: equal shares by public coins, and the edges that are left without alignment."""

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm
from graphveil.graph.data.preparation import prepare
from graphveil.graph.holders import holder_numbers, within


def test_shares_are_equal_and_the_same_for_everybody():
    numbers = holder_numbers(100, 3)
    assert sorted(np.bincount(numbers)) == [33, 33, 34] and np.array_equal(numbers, holder_numbers(100, 3))
    for wrong in (0, 101):
        with pytest.raises(InputError, match="from 1 to 100"):
            holder_numbers(100, wrong)


@pytest.mark.parametrize("holders", [1, 2, 5])
def test_without_alignment_only_edges_within_a_holder_are_known(holders):
    data = powerlaw_sbm(nodes=300, classes=3, features=4, seed=0)
    numbers = holder_numbers(300, holders)
    left = prepare(data, [f"holders:{holders}"])
    pairs = left.edge_index.numpy()
    assert within(pairs, numbers).all()
    assert pairs.shape[1] == within(data.edge_index.numpy(), numbers).sum()
    assert abs(pairs.shape[1] / data.edge_index.shape[1] - 1 / holders) < 0.1  # as many as equal shares leave
    assert torch.equal(data.x, left.x) and any("holders" in note for note in left.notes)
