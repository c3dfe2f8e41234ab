"""LGA-PGNN's private layer: the printed mean with generated neighbours, Lemmas 4 and 5, and that an epoch draws new ones."""

import numpy as np
import pytest
import torch

from graphveil.exchange.randomizers.piecewise import PiecewiseLaw
from graphveil.methods.lga_pgnn.augmentation import NeighbourAutoEncoder, private_layer
from graphveil.methods.lga_pgnn.private_layer import Neighbours, PrivateLayer
from graphveil.privacy.noise import Noise

STAR = np.array([[0, 1, 0, 2, 0, 3, 1, 2], [1, 0, 2, 0, 3, 0, 2, 1]])  # degrees 3, 2, 2, 1; vertex 4 is alone
ROWS = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
SAMPLES = 4


def means(more=0, sums=None):
    return torch.as_tensor(private_layer(STAR, ROWS, more, sums)).float()


def layer(model, encode):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return PrivateLayer(3, 2, Neighbours(model, ROWS, STAR, SAMPLES, 7, encode=encode))


@pytest.fixture
def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        return NeighbourAutoEncoder(3, hidden=8, latent=2)


def expected_by_hand(found, model, encode):
    """Every generated row built, summed with the neighbours and multiplied by W: what the layer must equal without building."""
    coins, further = torch.Generator().manual_seed(7), found.neighbours
    rows, low = torch.as_tensor(ROWS), further.low
    neighbours = {3: [0], 4: [4]}
    sums = torch.zeros(len(low), 3)
    for _ in range(SAMPLES):
        z = torch.randn(len(low), 2, generator=coins)
        if encode:
            torch.rand(len(low), generator=coins)  # which neighbour: each of these has one choice only
            other = torch.stack([rows[neighbours[int(v)][0]] for v in low])
            pair = (rows[low] + other) / 2
            mean, log_variance = model.encoder(torch.hstack([pair, rows[low]])).chunk(2, dim=1)
            z = mean + (0.5 * log_variance).exp() * z
        sums += model.generate(rows[low], z)
    return torch.relu(found.linear(means(SAMPLES, sums.detach().numpy())))


@pytest.mark.parametrize("encode", [True, False])
def test_the_layer_equals_relu_of_w_times_the_mean_with_every_generated_row_built(model, encode):
    found = layer(model, encode).eval()
    assert found.neighbours.low.tolist() == [3, 4]
    assert torch.allclose(found(means()), expected_by_hand(found, model, encode), atol=1e-5)


def test_without_a_model_the_further_neighbours_are_zero_vectors():
    found = layer(None, False)
    assert torch.allclose(found(means()), torch.relu(found.linear(means(SAMPLES))), atol=1e-6)


def test_every_epoch_draws_new_neighbours_and_every_look_the_same(model):
    found = layer(model, True)
    one, two = found.train().neighbours.hidden_sums(True), found.neighbours.hidden_sums(True)
    assert not torch.equal(one, two)
    assert torch.equal(found.eval()(means()), found.eval()(means()))


def test_weights_of_the_generator_stay_as_they_are(model):
    found = layer(model, True)
    found(means()).sum().backward()
    assert found.linear.weight.grad is not None and all(weight.grad is None for weight in model.parameters())


def test_lemma_4_the_private_layer_is_unbiased():
    """The mean of W mean(x') over many draws is W mean(x); six standard errors, false alarms below 1e-7."""
    x, weight, draws = np.clip(ROWS, -1, 1), np.array([[1.0, -2.0, 0.5], [0.3, 0.7, -1.0]]), 4000
    law, noise = PiecewiseLaw(2.0), Noise(3)
    found = np.stack([private_layer(STAR, law.draw(x, noise)) @ weight.T for _ in range(draws)])
    error = np.abs(found.mean(axis=0) - private_layer(STAR, x) @ weight.T)
    assert np.all(error <= 6 * found.std(axis=0) / np.sqrt(draws))


@pytest.mark.parametrize("neighbours", [4, 64])
def test_lemma_5_the_error_of_the_mean_falls_with_the_root_of_the_neighbourhood(neighbours):
    """By Bernstein's inequality (C.16) with n = |N|: P(max_j error >= lambda) <= delta; drawn 400 times, delta 0.05."""
    width, epsilon, delta, draws = 20, 2.0, 0.05, 400
    law, noise = PiecewiseLaw(epsilon), Noise(5)
    x = np.random.default_rng(1).uniform(-1, 1, (neighbours, width))
    variance = float(law.second_moment(np.array([1.0]))[0])
    reach = (np.exp(epsilon / 2) + 1) / (np.exp(epsilon / 2) - 1) + 1
    log_term = np.log(2 * width / delta)
    bound = np.sqrt(2 * variance * log_term / neighbours) + 2 * reach * log_term / (3 * neighbours)
    errors = [np.abs(law.draw(x, noise).mean(axis=0) - x.mean(axis=0)).max() for _ in range(draws)]
    assert np.mean(np.array(errors) >= bound) <= delta
    assert np.median(errors) == pytest.approx(
        np.sqrt(variance / neighbours) * 1.7, rel=0.5
    )  # and the bound's rate is real


@pytest.mark.parametrize("rows", [[3], [0, 3, 4], [1, 2]])
def test_some_vertices_have_the_numbers_they_have_among_all(model, rows):
    found, some = layer(model, True).eval(), torch.tensor(rows)
    assert torch.allclose(found(means()[some], some), found(means())[some], atol=1e-6)
    with_grad = found.train()(means()[some], some)
    assert with_grad.shape == (len(rows), 2) and with_grad.requires_grad
