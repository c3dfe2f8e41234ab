"""The combiner's gradients are right, bounded and silent where there is only noise."""

import numpy as np
import pytest
from scipy.special import log_softmax

from graphveil.methods.ballot.combiner import Combiner, SteadyMomentum

CLASSES = 4


def problem(seed=0, rows=30):
    rng = np.random.default_rng(seed)
    z = log_softmax(rng.normal(size=(rows, CLASSES)), axis=1)
    return z, rng.normal(size=(rows, CLASSES)), rng.integers(0, CLASSES, rows), rng


def loss(combiner, z, table, labels):
    return -log_softmax(combiner.logits(z, table), axis=1)[np.arange(len(labels)), labels].sum()


@pytest.mark.parametrize("start", [Combiner.homophilous(CLASSES, 0.7), Combiner.structural(CLASSES, CLASSES)])
def test_the_gradient_is_that_of_the_cross_entropy_in_the_scaled_coordinates(start):
    z, table, labels, rng = problem()
    size = 2 + CLASSES if start.scalar else 1 + CLASSES * (CLASSES + 1)
    combiner = start.moved(0.3 * rng.normal(size=size))
    gradient = combiner.gradient_sum(z, table, labels, None)
    step = 1e-6
    for place in range(size):
        nudge = np.zeros(size)
        nudge[place] = step
        slope = (loss(combiner.moved(nudge), z, table, labels) - loss(combiner.moved(-nudge), z, table, labels)) / (
            2 * step
        )
        assert gradient[place] == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("scalar", [True, False])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_one_record_moves_the_gradient_sum_by_at_most_the_clip(scalar, size):
    z, table, labels, rng = problem(1)
    table = table * size
    start = Combiner.homophilous(CLASSES, 2.0) if scalar else Combiner.structural(CLASSES, CLASSES)
    count = 2 + CLASSES if scalar else 1 + CLASSES * (CLASSES + 1)
    combiner = start.moved(rng.normal(size=count))
    full = combiner.gradient_sum(z, table, labels, 1.0)
    largest = 0.0
    for r in range(len(labels)):
        without = labels.copy()
        without[r] = -1
        largest = max(largest, np.linalg.norm(full - combiner.gradient_sum(z, table, without, 1.0)))
    assert largest <= 1 + 1e-9
    if size >= 1:
        assert largest > 0.99


def test_unlabelled_records_contribute_nothing():
    z, table, labels, _ = problem()
    assert not Combiner.homophilous(CLASSES, 1.0).gradient_sum(z, table, np.full_like(labels, -1), 1.0).any()


def test_noise_alone_moves_the_parameters_less_than_plain_momentum_would():
    """False alarm: the shrunken walk exceeds a third of the plain one with probability far below 1e-3 for 100 coordinates."""
    rng = np.random.default_rng(0)
    steady, plain = SteadyMomentum(0.1, 60, noise=1.0), SteadyMomentum(0.1, 60, noise=0.0)
    noise = rng.normal(size=(60, 100))
    walked = [np.linalg.norm(sum(optimizer.step(row) for row in noise)) for optimizer in (steady, plain)]
    assert walked[0] < walked[1] / 3


def test_a_clear_gradient_is_followed():
    steady = SteadyMomentum(0.1, 60, noise=0.01)
    direction = np.ones(5)
    assert all(steady.step(direction) < 0)
