"""Denoising: each step against an independent computation."""

from itertools import product

import numpy as np
import pytest
import torch

from graphveil.exchange.randomizers import LabelHistogram, LabelResponse
from graphveil.methods.common.denoise import (
    belief_propagation,
    fit_histograms,
    forward_loss,
    hop_shares,
    kprop,
    likelihood_rows,
    normalised,
)
from graphveil.privacy.noise import Noise

TREE = [(0, 1), (1, 2), (1, 3), (3, 4)]


def arcs(edges):
    pairs = np.array([*edges, *((b, a) for a, b in edges)]).T
    return pairs[:, np.lexsort(pairs)]


@pytest.mark.parametrize("self_loops", [False, True])
def test_kprop_is_a_power_of_the_normalised_matrix(self_loops):
    adjacency = np.zeros((6, 6))
    adjacency[tuple(arcs(TREE))] = 1
    adjacency += np.eye(6) * self_loops
    degrees = adjacency.sum(axis=1)
    scale = np.diag([d**-0.5 if d else 0.0 for d in degrees])
    rows = np.random.default_rng(0).random((6, 3))
    expected = np.linalg.matrix_power(scale @ adjacency @ scale, 5) @ rows
    assert np.allclose(kprop(normalised(arcs(TREE), 6, self_loops), rows, 5), expected)


def test_likelihoods_follow_the_channel_and_are_flat_without_a_report():
    channel = LabelResponse(1.0, 3).channel
    rows = likelihood_rows(np.array([2, -1, 0]), channel)
    assert np.allclose(rows[0], channel[:, 2] / channel[:, 2].sum()) and np.allclose(rows[1], 1 / 3)


def test_belief_propagation_is_exact_on_a_tree():
    """Against the sum over all 3^5 labellings."""
    likelihoods = np.random.default_rng(1).dirichlet(np.ones(3), 5)
    same = np.where(np.eye(3) > 0, 0.7, 0.15)
    exact = np.zeros((5, 3))
    for labelling in product(range(3), repeat=5):
        weight = np.prod([likelihoods[v, c] for v, c in enumerate(labelling)])
        weight *= np.prod([same[labelling[a], labelling[b]] for a, b in TREE])
        exact[np.arange(5), labelling] += weight
    found = belief_propagation(arcs(TREE), likelihoods, agreement=0.7, sweeps=6, weight=1.0, damping=0.0)
    assert np.allclose(np.exp(found), exact / exact.sum(axis=1, keepdims=True), atol=1e-10)


def test_hop_shares_are_the_weighted_mean_of_the_reports_in_reach():
    matrix = normalised(arcs(TREE), 5, True)
    channel = LabelResponse(2.0, 3).channel
    reports = np.array([0, -1, 2, -1, 1])
    shares = hop_shares(matrix, likelihood_rows(reports, channel), (1, 2))
    dense = matrix.toarray()
    for hop, number in ((1, 0), (2, 1)):
        reach = np.linalg.matrix_power(dense, hop)[:, [0, 2, 4]]
        expected = reach @ np.eye(3)[[0, 2, 1]] / reach.sum(axis=1, keepdims=True) - 1 / 3
        assert np.allclose(shares[:, number], expected)


def test_em_finds_planted_bins_under_laplace_noise():
    """400 lists of 40 contacts, two classes; the fitted bins lie within 0.05 of the planted ones (15 standard errors)."""
    rng, planted = np.random.default_rng(2), np.array([[0.6, 0.2, 0.2], [0.1, 0.7, 0.2]])
    truth = rng.integers(0, 2, 400)
    counts = np.array([rng.multinomial(40, planted[c]) for c in truth], dtype=float)
    randomizer = LabelHistogram(1.0, 3)
    noisy = counts + Noise(3).laplace(randomizer.scale, counts.shape)
    start = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]])
    fit = fit_histograms(noisy, np.full(400, 40), randomizer.variance(), np.full((400, 2), 0.5), start)
    assert np.abs(fit.bins - planted).max() < 0.05
    assert np.mean(fit.log_likelihood.argmax(axis=1) == truth) > 0.95


def test_forward_correction_is_least_at_the_clean_posterior():
    """The expected loss over noisy reports, as a function of the model's clean posterior, has its minimum at the truth."""
    channel = torch.tensor(LabelResponse(1.0, 3).channel)
    truth = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    noisy = truth @ channel
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logits], 0.1)
    for _ in range(300):
        optimizer.zero_grad()
        each = torch.stack([forward_loss(logits[None], channel, torch.tensor([r])) for r in range(3)])
        (noisy @ each).backward()
        optimizer.step()
    assert torch.allclose(logits.softmax(0), truth, atol=1e-3)
