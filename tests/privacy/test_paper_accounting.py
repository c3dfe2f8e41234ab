"""The papers' own accounting: equal to what their library computes, never below what is true."""

import numpy as np
import pytest
from scipy.special import logsumexp

import graphveil as gv
from graphveil.privacy.accounting.group_loss import log_binomial
from graphveil.privacy.accounting.loss import Gdp, SampledGaussian, epsilon_of
from graphveil.privacy.accounting.paper import ORDERS, claimed_noise, fixed_batch_epsilon, poisson_epsilon


@pytest.mark.parametrize(
    ("records", "batch", "delta", "noise"),
    [(5651, 64, 1e-4, 1.281), (14788, 256, 1e-5, 1.568), (16853, 256, 1e-5, 1.491)],
)
def test_fixed_size_batches_give_the_noise_of_the_authors_code(records, batch, delta, noise):
    """DPDGC, epsilon 16, 100 + 100 epochs: noise multipliers that its released code calibrates with autodp."""
    promise = gv.NodeLevel(16.0, delta=delta, adjacency="node", relation="replace")
    stage = {"steps": 100 * records // batch, "rate": batch / records}
    assert claimed_noise(promise, stages=2, gaussians=1, **stage) == pytest.approx(noise, rel=3e-3)


def test_poisson_batches_have_their_exact_moments():
    """``sum_j C(a, j) g^j (1 - g)^(a - j) e^{j (j - 1) / (2 z^2)}`` at whole orders a (Mironov, Talwar and Zhang 2019)."""
    noise, rate, steps, gaussians, delta = 1.2, 0.03, 1000, 2, 1e-5
    moments = [logsumexp(log_binomial(a, rate) + np.arange(a + 1) * np.arange(-1, a) / (2 * noise**2)) for a in ORDERS]
    total = steps * np.array(moments) / (ORDERS - 1) + gaussians * ORDERS / (2 * noise**2)
    found = np.min(total + np.log1p(-1 / ORDERS) - np.log(ORDERS * delta) / (ORDERS - 1))
    assert poisson_epsilon(noise, steps, rate, gaussians, delta) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_the_claim_is_not_below_what_poisson_batches_and_gaussians_cost(relation):
    """One row, noise z per unit: the exact privacy loss distribution stays below the Renyi figure."""
    promise = gv.NodeLevel(8.0, delta=1e-4, relation=relation)
    z = claimed_noise(promise, steps=500, rate=0.05, gaussians=2)
    sides = 2 if relation == "replace" else 1
    losses = [SampledGaussian(sides * z, 0.05, 500, relation == "replace"), Gdp(1 / z), Gdp(1 / z)]
    assert 4.0 < epsilon_of(losses, 1e-4) < 8.0


@pytest.mark.parametrize("epsilon", [poisson_epsilon, fixed_batch_epsilon])
def test_sampling_never_costs_more_than_reading_everybody(epsilon):
    whole = epsilon(1.5, 10, 1.0, 0, 1e-5)
    plain = np.min(10 * ORDERS / (2 * 1.5**2) + np.log1p(-1 / ORDERS) - np.log(ORDERS * 1e-5) / (ORDERS - 1))
    assert epsilon(1.5, 10, 0.3, 0, 1e-5) <= whole == pytest.approx(plain)
