"""What is computed again only where a changed row can reach is what a forward pass per probe gives."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphveil.attacks import Perturbation, influence
from graphveil.attacks import changed_arcs as module
from graphveil.attacks.published_api import PUBLISHED_STEP, OwnPrecision
from graphveil.learn.backbones import ON_ARCS, as_lpgnn_builds

pytestmark = pytest.mark.filterwarnings("ignore:removed duplicate arcs")
NODES, FEATURES, CLASSES = 40, 6, 3


@pytest.fixture(scope="module")
def asked():
    """Directed arcs, some of them double, some loops, and four nodes that hear nobody."""
    coins = np.random.default_rng(0)
    arcs = np.stack([coins.integers(0, NODES, 90), coins.integers(4, NODES, 90)])
    arcs = np.concatenate([arcs, arcs[:, :5], [[7, 8], [7, 8]]], axis=1)
    x = torch.from_numpy(coins.normal(size=(NODES, FEATURES)))
    return Data(x=x, edge_index=torch.from_numpy(arcs), num_nodes=NODES, num_classes=CLASSES, directed=True)


@pytest.fixture(scope="module")
def every_pair():
    first, second = np.divmod(np.arange(NODES * NODES), NODES)
    return first, second  # a node's own influence on itself among them


def target(name, kind=torch.float64):
    return OwnPrecision(as_lpgnn_builds(name, FEATURES, 8, CLASSES, 0.5, seed=3).to(kind), 2)


@pytest.mark.parametrize("name", ON_ARCS)
@pytest.mark.parametrize("change", [PUBLISHED_STEP, Perturbation(0.5)], ids=["scale", "mean"])
@pytest.mark.parametrize("compare", ["logits", "probabilities"])
def test_every_pair_has_the_number_of_a_forward_pass_with_the_changed_row(asked, every_pair, name, change, compare):
    fast = influence(target(name), asked, *every_pair, change, compare=compare)
    slow = influence(target(name), asked, *every_pair, change, form="queries", compare=compare)
    assert (fast.form, fast.queries) == ("incremental", 0) and slow.queries == NODES + 1
    assert slow.values.max() > 1e-4 and 0.1 < np.mean(slow.values == 0) < 0.95
    np.testing.assert_allclose(fast.values, slow.values, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(fast.values[slow.values == 0], 0)


@pytest.mark.parametrize("name", ON_ARCS)
def test_small_blocks_give_the_same_numbers(asked, every_pair, name, monkeypatch):
    whole = influence(target(name), asked, *every_pair, PUBLISHED_STEP).values
    monkeypatch.setattr(module, "BLOCK", 7)
    np.testing.assert_allclose(influence(target(name), asked, *every_pair, PUBLISHED_STEP).values, whole, rtol=1e-9)


@pytest.mark.parametrize("name", ON_ARCS)
def test_a_certain_answer_does_not_move_in_single_precision(asked, every_pair, name):
    """Logits some hundreds apart: single probabilities are 0 or 1 on both sides of the change, to the last bit."""
    single = target(name, torch.float32)
    with torch.no_grad():
        for parameter in single.network.second.parameters():
            parameter.mul_(1e6)
    found = influence(single, asked, *every_pair, PUBLISHED_STEP, compare="probabilities").values
    slow = influence(single, asked, *every_pair, PUBLISHED_STEP, form="queries", compare="probabilities").values
    assert np.mean(found == 0) > 0.8
    assert np.mean((found == 0) == (slow == 0)) > 0.99


def test_nobody_moves_where_nobody_hears(asked):
    """Nodes 0 to 3 hear nobody: whoever changes, they do not."""
    first, second = np.repeat(np.arange(4), NODES), np.tile(np.arange(NODES), 4)
    others = first != second
    for name in ON_ARCS:
        assert not influence(target(name), asked, first[others], second[others], PUBLISHED_STEP).values.any()
