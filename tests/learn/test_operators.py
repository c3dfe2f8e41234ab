"""The Chebyshev layer is PyG's on pairs and on a sparse matrix, and dropout keeps the mean."""

import pytest
import torch
from torch_geometric.nn import ChebConv
from torch_geometric.utils import to_torch_csr_tensor

from graphveil.learn.backbones import dropout
from graphveil.learn.operators import Chebyshev

ARCS = torch.tensor([[0, 1, 2, 3, 1, 4], [1, 0, 1, 2, 3, 2]])  # slot 5 has no edge


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_both_forms_are_pygs_convolution():
    torch.manual_seed(0)
    layer, reference, x = Chebyshev(3, 2), ChebConv(3, 2, K=2), torch.randn(6, 3)
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
