"""Our operators are PyG's on pairs and on sparse matrices, and dropout keeps the mean."""

import pytest
import torch
from torch_geometric.nn import ChebConv, SAGEConv, SGConv
from torch_geometric.utils import to_torch_csr_tensor

from graphveil.learn.backbones import build_backbone, dropout, one_graph
from graphveil.learn.graph_training import adjacency, gcn_matrix, mean_matrix
from graphveil.learn.operators import Chebyshev, Sage, Sgc

ARCS = torch.tensor([[0, 1, 2, 3, 1, 4], [1, 0, 1, 2, 3, 2]])  # slot 5 has no edge


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_both_forms_are_pygs_convolution():
    torch.manual_seed(0)
    layer, reference, x = Chebyshev(3, 2, K=2), ChebConv(3, 2, K=2), torch.randn(6, 3)
    reference.load_state_dict(layer.state_dict())
    matrix = to_torch_csr_tensor(ARCS.flip(0), size=(6, 6))
    assert torch.allclose(layer(x, ARCS), reference(x, ARCS), atol=1e-6)
    assert torch.allclose(layer(x, matrix), reference(x, ARCS), atol=1e-6)


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.5, 0.75])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate):
    """Six standard deviations over a million coins: false alarms below 2e-9."""
    torch.manual_seed(1)
    found = dropout(torch.ones(1003, 997), rate)
    share = (found == 0).float().mean().item()
    assert abs(share - rate) <= 6 * (rate * (1 - rate) / 1e6) ** 0.5
    assert torch.allclose(found[found > 0], torch.tensor(1 / (1 - rate)))


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize(("layer", "reference"), [(Sage(3, 2), SAGEConv(3, 2)), (Sgc(3, 2, K=2), SGConv(3, 2, K=2))])
def test_sparse_features_give_the_numbers_and_gradients_of_dense_ones(layer, reference):
    reference.load_state_dict(layer.state_dict())
    x = torch.randn(6, 3).relu()
    found, expected = layer(x.to_sparse_csr(), adjacency(ARCS.numpy(), 6)), reference(x, ARCS)
    assert torch.allclose(found, expected, atol=1e-6)
    found.square().sum().backward()
    expected.square().sum().backward()
    for ours, theirs in zip(layer.parameters(), reference.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_sparse_dropout_keeps_places_and_mean():
    found = dropout(torch.ones(400, 300).to_sparse_csr(), 0.5)
    assert found.layout is torch.sparse_csr and abs(found.values().mean().item() - 1) < 0.02


def test_matrices_are_normalised_by_the_receivers_degrees():
    dense = torch.zeros(6, 6)
    dense[ARCS[1], ARCS[0]] = 1
    scale = (dense.sum(dim=1) + 1).rsqrt()
    expected = scale[:, None] * (dense + torch.eye(6)) * scale
    assert torch.allclose(gcn_matrix(ARCS.numpy(), 6).to_dense(), expected)
    assert torch.allclose(mean_matrix(ARCS.numpy(), 6).to_dense(), dense / dense.sum(dim=1, keepdim=True).clamp(min=1))


def test_a_network_forgets_the_one_graph_it_was_trained_on():
    network, x = build_backbone("gcn", 3, 4, 2, dropout=0.0), torch.randn(6, 3)
    with one_graph(network):
        network(x, adjacency(ARCS.numpy(), 6))
    other = ARCS[:, :2]
    assert torch.allclose(network(x, adjacency(other.numpy(), 6)), network(x, other), atol=1e-6)
