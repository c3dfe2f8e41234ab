"""Networks are views of one flat vector, compute what torch computes, and can be saved."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from graphveil.errors import InputError
from graphveil.graph.rows import SparseRows
from graphveil.learn import (
    MLP,
    Branches,
    Linear,
    SummedBranches,
    clipped_gradient_sum,
    take,
)
from graphveil.methods.common.branches import branch_network, branch_parameters
from tests.learn import per_example


def test_a_chain_computes_what_the_same_torch_modules_compute():
    network = MLP((5, 4, 3), torch.tanh).initialise(np.random.default_rng(0))
    network.parameters.add_(0.1)
    reference = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    with torch.no_grad():
        for layer, ours in zip((reference[0], reference[2]), network.layers, strict=True):
            layer.weight.copy_(ours.weight)
            layer.bias.copy_(ours.bias)
        x = torch.randn(7, 5, dtype=torch.float64)
        torch.testing.assert_close(network(x), reference(x))


@pytest.mark.parametrize("kind", per_example.KINDS)
def test_a_network_reads_every_kind_of_rows(kind):
    rng = np.random.default_rng(0)
    network = MLP((6, 4, 3)).initialise(rng)
    rows = per_example.rows_of_kind(kind, 5, 6, rng)
    torch.testing.assert_close(network(rows), network(per_example.explicit(rows)))


def test_a_branched_network_is_the_classifier_of_gap():
    rng = np.random.default_rng(0)
    network = Branches([(4, 3), (4, 3), (5, 2)], (6,)).initialise(rng)
    blocks = [torch.from_numpy(rng.normal(size=(7, width))) for width in (4, 4, 5)]
    first, second, third, head = network.layers
    joined = torch.cat([first(blocks[0]), second(blocks[1]), third(blocks[2])], dim=1)
    expected = head(torch.selu(joined / joined.norm(dim=1, keepdim=True)))
    torch.testing.assert_close(network(blocks), expected)


def test_summed_branches_are_softmax_regression_on_the_joined_inputs():
    rng = np.random.default_rng(0)
    network = SummedBranches((4, 2), 3).initialise(rng)
    assert not network.parameters.any()
    network.parameters.copy_(torch.from_numpy(rng.normal(size=18)))
    blocks = [torch.from_numpy(rng.normal(size=(7, width))) for width in (4, 2)]
    joined, weight = torch.cat(blocks, dim=1), torch.cat([layer.weight for layer in network.layers], dim=1)
    torch.testing.assert_close(network(blocks), joined @ weight.T)
    labels = torch.tensor([0, 1, 2, -1, 0, 1, 2])
    single = per_example.gradients(network, blocks, labels)
    for clip in (0.4, None):
        total = clipped_gradient_sum(network, blocks, labels, clip)
        torch.testing.assert_close(total, per_example.clipped_sum(single, clip))
    with pytest.raises(InputError, match="2 inputs"):
        network(blocks[:1])


@pytest.mark.parametrize("hidden", [0, 5])
def test_a_classifier_on_branches_has_as_many_numbers_as_planned(hidden):
    inputs, classes = (7, 3, 3), 4
    assert branch_network(inputs, hidden, classes).parameters.numel() == branch_parameters(inputs, hidden, classes)


def test_the_embedding_is_what_the_last_layer_reads_and_can_have_unit_rows():
    rng = np.random.default_rng(0)
    network = MLP((5, 8, 4, 3), normalise=True).initialise(rng)
    x = torch.from_numpy(rng.normal(size=(6, 5)))
    embedding = network.embed(x)
    torch.testing.assert_close(embedding.norm(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(network.layers[-1](embedding), network(x))


def test_parameters_are_one_vector_and_layers_are_views_of_it():
    network = Branches([(2, 3), (4, 1)], (5, 2))
    assert network.parameters.dtype == torch.float64
    assert network.parameters.numel() == sum(layer.size for layer in network.layers) == 9 + 5 + 25 + 12
    network.parameters.copy_(torch.arange(51.0))
    seen = torch.cat([part.flatten() for layer in network.layers for part in (layer.weight, layer.bias)])
    assert torch.equal(seen, network.parameters)


def test_initial_weights_come_from_the_given_coins_with_variance_one_over_inputs():
    network = MLP((400, 300, 2), torch.relu).initialise(np.random.default_rng(5))
    again = MLP((400, 300, 2), torch.relu).initialise(np.random.default_rng(5))
    other = MLP((400, 300, 2), torch.relu).initialise(np.random.default_rng(6))
    assert torch.equal(network.parameters, again.parameters)
    assert not torch.equal(network.parameters, other.parameters)
    assert float(network.layers[0].weight.std()) == pytest.approx((2 / 400) ** 0.5, rel=0.02)
    assert not network.layers[0].bias.any()


def test_a_saved_network_predicts_the_same_after_loading():
    rng = np.random.default_rng(0)
    network = MLP((5, 4, 3)).initialise(rng)
    x = torch.from_numpy(rng.normal(size=(6, 5)))
    state = network.state()
    assert sorted(state) == ["layer0.bias", "layer0.weight", "layer1.bias", "layer1.weight"]
    before = network(x)
    loaded = MLP((5, 4, 3)).load(state)
    network.parameters.zero_()
    assert torch.equal(loaded(x), before)


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    network = MLP((5, 4, 3))
    state = MLP((5, 4, 2)).initialise(np.random.default_rng(0)).state()
    with pytest.raises(InputError, match=r"saved layer1\.(weight|bias) has shape"):
        network.load(state)
    with pytest.raises(InputError, match="has parameters"):
        network.load({"layer0.weight": state["layer0.weight"]})
    assert not network.parameters.any()


def test_impossible_networks_are_refused():
    with pytest.raises(InputError, match="at least one"):
        Linear(0, 3)
    with pytest.raises(InputError, match="input and output widths"):
        MLP((3,))
    with pytest.raises(InputError, match="reads 2 inputs, it was given 1"):
        Branches([(2, 2), (2, 2)], (2,))([torch.zeros(1, 2, dtype=torch.float64)])
    with pytest.raises(InputError, match="normalise"):
        MLP((3, 2), normalise=True)(SparseRows(sp.csr_matrix((1, 3))))


def test_examples_are_taken_from_every_branch_in_the_given_order_with_repetition():
    tensor = torch.arange(6.0).reshape(3, 2)
    rows = SparseRows(sp.csr_matrix(np.diag([1.0, 2.0, 3.0])))
    index = np.array([2, 0, 2])
    first, second = take((tensor, rows), index)
    assert torch.equal(first, tensor[[2, 0, 2]])
    np.testing.assert_array_equal(second.values.toarray(), np.diag([1.0, 2.0, 3.0])[index])
