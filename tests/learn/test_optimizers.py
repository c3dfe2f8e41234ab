"""Optimisers equal their formulas in numpy and, where torch has them, torch's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from graphveil.errors import InputError
from graphveil.learn import Adam, GlobalMoment

STEPS = 30


@pytest.fixture
def gradients() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(STEPS, 11)) * rng.lognormal(sigma=2, size=11)


def follow(optimizer, gradients) -> np.ndarray:
    parameters = torch.ones(gradients.shape[1], dtype=torch.float64)
    path = []
    for gradient in gradients:
        optimizer.step(parameters, torch.from_numpy(gradient))
        path.append(parameters.numpy().copy())
    return np.array(path)


def follow_torch(make, gradients) -> np.ndarray:
    parameters = torch.ones(gradients.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = make([parameters])
    path = []
    for gradient in gradients:
        parameters.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        path.append(parameters.detach().numpy().copy())
    return np.array(path)


def test_adam_is_that_of_torch(gradients):
    expected = follow_torch(lambda p: torch.optim.Adam(p, lr=0.03), gradients)
    actual = follow(Adam(0.03), gradients)
    np.testing.assert_allclose(actual, expected, rtol=1e-10)


def test_adam_follows_its_published_formula(gradients):
    theta, m, v = np.ones(11), np.zeros(11), np.zeros(11)
    expected = []
    for t, g in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        theta = theta - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        expected.append(theta)
    np.testing.assert_allclose(follow(Adam(0.01), gradients), expected, rtol=1e-10)


def test_the_global_moment_divides_momentum_by_one_root_mean_square(gradients):
    theta, m, v = np.ones(11), np.zeros(11), 0.0
    expected = []
    for t, g in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * np.mean(g**2)
        theta = theta - 0.1 * (m / (1 - 0.9**t)) / math.sqrt(v / (1 - 0.999**t))
        expected.append(theta)
    np.testing.assert_allclose(follow(GlobalMoment(0.1), gradients), expected, rtol=1e-10)


def test_the_first_step_of_the_global_moment_has_root_mean_square_equal_to_the_rate(gradients):
    step = follow(GlobalMoment(0.1), gradients[:1])[0] - 1
    assert math.sqrt(np.mean(step**2)) == pytest.approx(0.1)
    np.testing.assert_allclose(step / np.linalg.norm(step), -gradients[0] / np.linalg.norm(gradients[0]))


def test_the_global_moment_does_not_care_for_the_scale_of_gradients(gradients):
    np.testing.assert_allclose(
        follow(GlobalMoment(0.1), gradients), follow(GlobalMoment(0.1), 1e4 * gradients), rtol=1e-10
    )


@pytest.mark.parametrize("make", [lambda: Adam(0.1), lambda: GlobalMoment(0.1)])
def test_steps_leave_the_gradient_as_it_is_and_zero_gradients_move_nothing(make):
    gradient = torch.arange(5.0, dtype=torch.float64)
    parameters = torch.zeros(5, dtype=torch.float64)
    make().step(parameters, gradient)
    assert torch.equal(gradient, torch.arange(5.0, dtype=torch.float64))
    still = torch.ones(5, dtype=torch.float64)
    make().step(still, torch.zeros(5, dtype=torch.float64))
    assert torch.equal(still, torch.ones(5, dtype=torch.float64))


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_useless_learning_rate_is_refused(rate):
    with pytest.raises(InputError, match="learning rate"):
        Adam(rate)
