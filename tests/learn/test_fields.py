"""A field has what convolutions read and no more, and what is learned on it is learned on the whole graph."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv

from graphveil.learn.backbones import build_backbone
from graphveil.learn.fields import field_of
from graphveil.learn.graph_training import adjacency, gcn_matrix

PATH = np.array([[0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5]])
ARCS = np.array([[1, 2, 3, 4, 5, 6, 0], [0, 1, 2, 3, 4, 5, 3]])  # one way: whom 0 reads is not who reads 0


@pytest.mark.parametrize(("layers", "seen"), [(1, [0, 1]), (2, [0, 1, 2]), (3, [0, 1, 2, 3])])
def test_a_field_reaches_one_step_per_layer(layers, seen):
    assert field_of(gcn_matrix(PATH, 7), np.array([0]), layers).rows.tolist() == seen


def test_a_field_of_almost_everybody_is_everybody():
    assert field_of(gcn_matrix(PATH, 7), np.array([0, 3, 6]), 2).rows is None


@pytest.mark.parametrize("arcs", [PATH, ARCS])
@pytest.mark.parametrize("asked", [[1], [0], [4, 6], [0, 3, 6]])
def test_logits_and_gradients_in_a_field_are_those_of_the_whole_graph(arcs, asked):
    network, x = build_backbone("gcn", 4, 8, 3, dropout=0.0, seed=1), torch.randn(7, 4)
    field = field_of(gcn_matrix(arcs, 7), np.array(asked), 2)
    found = network(field.of(x), field.edges)[field.asked]
    slopes = torch.autograd.grad(found.square().sum(), list(network.parameters()))
    expected = network(x, adjacency(arcs, 7))[asked]
    others = torch.autograd.grad(expected.square().sum(), list(network.parameters()))
    assert torch.allclose(found, expected, atol=1e-6)
    assert all(torch.allclose(one, two, atol=1e-5) for one, two in zip(slopes, others, strict=True))


@pytest.mark.parametrize("cached", [True, False])
def test_the_convolution_is_pygs_on_one_way_arcs_with_its_gradient(cached):
    network = build_backbone("gcn", 4, 8, 3, dropout=0.0, seed=1).first
    reference = GCNConv(4, 8)
    reference.load_state_dict(network.state_dict())
    network.cached = cached
    ours = torch.randn(7, 4, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    found, expected = network(ours, adjacency(ARCS, 7)), reference(theirs, torch.as_tensor(ARCS))
    weight = torch.randn(7, 8)
    (found * weight).sum().backward()
    (expected * weight).sum().backward()
    assert torch.allclose(found, expected, atol=1e-6) and torch.allclose(ours.grad, theirs.grad, atol=1e-6)
