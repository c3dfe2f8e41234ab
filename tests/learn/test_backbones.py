"""Backbones by name: shapes, the operators' formulas where they are short, and no trace in the global random state."""

import pytest
import torch

from graphveil.errors import InputError
from graphveil.learn.backbones import NAMES, build_backbone

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3], [1, 0, 2, 1, 3, 2, 3, 0]])


@pytest.mark.parametrize("name", NAMES)
def test_every_backbone_gives_one_row_of_logits_per_node_and_learns(name):
    x, y = torch.eye(4), torch.tensor([0, 1, 1, 2])
    network = build_backbone(name, 4, 8, 3, dropout=0.0, seed=1)
    optimizer = torch.optim.Adam(network.parameters(), 0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        logits = network(x, EDGES)
        assert logits.shape == (4, 3)
        loss = torch.nn.functional.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]


def test_gcn_is_the_formula():
    network = build_backbone("gcn", 3, 5, 2, dropout=0.0, seed=2)
    x = torch.rand(4, 3)
    adjacency = torch.eye(4)
    adjacency[EDGES[0], EDGES[1]] = 1
    scale = adjacency.sum(1).rsqrt().diag()
    matrix = scale @ adjacency @ scale
    first, second = network.first, network.second
    hidden = torch.selu(matrix @ x @ first.lin.weight.T + first.bias)
    assert torch.allclose(network(x, EDGES), matrix @ hidden @ second.lin.weight.T + second.bias, atol=1e-6)


def test_equal_seeds_give_equal_weights_and_the_global_state_is_untouched():
    before = torch.random.get_rng_state()
    one, two, other = (build_backbone("sage", 3, 4, 2, seed=seed) for seed in (7, 7, 8))
    assert torch.equal(torch.random.get_rng_state(), before)
    same = [torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True)]
    assert all(same)
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_an_unknown_backbone_names_the_known_ones():
    with pytest.raises(InputError, match="gatv2"):
        build_backbone("gin", 3, 4, 2)
