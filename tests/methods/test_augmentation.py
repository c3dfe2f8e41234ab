"""Augmented neighbourhoods: the mean they enter, the bound the auto-encoder is trained on, and what it generates."""

import numpy as np
import pytest
import torch

from graphveil.methods.lga_pgnn.augmentation import (
    NeighbourAutoEncoder,
    low_degree,
    private_layer,
    sums_of_neighbours,
    train_auto_encoder,
)

STAR = np.array([[0, 1, 0, 2, 0, 3, 1, 2], [1, 0, 2, 0, 3, 0, 2, 1]])  # degrees 3, 2, 2, 1; vertex 4 is alone
ROWS = np.array([[4.0, 0.0], [0.0, 4.0], [8.0, 0.0], [0.0, 2.0], [5.0, 5.0]], dtype=np.float32)


def test_the_private_layer_is_the_mean_of_a_vertex_and_its_neighbours():
    expected = [
        ROWS[[0, 1, 2, 3]].mean(0),
        ROWS[[0, 1, 2]].mean(0),
        ROWS[[0, 1, 2]].mean(0),
        ROWS[[0, 3]].mean(0),
        ROWS[4],
    ]
    assert np.allclose(private_layer(STAR, ROWS), expected)


def test_shrinking_divides_only_vertices_below_the_median_degree_by_s_more():
    assert low_degree(STAR, 5).tolist() == [False, False, False, True, True]
    plain, shrunk = private_layer(STAR, ROWS), private_layer(STAR, ROWS, 10)
    assert np.allclose(shrunk[:3], plain[:3])
    assert np.allclose(shrunk[3], ROWS[[0, 3]].sum(0) / 12) and np.allclose(shrunk[4], ROWS[4] / 11)


def test_generated_neighbours_enter_the_mean_with_their_number():
    sums = np.array([[10.0, 20.0], [0.0, 30.0]], dtype=np.float32)
    found = private_layer(STAR, ROWS, 10, sums)
    assert np.allclose(found[3], (ROWS[[0, 3]].sum(0) + sums[0]) / 12)
    assert np.allclose(found[4], (ROWS[4] + sums[1]) / 11)


def test_the_loss_is_the_divergence_plus_half_the_squared_error():
    """By hand for an encoder that answers mean 0.3, log-variance ln 4 and a decoder that returns 1 everywhere."""
    model = NeighbourAutoEncoder(2, hidden=4, latent=1)
    for network, bias in ((model.encoder, [0.3, np.log(4.0)]), (model.decoder, [1.0, 1.0])):
        for weights in network.parameters():
            torch.nn.init.zeros_(weights)
        with torch.no_grad():
            network[-1].bias.copy_(torch.tensor(bias))
    pair = torch.tensor([[2.0, 0.0]])
    divergence = 0.5 * (0.3**2 + 4 - 1 - np.log(4.0))
    assert model.loss(pair, pair, torch.randn(1, 1)).item() == pytest.approx(divergence + 0.5 * (1 + 1), rel=1e-6)


def test_training_lowers_the_bound_and_generated_neighbours_resemble_the_neighbourhood():
    """Two groups far apart: what is generated for a member of one group lies in it."""
    coins = np.random.default_rng(0)
    group = np.repeat([0, 1], 60)
    rows = (np.where(group[:, None] == 0, 2.0, -2.0) + 0.3 * coins.standard_normal((120, 3))).astype(np.float32)
    ends = np.array([(u, v) for u, v in coins.integers(0, 120, (4000, 2)) if group[u] == group[v]]).T
    model = train_auto_encoder(rows, ends, seed=1)
    sums = sums_of_neighbours(model, rows, samples=10, seed=2) / 10
    assert np.all(np.sign(sums.mean(axis=1)) == np.where(group == 0, 1, -1))
    assert np.abs(np.abs(sums.mean(axis=1)) - 2.0).mean() < 0.3
    short = [sums_of_neighbours(train_auto_encoder(rows, ends, 1, steps=20), rows, 10, seed=2) for _ in range(2)]
    assert np.array_equal(*short)  # public coins only: the same reports give the same numbers


def test_a_graph_without_edges_generates_without_training():
    model = train_auto_encoder(ROWS, np.zeros((2, 0), dtype=np.int64), seed=0)
    assert np.isfinite(sums_of_neighbours(model, ROWS, 3, 0)).all()


def test_reports_in_the_hundreds_train_as_those_of_unit_size():
    """Small epsilons draw such numbers; in their own unit the first step overflows."""
    coins = np.random.default_rng(3)
    rows = coins.standard_normal((80, 200)).astype(np.float32)
    rows /= np.sqrt(np.square(rows).mean())
    ends = coins.integers(0, 80, (2, 600))
    small, large = (train_auto_encoder(factor * rows, ends, 1, steps=30) for factor in (1, 400))
    found = sums_of_neighbours(large, 400 * rows, 3, 0) / 400
    assert np.allclose(found, sums_of_neighbours(small, rows, 3, 0), atol=1e-2)
