"""Mechanisms cost what they say and perturb as they say."""

import json
import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphveil.errors import InputError, PrivacyError
from graphveil.privacy.accounting.loss import Gdp, LaplaceLoss, Pure, SampledGaussian, Unbounded, epsilon_of
from graphveil.privacy.mechanisms import (
    AskedFlips,
    DpGradient,
    EdgeFlips,
    Exact,
    Gaussian,
    GumbelTop,
    Laplace,
    Mechanism,
    RandomizedResponse,
    mechanism_from_json,
    mechanism_to_json,
)
from graphveil.privacy.mechanisms.base import MECHANISMS
from graphveil.privacy.noise import Noise
from graphveil.privacy.plan import Release, Slot

DRAWS = 100_000


@given(st.floats(0.01, 30), st.floats(0.01, 10), st.integers(1, 10**9))
def test_calibrated_gaussians_never_exceed_their_share(sensitivity, mu, dimension):
    mechanism = Gaussian.for_mu(sensitivity, mu, dimension)
    assert mechanism.loss(sensitivity).mu <= mu
    assert mechanism.loss(sensitivity).mu >= mu * (1 - 1e-4)
    assert mechanism.loss(0.0) == Gdp(0.0)


@given(st.floats(0.1, 2), st.floats(0.05, 5), st.integers(1, 200), st.booleans())
def test_full_batch_gradients_never_exceed_their_share(clip, mu, steps, replaces):
    mechanism = DpGradient.for_mu(clip, mu, steps, 1000, replaces, slack=1e-6)
    assert mu * (1 - 1e-6) <= mechanism.loss(clip).mu <= mu


def test_replacement_needs_twice_the_noise_of_zero_out():
    zero, swap = (DpGradient.for_mu(1.0, 1.0, 10, 5, replaces) for replaces in (False, True))
    assert swap.sigma == pytest.approx(2 * zero.sigma)


def test_sampled_gradients_are_accounted_as_sampled():
    mechanism = DpGradient(2.0, 1.0, 10, 4, rate=0.1)
    assert mechanism.loss(1.0) == SampledGaussian(pytest.approx(2.0), 0.1, 10, False)


def test_laplace_and_randomized_response_are_pure():
    assert Laplace(2.0, 3).loss(1.0) == LaplaceLoss(pytest.approx(0.5))
    assert RandomizedResponse(1.5, 4).loss(1.0) == Pure(1.5)


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Gaussian(0.0, 1),
        lambda: Gaussian(math.nan, 1),
        lambda: Gaussian(1.0, 0),
        lambda: Laplace(math.inf, 1),
        lambda: DpGradient(1.0, 0.0, 1, 1),
        lambda: DpGradient(1.0, 1.0, 0, 1),
        lambda: DpGradient(1.0, 1.0, 1, 1, rate=0.0),
        lambda: RandomizedResponse(1.0, 1),
        lambda: Gaussian.for_mu(1.0, 0.0, 4),
    ],
)
def test_a_scale_of_zero_or_nan_raises(broken):
    with pytest.raises(PrivacyError):
        broken()


def test_only_the_exact_mechanism_adds_nothing_and_it_is_unbounded():
    assert Exact().loss(1.0) == Unbounded()
    assert Exact().loss(0.0) == Gdp(0.0)
    value = np.arange(3.0)
    assert np.array_equal(Exact().apply(value, Noise(0)), value)


EVERY = [
    Gaussian(1.5, 7),
    Laplace(0.2, 3),
    RandomizedResponse(2.0, 5),
    DpGradient(1.0, 0.5, 9, 8, 0.3, True, 1e-9),
    DpGradient(1.0, 0.5, 9, 8, 0.3, group=(3, 2)),
    EdgeFlips(1.0, 12),
    AskedFlips(1.0, 12),
    GumbelTop(1.0, 2, 3, 4),
    Exact(4),
]


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
def test_json_round_trip(mechanism):
    body = mechanism_to_json(mechanism)
    assert mechanism_from_json(json.loads(json.dumps(body))) == mechanism
    assert list(body) == ["kind", *(field.name for field in fields(mechanism))]


def test_an_unknown_kind_is_named():
    with pytest.raises(InputError, match=r"unknown mechanism 'alchemy'.*gaussian"):
        mechanism_from_json({"kind": "alchemy"})


def test_a_mechanism_of_ones_own_is_known_by_its_kind_and_no_kind_is_taken_twice():
    @dataclass(frozen=True)
    class Doubled(Mechanism):
        kind: ClassVar[str] = "doubled"
        steps: int

        def loss(self, sensitivity):
            return Unbounded()

        def apply(self, value, noise):
            return 2 * value

        def words(self):
            return "twice the value"

    try:
        assert mechanism_from_json({"kind": "doubled", "steps": 2}) == Doubled(2)
        with pytest.raises(InputError, match="another one"):
            type("Other", (Mechanism,), {"kind": "doubled"})
        with pytest.raises(PrivacyError, match="no distance"):
            Doubled(2).distance(np.zeros(1), np.ones(1))
    finally:
        del MECHANISMS["doubled"]


BEFORE, AFTER = np.array([[0.0, 3.0, 1.0], [2.0, 2.0, 2.0]]), np.array([[3.0, -1.0, 1.0], [2.0, 2.0, 2.0]])


@pytest.mark.parametrize(
    ("mechanism", "before", "after", "distance"),
    [
        (Gaussian(1.0, 6), BEFORE, AFTER, 5.0),
        (DpGradient(1.0, 1.0, 2, 6), BEFORE, AFTER, 5.0),
        (Exact(), BEFORE, AFTER, 5.0),
        (Laplace(1.0, 6), BEFORE, AFTER, 7.0),
        (GumbelTop(1.0, 1, 2, 3), BEFORE, AFTER, 4.0),
        (RandomizedResponse(1.0, 4), np.array([0, 1, 2]), np.array([0, 3, 1]), 2.0),
        (EdgeFlips(1.0, 9), np.array([1, 4, 7]), np.array([4, 8]), 3.0),
        (AskedFlips(1.0, 9), np.array([[1, 4, 7], [1, 0, 1]]), np.array([[1, 5, 7], [0, 1, 1]]), 1.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_distances_are_those_of_the_sensitivity_and_equal_values_have_no_worlds(mechanism, before, after, distance):
    assert mechanism.distance(before, after) == mechanism.distance(after, before) == pytest.approx(distance)
    assert mechanism.distance(before, before) == 0.0
    assert mechanism.worlds(before, before) == [] and len(mechanism.worlds(before, after)) == 1


@pytest.mark.parametrize("mechanism", [m for m in EVERY if m.worst_pair(1.0)], ids=repr)
def test_the_worst_pair_is_worth_no_more_than_the_loss(mechanism):
    """mu^2 of the pair against that of the accounted loss, exact for full batches and a guide for the rest."""
    mu = math.sqrt(sum(law.squared_mu for law in mechanism.worst_pair(1.0)))
    loss = mechanism.loss(1.0)
    if isinstance(loss, Gdp):
        assert mu <= loss.mu <= mu * (1 + 1e-9)
    elif isinstance(loss, (Pure, LaplaceLoss)):
        assert mu <= epsilon_of([loss], 1e-12) * (1 + 1e-9)
    else:
        assert len(mechanism.worst_pair(1.0)) == loss.steps


def test_what_a_slot_asks_for():
    def fills(mechanism, steps=0, bound=1.0, replaces=False):
        slot = Slot("slot", {"train": bound}, 1.0, 5, "", steps, replaces)
        return slot.with_noise_of(Release("slot", mechanism, {"train": bound}, "")).mechanism == mechanism

    assert fills(Gaussian(1.0, 5)) and not fills(Gaussian(1.0, 5), steps=2) and not fills(Laplace(1.0, 5))
    assert fills(DpGradient(1.0, 2.0, 3, 5), steps=3, bound=2.0)
    assert not fills(DpGradient(1.0, 2.0, 3, 5, rate=0.5), steps=3, bound=2.0)
    assert not fills(DpGradient(1.0, 2.0, 3, 5), steps=3, bound=2.0, replaces=True)


def test_only_additive_noise_has_a_deviation_and_only_sums_have_sessions():
    assert Gaussian(2.0, 1).added.deviation == 2.0 and Laplace(2.0, 1).added.deviation == 2 * math.sqrt(2)
    assert [m.kind for m in EVERY if m.added is None] == [
        "randomized-response",
        "edge-flips",
        "asked-flips",
        "gumbel-top",
        "exact",
    ]
    assert [m.kind for m in EVERY if m.sums] == ["dp-gradient", "dp-gradient", "exact"]
    assert DpGradient(1.0, 0.5, 9, 8, group=(3, 2)).allowance(0.5) == 2.5


@pytest.mark.parametrize("mechanism", [Gaussian(1.3, DRAWS), Laplace(0.4, DRAWS)], ids=lambda m: m.kind)
def test_additive_noise_is_described_as_it_is_drawn(mechanism):
    """Six standard errors of the mean of the distribution function, which is uniform if the law is right."""
    released = mechanism.apply(np.zeros(DRAWS), Noise(3))
    added = mechanism.added
    uniform = added.distribution(added.residual(np.zeros(DRAWS), released))
    assert abs(uniform.mean() - 1 / 2) < 6 * math.sqrt(1 / 12 / DRAWS)
    assert abs((uniform**2).mean() - 1 / 3) < 6 * math.sqrt(4 / 45 / DRAWS)
    assert added.on_grid(released) and not added.on_grid(released + 1e-14)


def test_words_say_what_certificates_print():
    assert [mechanism.words() for mechanism in EVERY] == [
        "Gaussian noise 1.5 on 7 numbers",
        "Laplace noise 0.2 on 3 numbers",
        "randomised response, epsilon 2, 5 categories",
        "9 gradient steps, clip 0.5, noise 1 on 8 numbers, Poisson batches of rate 0.3",
        "9 gradient steps, clip 0.5, noise 1 on 8 numbers, Poisson batches of rate 0.3, groups of (3, 2) rows",
        "one coin for each of 12 pairs, epsilon 1",
        "one coin for each of 12 pairs, epsilon 1, drawn for the pairs asked for",
        "2 picks in each of 3 rows of 4, Gumbel noise 1",
        "NO NOISE (4 steps)",
    ]
