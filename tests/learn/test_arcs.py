"""Operators on sorted arcs are PyG's on pairs: the same rows and the same gradients, whoever is alone, double or hears itself."""

import numpy as np
import pytest
import torch

from graphveil.learn.arcs import Arcs
from graphveil.learn.backbones import NAMES, as_lpgnn_builds, build_backbone
from graphveil.learn.graph_training import edges_for

PAIRS = np.array([[0, 1, 2, 3, 1, 4, 4, 4, 5], [1, 0, 1, 2, 3, 2, 2, 4, 0]])  # 4 -> 2 twice, 4 hears itself, 6 is alone
ON_ARCS = ("gcn", "sage", "gat", "gatv2", "transformer", "graphconv")


def test_arcs_stand_in_the_order_of_their_receivers():
    arcs = Arcs.of(PAIRS, 7)
    assert arcs.nodes == 7 and sorted(zip(arcs.senders, arcs.receivers, strict=True)) == sorted(map(tuple, PAIRS.T))
    assert (np.diff(arcs.receivers) >= 0).all()
    around = arcs.with_loops
    assert sum(around.senders == around.receivers) == 7 and len(around.senders) == len(arcs.senders) - 1 + 7


def gradients(network, x, edges):
    """Rows and gradients of a loss that weighs every number differently."""
    x = x.clone().requires_grad_()
    found = network(x, edges)
    weights = torch.linspace(-1, 2, found.numel(), dtype=found.dtype).view(found.shape)
    parameters = list(network.parameters())
    return found.detach(), torch.autograd.grad((found * weights).sum(), [x, *parameters])


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("name", ON_ARCS)
@pytest.mark.parametrize("build", [as_lpgnn_builds, build_backbone])
def test_rows_and_gradients_are_those_of_pairs(name, build):
    network = build(name, 5, 8, 3, 0.0, seed=1).eval()
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    expected, slopes = gradients(network, x, torch.from_numpy(PAIRS))
    if name == "gcn":
        network = build(name, 5, 8, 3, 0.0, seed=1).eval()
    found, ours = gradients(network, x, Arcs.of(PAIRS, 7))
    assert torch.allclose(found, expected, atol=1e-5)
    for one, other in zip(ours, slopes, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_backbone_reads_the_edges_made_for_it(name):
    network = as_lpgnn_builds(name, 5, 8, 3, 0.0, seed=1).eval()
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    single = np.unique(PAIRS[:, PAIRS[0] != PAIRS[1]], axis=1)
    found = network(x, edges_for(name, single, 7))
    fresh = as_lpgnn_builds(name, 5, 8, 3, 0.0, seed=1).eval()
    assert torch.allclose(found, fresh(x, torch.from_numpy(single)), atol=1e-5)


def test_without_an_arc_attention_says_nothing_but_ones_own_row():
    network = as_lpgnn_builds("transformer", 5, 8, 3, 0.0, seed=1).eval()
    x, nobody = torch.randn(4, 5), Arcs.of(np.zeros((2, 0), dtype=np.int64), 4)
    assert torch.allclose(network.first(x, nobody), network.first.lin_skip(x))
