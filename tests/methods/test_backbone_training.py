"""Training on reports: the losses by hand, one graph in two forms, and a descent that may be interrupted."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.learn.backbones import ATTENTION, NAMES, build_backbone
from graphveil.learn.graph_training import edges_for
from graphveil.methods.common.backbone_training import (
    BackboneTraining,
    NoisyLabels,
    almost_clean_channel,
    dense_columns,
)

PAIR = np.array([[0, 1], [1, 0]])
CHANNEL = torch.tensor([[0.8, 0.2], [0.2, 0.8]])
LOGITS = torch.tensor([[3.0, 0.0], [-1.0, 2.0]])
REPORTS = np.array([0, 1])
BOTH = torch.tensor([0, 1])


def objective(loss, steps=1):
    return BackboneTraining(loss=loss, label_steps=steps)._objective(PAIR, REPORTS, CHANNEL, BOTH)


def test_drop_is_the_forward_loss_after_propagation():
    """One step on a single edge: propagation swaps the two rows, so the target of each is the report of the other."""
    noisy = (LOGITS.softmax(1) @ CHANNEL).flip(0)
    expected = torch.nn.functional.cross_entropy(noisy, torch.tensor([1, 0]))
    assert torch.allclose(objective("drop")(LOGITS), expected)


def test_drop_without_steps_is_forward_correction():
    expected = -(LOGITS.softmax(1) @ CHANNEL)[BOTH, BOTH].log().mean()
    assert torch.allclose(objective("drop", 0)(LOGITS), expected)
    assert torch.allclose(objective("forward")(LOGITS), expected)
    assert torch.allclose(objective("plain")(LOGITS), torch.nn.functional.cross_entropy(LOGITS, BOTH))


def session(nodes=30, classes=2):
    masks = {"train": np.arange(nodes) < 20, "calibration": np.arange(nodes) >= 20}
    return SimpleNamespace(facts=SimpleNamespace(classes=classes), masks=masks, tell=lambda *_: None)


def problem(nodes=30, seed=0):
    coins = np.random.default_rng(seed)
    senders, receivers = coins.integers(nodes, size=(2, 90))
    arcs = np.unique(np.stack([senders, receivers])[:, senders != receivers], axis=1)
    labels = NoisyLabels(coins.integers(2, size=nodes), almost_clean_channel(2))
    return coins.standard_normal((nodes, 5)), arcs, labels


@pytest.mark.parametrize("backbone", [name for name in NAMES if name not in ATTENTION])
def test_a_sparse_matrix_and_pairs_of_a_directed_graph_give_the_same_network(backbone):
    inputs, arcs, _ = problem()
    network = build_backbone(backbone, 5, 4, 2, dropout=0.0, seed=1).eval()
    x = torch.as_tensor(inputs, dtype=torch.float32)
    form = edges_for(backbone, arcs, len(inputs))
    assert form.layout is torch.sparse_csr
    assert torch.allclose(network(x, form), network(x, torch.as_tensor(arcs)), atol=1e-5)


@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_an_interrupted_descent_ends_where_an_uninterrupted_one_does(backbone):
    training = BackboneTraining(backbone=backbone, epochs=10, hidden=4)
    whole = training.start(session(), *problem(), seed=3).until(10)
    run = training.start(session(), *problem(), seed=3)
    state = torch.random.get_rng_state()
    run.until(4)
    torch.rand(7)  # somebody else's coins
    parts = run.until(10)
    assert np.array_equal(whole.scores, parts.scores) and whole.epoch == parts.epoch
    torch.random.set_rng_state(state)


def test_the_best_epoch_is_the_one_that_released_validation_labels_like_best():
    inputs, arcs, labels = problem()
    run = BackboneTraining(epochs=60, hidden=16, learning_rate=0.1).start(session(), inputs, arcs, labels, 1)
    losses = []
    for epoch in range(5, 61, 5):
        run.until(epoch)
        losses.append(run.best.validation_loss)
    assert losses == sorted(losses, reverse=True) and run.best.epoch < 60


def test_labels_that_nobody_reported_are_refused():
    inputs, arcs, labels = problem()
    nobody = NoisyLabels(np.full(30, -1), labels.channel)
    with pytest.raises(InputError, match="labelled train and validation"):
        BackboneTraining().start(session(), inputs, arcs, nobody, 0)


def test_wide_reports_are_compressed_by_public_coins_and_keep_their_distances():
    """Johnson and Lindenstrauss: with 2 000 columns squared distances are kept within 6 standard deviations, sqrt(2/2000)."""
    rows = np.random.default_rng(0).standard_normal((2, 5000))
    found = dense_columns(rows, 2000, np.random.default_rng(1)) / np.sqrt(2000)
    ratio = np.square(found[0] - found[1]).sum() / np.square(rows[0] - rows[1]).sum()
    assert found.shape == (2, 2000) and abs(ratio - 1) < 6 * np.sqrt(2 / 2000)
    assert dense_columns(rows, 5000, np.random.default_rng(1)).shape == (2, 5000)
