"""Mechanisms cost what they say and perturb as they say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphveil.errors import PrivacyError
from graphveil.privacy.accounting.loss import Gdp, LaplaceLoss, Pure, SampledGaussian, Unbounded
from graphveil.privacy.mechanisms import (
    DpGradient,
    Exact,
    Gaussian,
    Laplace,
    RandomizedResponse,
    mechanism_from_json,
    mechanism_to_json,
)
from graphveil.privacy.noise import Noise


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


def test_randomized_response_keeps_and_changes_with_the_exact_probabilities():
    mechanism, size = RandomizedResponse(1.0, 4), 200_000
    out = mechanism.apply(np.full(size, 2), Noise(1))
    shares = np.bincount(out, minlength=4) / size
    keep = math.e / (math.e + 3)
    expected = np.full(4, (1 - keep) / 3)
    expected[2] = keep
    assert np.abs(shares - expected).max() < 6 * math.sqrt(0.25 / size)
    assert math.log(expected[2] / expected[0]) == pytest.approx(1.0)


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


@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(1.5, 7),
        Laplace(0.2, 3),
        RandomizedResponse(2.0, 5),
        DpGradient(1.0, 0.5, 9, 8, 0.3, True, 1e-9),
        Exact(4),
    ],
)
def test_json_round_trip(mechanism):
    assert mechanism_from_json(mechanism_to_json(mechanism)) == mechanism
