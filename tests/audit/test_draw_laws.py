"""Faithful samplers are never called false, at any epsilon; samplers with less noise than stated always are."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import graphveil as gv
from graphveil.audit.local.audit import audit_local
from graphveil.audit.local.draw_laws import bernstein
from graphveil.audit.local.exact_ratios import Domain, draws_follow_density
from graphveil.audit.result import GREEN
from graphveil.exchange.randomizers import Direction, EdgeListResponse, LabelHistogram, LaplaceRows, MultiBit, Piecewise
from graphveil.methods.rr_edges import RrEdges
from graphveil.privacy.noise import Noise

SLOTS = 100
BINS = np.arange(SLOTS) % 4
EPSILONS = (0.5, 3.0, 10.0)


@dataclass(frozen=True)
class QuietHistogram(LabelHistogram):
    """Half the noise of its density."""

    def randomize(self, records, broadcast, rng):
        return LabelHistogram(min(30.0, 2 * self.budget), self.bins).randomize(records, broadcast, rng)


@dataclass(frozen=True)
class QuietRows(LaplaceRows):
    """Half the noise of its density."""

    def randomize(self, records, broadcast, rng):
        return LaplaceRows(2 * self.budget, self.width, self.lower, self.upper).randomize(records, broadcast, rng)


@dataclass(frozen=True)
class OneDraw(LaplaceRows):
    """One draw for all columns: differences between them carry no noise."""

    def randomize(self, records, broadcast, rng):
        clean = np.atleast_2d(records)
        return clean + rng.laplace(self.scale, (len(clean), 1))


@dataclass(frozen=True)
class SteadyBits(EdgeListResponse):
    """Draws with twice the budget."""

    def randomize(self, records, broadcast, rng):
        return EdgeListResponse(2 * self.budget, self.slots).randomize(records, broadcast, rng)


@dataclass(frozen=True)
class LoyalBits(EdgeListResponse):
    """Never drops a contact."""

    def randomize(self, records, broadcast, rng):
        noisy = super().randomize(records, broadcast, rng)
        return type(noisy).of([np.union1d(records[n], noisy[n]) for n in range(len(noisy))])


class NarrowPiecewise(Piecewise):
    """Draws with twice the budget per attribute."""

    def randomize(self, records, broadcast, rng):
        other = Piecewise(2 * self.budget, self.width, sampled=self.m)
        return other.randomize(records, broadcast, rng) * (
            other.law.scale / self.law.scale
        )  # on the grid of the stated law


class NarrowDirection(Direction):
    """Draws with twice the budget."""

    def randomize(self, records, broadcast, rng):
        return Direction(2 * self.budget, self.width, self.projected).randomize(records, broadcast, rng)


def honest(randomizer, seed):
    """The checks of ``audit_randomizer`` on the worst pair alone."""
    if isinstance(randomizer, (EdgeListResponse, LabelHistogram)):
        one, other, bound = np.array([0, 1, 2]), np.array([0, 1, 3]), randomizer.cost
    else:
        low, high = getattr(randomizer, "lower", -1.0), getattr(randomizer, "upper", 1.0)
        one, other, bound = np.full(randomizer.width, low), np.full(randomizer.width, high), randomizer.epsilon
    domain = Domain.of_any_two([one, other], [], whole=False)
    broadcast = BINS if isinstance(randomizer, LabelHistogram) else None
    return draws_follow_density(randomizer, domain, (0, 1), np.empty((2, 0)), bound, broadcast, Noise(seed))


@pytest.mark.parametrize("epsilon", [EPSILONS[0], EPSILONS[-1]])
@pytest.mark.parametrize("build", [EdgeListResponse, LabelHistogram, LaplaceRows], ids=lambda b: b.__name__)
def test_faithful_samplers_are_believed_for_ten_seeds(build, epsilon):
    randomizer = build(epsilon, SLOTS if build is EdgeListResponse else 4)
    assert all(honest(randomizer, seed) for seed in range(10))


@pytest.mark.parametrize(
    "randomizer", [MultiBit(8.0, 20), Piecewise(1.0, 4), Piecewise(10.0, 4), Direction(1.0, 4, None)], ids=repr
)
def test_other_faithful_samplers_are_believed(randomizer):
    assert all(honest(randomizer, seed) for seed in range(3))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("build", [QuietHistogram, QuietRows, OneDraw, SteadyBits], ids=lambda b: b.__name__)
def test_too_little_noise_is_seen_for_every_seed(build, epsilon):
    randomizer = build(epsilon, SLOTS if build is SteadyBits else 4)
    assert not any(honest(randomizer, seed) for seed in range(5))


@pytest.mark.parametrize(
    "randomizer",
    [LoyalBits(2.0, SLOTS), NarrowPiecewise(2.0, 4, sampled=2), NarrowDirection(2.0, 4, None)],
    ids=lambda r: type(r).__name__,
)
def test_other_unfaithful_samplers_are_seen(randomizer):
    assert not any(honest(randomizer, seed) for seed in range(3))


def test_randomised_lists_at_a_large_epsilon_are_no_false_alarm():
    """With six standard errors of the sample as tolerance this was red for every one of these seeds."""
    for seed in range(2):
        found = audit_local(RrEdges(), gv.Local(1.0, 1.0, 8.0), seed=seed)
        assert found.verdict == GREEN, found.failures


def test_the_tolerance_solves_bernsteins_inequality():
    t = bernstein(3.0, 5.0, 1000, 1e-6) - 1e-9
    assert 1000 * t**2 / (2 * (3.0 + 5.0 * t / 3)) == pytest.approx(math.log(2e6))
