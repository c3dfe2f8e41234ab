"""The loops: descent along given sums, and ordinary training."""

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
    Adam,
    Calls,
    CentredRows,
    GlobalMoment,
    clipped_gradient_sum,
    descend,
    train_plainly,
)


def blobs(rng: np.random.Generator, count: int = 300, width: int = 12, classes: int = 3):
    labels = rng.integers(0, classes, count)
    centres = 3 * rng.normal(size=(classes, width))
    return torch.from_numpy(centres[labels] + rng.normal(size=(count, width))), torch.from_numpy(labels)


class Descent:
    """The plain step: parameters minus the rate times the gradient."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def step(self, parameters: torch.Tensor, gradient: torch.Tensor, divisor: float = 1.0) -> None:
        parameters.sub_(gradient, alpha=self.rate / divisor)


def accuracy(network, x, y) -> float:
    return float((network(x).argmax(dim=1) == y).double().mean())


def test_descent_divides_the_sum_by_the_public_divisor_and_steps():
    network = MLP((2, 2), bias=False)
    descend(network, lambda step: torch.full((4,), 6.0 * (step + 1), dtype=torch.float64), Descent(0.5), 2, divisor=3)
    torch.testing.assert_close(network.parameters, torch.full((4,), -0.5 * (2 + 4), dtype=torch.float64))


def test_descent_leaves_the_released_sums_as_they_are():
    released = torch.ones(4, dtype=torch.float64)
    descend(MLP((2, 2), bias=False), lambda _: released, Adam(0.1), 3, divisor=7)
    assert torch.equal(released, torch.ones(4, dtype=torch.float64))


def test_descent_reports_progress():
    network, seen = MLP((2, 2), bias=False), []
    gradient = torch.ones(4, dtype=torch.float64)
    descend(network, lambda _: gradient, Descent(1.0), 4, 1.0, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    torch.testing.assert_close(network.parameters, torch.full((4,), -4.0, dtype=torch.float64))


@pytest.mark.parametrize("divisor", [0, -1.0, float("nan"), float("inf")])
def test_a_divisor_that_cannot_divide_is_refused(divisor):
    with pytest.raises(InputError, match="divisor"):
        descend(MLP((2, 2)), lambda _: torch.zeros(6), Descent(1.0), 1, divisor)


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(InputError, match="gradient has shape"):
        descend(MLP((2, 2)), lambda _: torch.zeros(5), Descent(1.0), 1, 1.0)


@pytest.mark.parametrize("sparse", [True, False])
def test_full_batch_training_takes_the_steps_torch_takes(sparse):
    rng = np.random.default_rng(0)
    x, y = blobs(rng, 40)
    network = MLP((12, 5, 3)).initialise(rng)
    reference = nn.Sequential(nn.Linear(12, 5), nn.SELU(), nn.Linear(5, 3)).double()
    with torch.no_grad():
        for layer, ours in zip((reference[0], reference[2]), network.layers, strict=True):
            layer.weight.copy_(ours.weight)
            layer.bias.copy_(ours.bias)
    optimizer = torch.optim.Adam(reference.parameters(), lr=0.01, weight_decay=5e-3)
    for _ in range(15):
        optimizer.zero_grad()
        nn.functional.cross_entropy(reference(x), y).backward()
        optimizer.step()
    rows = SparseRows(sp.csr_matrix(x.numpy())) if sparse else x
    train_plainly(network, rows, y, epochs=15, coins=rng, weight_decay=5e-3)
    expected = torch.cat([parameter.detach().flatten() for parameter in reference.parameters()])
    torch.testing.assert_close(network.parameters, expected, rtol=1e-7, atol=1e-9)


def test_batches_and_dropout_learn_and_repeat_with_the_same_coins():
    x, y = blobs(np.random.default_rng(0))
    runs = []
    for seed in (1, 1, 2):
        coins = np.random.default_rng(seed)
        network = MLP((12, 16, 3)).initialise(np.random.default_rng(0))
        train_plainly(network, x, y, epochs=8, coins=coins, dropout=0.3, batch_size=64)
        runs.append(network)
    assert accuracy(runs[0], x, y) > 0.95
    assert torch.equal(runs[0].parameters, runs[1].parameters)
    assert not torch.equal(runs[0].parameters, runs[2].parameters)


def test_every_epoch_passes_over_every_labelled_example_once():
    seen: list[int] = []

    class Watched(MLP):
        def forward(self, inputs, apply):
            seen.extend(inputs[:, 0].int().tolist())
            return super().forward(inputs, apply)

    x = torch.stack([torch.arange(10.0), torch.ones(10)], dim=1).double()
    y = torch.tensor([0, 1, -1, 0, 1, -1, 0, 1, 0, 1])
    told: list[tuple[int, int]] = []
    train_plainly(
        Watched((2, 2)),
        x,
        y,
        epochs=2,
        coins=np.random.default_rng(0),
        batch_size=3,
        progress=lambda *t: told.append(t),
    )
    labelled = [0, 1, 3, 4, 6, 7, 8, 9]
    assert sorted(seen[:8]) == labelled and sorted(seen[8:]) == labelled
    assert told == [(step, 6) for step in range(1, 7)]


def test_training_accepts_distributions_as_targets():
    rng = np.random.default_rng(0)
    x, y = blobs(rng)
    soft = 0.9 * nn.functional.one_hot(y, 3).double() + 0.1 / 3
    network = MLP((12, 3)).initialise(rng)
    train_plainly(network, x, soft, epochs=60, coins=rng, optimizer=Adam(0.05))
    assert accuracy(network, x, y) > 0.95
    largest = torch.softmax(network(x), dim=1).max(dim=1).values
    assert float(largest.mean()) == pytest.approx(0.9 + 0.1 / 3, abs=0.05)


def test_training_without_a_single_label_only_decays():
    network = MLP((2, 2)).initialise(np.random.default_rng(0))
    before = float(network.parameters.norm())
    x = torch.ones(3, 2, dtype=torch.float64)
    labels = torch.full((3,), -1)
    train_plainly(network, x, labels, epochs=3, coins=np.random.default_rng(0), weight_decay=0.1)
    assert float(network.parameters.norm()) < before


@pytest.mark.parametrize("options", [{"dropout": 1.0}, {"dropout": -0.1}, {"batch_size": 0}])
def test_impossible_training_options_are_refused(options):
    x, y = blobs(np.random.default_rng(0), 5)
    with pytest.raises(InputError, match=next(iter(options))):
        train_plainly(MLP((12, 3)), x, y, epochs=1, coins=np.random.default_rng(0), **options)


def test_dropout_keeps_the_expected_activation_and_spares_the_first_layer():
    network = MLP((1, 1, 1), bias=False)
    network.parameters.fill_(1.0)
    x = torch.ones(20000, 1, dtype=torch.float64)
    calls = Calls(0.25, np.random.default_rng(0))
    with torch.enable_grad():
        network.forward(x, calls)
    first, second = calls.made
    assert torch.equal(first.inputs, x)
    dropped = second.inputs == 0
    # False alarm below 1e-6: five standard deviations of a mean of 20000 coins.
    assert float(dropped.double().mean()) == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / 20000) ** 0.5)
    full = float(torch.selu(torch.ones(1, dtype=torch.float64)))
    torch.testing.assert_close(second.inputs[~dropped], torch.full_like(second.inputs[~dropped], full / 0.75))


def own_predictor(x: np.ndarray, y: torch.Tensor, noise: float, seed: int):
    """The own predictor of Ballot: centred unit rows, 50 clipped full-batch steps, one global second moment."""
    rng = np.random.default_rng(seed)
    steps, clip = 50, 0.5
    centre = (x.sum(axis=0) + noise * rng.normal(size=x.shape[1])) / len(x)
    rows = CentredRows(SparseRows(sp.csr_matrix(x)), centre)
    network = MLP((x.shape[1] + 1, 4), bias=False)
    sigma = clip * steps**0.5 * noise

    def gradient(_: int) -> torch.Tensor:
        total = clipped_gradient_sum(network, rows, y, clip)
        return total + sigma * torch.from_numpy(rng.normal(size=total.numel()))

    descend(network, gradient, GlobalMoment(0.1), steps, divisor=clip * len(x))
    return network, rows


def test_the_own_predictor_learns_through_noise_and_loses_little_of_what_it_learns_without():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 2000)
    words = rng.random((4, 60)) < 0.2
    x = (rng.random((2000, 60)) < np.where(words[labels], 0.35, 0.05)).astype(float)
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    y = torch.from_numpy(labels)
    scores = []
    for noise in (0.0, 1.0):
        network, rows = own_predictor(x, y, noise, seed=1)
        scores.append(accuracy(network, rows, y))
    # Without noise about 0.89, with mu = 1 (epsilon about 4 at delta 1e-4) about 0.85, chance 0.25.
    assert scores[0] > 0.8
    assert scores[1] > scores[0] - 0.1
