"""Batch normalisation beside torch's own, what is kept of it, and that nothing private may use it."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.nn import functional

import graphveil as gv
from graphveil.errors import PrivacyError
from graphveil.graph import SparseRows
from graphveil.learn import Adam, clipped_gradient_sum, train_plainly
from graphveil.learn.batch_norm import Normalised, batch_gradient
from graphveil.learn.exact_gradients import ExactCalls
from graphveil.learn.linkx import Linkx
from graphveil.methods.dpdgc.published import PublishedDpdgc


def linkx() -> Linkx:
    return Linkx(5, 4, 4, 3, embeds=False, batch_norm=True).initialise(np.random.default_rng(0))


def batch(coins: np.random.Generator, rows: int = 6) -> tuple[np.ndarray, torch.Tensor, torch.Tensor]:
    own = coins.normal(size=(rows, 5)) * (coins.random((rows, 5)) < 0.6)
    return own, torch.from_numpy(coins.normal(size=(rows, 4))), torch.from_numpy(coins.integers(0, 3, rows))


def torch_scores(network: Linkx, vector: torch.Tensor, x: torch.Tensor, a: torch.Tensor, norms: list) -> torch.Tensor:
    """The authors' network, layer by layer, with torch's batch normalisation."""
    linear = lambda layer, rows: functional.linear(rows, *layer.views(vector))
    active = lambda place, rows: torch.selu(norms[place](rows))
    own = linear(network.own[1], active(0, linear(network.own[0], x)))
    mixed = linear(network.mixed[0], active(1, torch.cat([own, a], 1)))
    mixed = linear(network.mixed[1], active(2, mixed))
    return linear(network.head, active(3, mixed + own + a))


@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_statistics_and_scores_are_torchs(sparse):
    coins, network = np.random.default_rng(1), linkx()
    norms = [torch.nn.BatchNorm1d(width, dtype=torch.float64) for width in (4, 8, 4, 4)]
    for _ in range(3):
        x, a, labels = batch(coins)
        vector = network.parameters.clone().requires_grad_()
        for norm in norms:
            norm.zero_grad()
        scores = torch_scores(network, vector, torch.from_numpy(x), a, norms)
        functional.cross_entropy(scores, labels, reduction="sum").backward()
        own = SparseRows(sp.csr_matrix(x)) if sparse else torch.from_numpy(x)
        found = batch_gradient(network, (own, a), labels, 0.0, coins)
        for layer in set(network.layers) - set(network.norms):
            here = slice(layer.start, layer.start + layer.size)
            torch.testing.assert_close(found[here], vector.grad[here])
        for norm, mine in zip(norms, network.norms, strict=True):
            weight, bias = mine.views(found)
            torch.testing.assert_close(weight[:, 0], norm.weight.grad)
            torch.testing.assert_close(bias, norm.bias.grad)
            assert not weight[:, 1:].any()  # no optimiser moves the statistics
            torch.testing.assert_close(mine.weight[:, 1:], torch.stack([norm.running_mean, norm.running_var], dim=1))
    for norm in norms:
        norm.eval()
    expected = torch_scores(network, network.parameters, torch.from_numpy(x), a, norms)
    torch.testing.assert_close(network((own, a)), expected.detach())


def test_one_example_alone_goes_by_the_running_statistics():
    coins, network = np.random.default_rng(2), linkx()
    x, a, labels = batch(coins)
    batch_gradient(network, (torch.from_numpy(x), a), labels, 0.0, coins)
    before = network.parameters.clone()
    assert torch.isfinite(batch_gradient(network, (torch.from_numpy(x[:1]), a[:1]), labels[:1], 0.0, coins)).all()
    assert torch.equal(network.parameters, before)


def test_what_clips_single_examples_refuses_it():
    x, a, labels = batch(np.random.default_rng(3))
    with pytest.raises(PrivacyError, match="mixes examples"):
        clipped_gradient_sum(linkx(), (torch.from_numpy(x), a), labels, 1.0)
    with pytest.raises(PrivacyError, match="mixes examples"):
        ExactCalls(30, None)(linkx().norms[0], None)
    assert all(layer.mixes is isinstance(layer, Normalised) for layer in linkx().layers)


def test_dropout_is_drawn_from_the_coins():
    x, a, labels = batch(np.random.default_rng(4), 64)
    gradients = [
        batch_gradient(linkx(), (torch.from_numpy(x), a), labels, rate, np.random.default_rng(5))
        for rate in (0.5, 0.5, 0.0)
    ]
    assert torch.equal(gradients[0], gradients[1]) and not torch.equal(gradients[0], gradients[2])


def test_it_trains():
    coins, network = np.random.default_rng(6), linkx()
    x, a, _ = batch(coins, 90)
    labels = torch.from_numpy((a[:, 0] > 0).numpy().astype(int) + (a[:, 1] > 0).numpy())
    options = {"epochs": 60, "batch_size": 30, "optimizer": Adam(0.02), "gradient_sum": batch_gradient}
    train_plainly(network, (torch.from_numpy(x), a), labels, coins=coins, **options)
    assert (network((torch.from_numpy(x), a)).argmax(1) == labels).double().mean() > 0.9


@pytest.mark.parametrize("promise", [gv.NonPrivate(), gv.EdgeLevel(1.0)])
def test_published_dpdgc_has_it_where_records_are_public_and_keeps_it(promise, tmp_path):
    data = gv.load_dataset("csbm:phi=0.5,nodes=300,features=10", seed=0)
    small = {"epochs": 2, "open_epochs": 3, "width": 8, "hidden": 8}
    model = PublishedDpdgc(**small).fit(data, promise, seed=0)
    assert any("layer" in name and value.shape == (8, 3) for name, value in model.predictor.arrays().items())
    model.save(tmp_path / "run")
    assert torch.equal(gv.load_model(tmp_path / "run").predict_proba(data), model.predict_proba(data))
    plain = PublishedDpdgc(batch_norm=False, **small).fit(data, promise, seed=0)
    assert not torch.equal(plain.predict_proba(data), model.predict_proba(data))


def test_published_dpdgc_has_none_where_records_are_private():
    data = gv.load_dataset("csbm:phi=0.5,nodes=300,features=10", seed=0)
    small = {"epochs": 1, "width": 8, "hidden": 8}
    fitted = [
        PublishedDpdgc(batch_norm=on, **small).fit(data, gv.KNeighborLevel(1, 8.0), seed=0) for on in (True, False)
    ]
    assert torch.equal(*(model.predict_proba(data) for model in fitted))
