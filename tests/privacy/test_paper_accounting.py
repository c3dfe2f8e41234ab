"""The papers' own accounting: equal to what their library computes, never below what is true."""

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant

import graphveil as gv
from graphveil.privacy.accounting.loss import Gdp, SampledGaussian, epsilon_of
from graphveil.privacy.accounting.paper import ORDERS, claimed_noise, fixed_batch_divergence, poisson_divergence


@pytest.mark.parametrize(
    ("records", "batch", "delta", "noise"),
    [(5651, 64, 1e-4, 1.281), (14788, 256, 1e-5, 1.568), (16853, 256, 1e-5, 1.491)],
)
def test_fixed_size_batches_give_the_noise_of_the_authors_code(records, batch, delta, noise):
    """DPDGC, epsilon 16, 100 + 100 epochs: noise multipliers that its released code calibrates with autodp."""
    promise = gv.NodeLevel(16.0, delta=delta, adjacency="node", relation="replace")
    stage = {"steps": 100 * records // batch, "rate": batch / records}
    assert claimed_noise(promise, stages=2, gaussians=1, **stage) == pytest.approx(noise, rel=3e-3)


def test_poisson_batches_agree_with_the_renyi_accountant_of_dp_accounting():
    accountant = RdpAccountant(orders=[float(order) for order in ORDERS])
    accountant.compose(PoissonSampledDpEvent(0.03, GaussianDpEvent(1.2)), 1000)
    delta, total = 1e-5, 1000 * poisson_divergence(1.2, 0.03)
    found = np.min(total + np.log1p(-1 / ORDERS) - np.log(ORDERS * delta) / (ORDERS - 1))
    assert found == pytest.approx(accountant.get_epsilon(delta), rel=1e-6)


@pytest.mark.parametrize("relation", ["zero-out", "replace"])
def test_the_claim_is_not_below_what_poisson_batches_and_gaussians_cost(relation):
    """One row, noise z per unit: the exact privacy loss distribution stays below the Renyi figure."""
    promise = gv.NodeLevel(8.0, delta=1e-4, relation=relation)
    z = claimed_noise(promise, steps=500, rate=0.05, gaussians=2)
    sides = 2 if relation == "replace" else 1
    losses = [SampledGaussian(sides * z, 0.05, 500, relation == "replace"), Gdp(1 / z), Gdp(1 / z)]
    assert 4.0 < epsilon_of(losses, 1e-4) < 8.0


def test_sampling_never_costs_more_than_reading_everybody():
    for divergence in (fixed_batch_divergence, poisson_divergence):
        plain = divergence(1.5, 1.0)
        assert np.all(divergence(1.5, 0.3) <= plain) and np.array_equal(plain, ORDERS / (2 * 1.5**2))
