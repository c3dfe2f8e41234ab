"""The clipped sum equals its definition, example by example, for every network and every kind of input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphveil.errors import InputError, PrivacyError
from graphveil.graph.rows import SparseRows
from graphveil.learn import MLP, Branches, Linear, Network, clipped_gradient_sum
from tests.learn import per_example

CLIPS = (None, 1e-3, 0.5, 100.0)


def assert_matches_the_loop(network, inputs, targets, clip, weights=None):
    blocks = inputs if isinstance(inputs, list | tuple) else [inputs]
    loop = per_example.gradients(network, [per_example.explicit(block) for block in blocks], targets, weights)
    expected = per_example.clipped_sum(loop, clip)
    actual = clipped_gradient_sum(network, inputs, targets, clip, weights)
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10 * (1 + float(loop.abs().sum())))


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 6),
    width=st.integers(2, 7),
    classes=st.integers(1, 5),
    kind=st.sampled_from(per_example.KINDS),
    clip=st.sampled_from(CLIPS),
    soft=st.booleans(),
    weighted=st.booleans(),
)
def test_the_clipped_sum_of_a_chain_is_the_sum_over_a_per_example_loop(
    seed, count, width, classes, kind, clip, soft, weighted
):
    rng = np.random.default_rng(seed)
    network = per_example.random_network(rng, width, classes, branched=False)
    inputs = per_example.rows_of_kind(kind, count, width, rng)
    targets = rng.random((count, classes)) if soft else rng.integers(-1, classes, count)
    weights = torch.from_numpy(rng.normal(size=count)) if weighted else None
    assert_matches_the_loop(network, inputs, torch.from_numpy(targets), clip, weights)


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 5), clip=st.sampled_from(CLIPS), soft=st.booleans())
def test_the_clipped_sum_of_a_branched_network_is_the_sum_over_a_per_example_loop(seed, count, clip, soft):
    rng = np.random.default_rng(seed)
    network = per_example.random_network(rng, 4, 3, branched=True)
    kinds = rng.choice(per_example.KINDS, len(network.branches))
    inputs = [per_example.rows_of_kind(kind, count, 4, rng) for kind in kinds]
    targets = rng.random((count, 3)) if soft else rng.integers(-1, 3, count)
    assert_matches_the_loop(network, inputs, torch.from_numpy(targets), clip)


class TwoHeads(Network):
    """The mean of two linear models of the same input, and a layer that is never used."""

    def __init__(self):
        self.first, self.second, self.idle = Linear(4, 3), Linear(4, 3, bias=False), Linear(2, 2)
        super().__init__([self.first, self.idle, self.second])

    def forward(self, inputs, apply):
        return (apply(self.first, inputs) + apply(self.second, inputs)) / 2


def test_layers_that_share_an_input_or_an_output_gradient_are_clipped_together_and_unused_ones_get_zero():
    rng = np.random.default_rng(3)
    network = TwoHeads().initialise(rng)
    inputs, targets = torch.from_numpy(rng.normal(size=(5, 4))), torch.tensor([0, 1, 2, -1, 1])
    expected = torch.zeros_like(network.parameters)
    for i in range(5):
        theta = network.parameters.clone().requires_grad_()
        for layer in network.layers:
            layer.bind(theta, layer.start)
        loss = torch.nn.functional.cross_entropy(network(inputs[i : i + 1]), targets[i : i + 1], ignore_index=-1)
        if targets[i] >= 0:
            gradient = torch.autograd.grad(loss, theta)[0]
            expected += gradient * min(1.0, 0.2 / float(gradient.norm()))
    for layer in network.layers:
        layer.bind(network.parameters, layer.start)
    torch.testing.assert_close(clipped_gradient_sum(network, inputs, targets, 0.2), expected, rtol=1e-9, atol=1e-12)
    weight, _ = network.idle.views(expected)
    assert not weight.any()


def test_softmax_regression_is_the_closed_form():
    rng = np.random.default_rng(0)
    network = MLP((6, 3), bias=False).initialise(rng)
    x, y = torch.from_numpy(rng.normal(size=(8, 6))), torch.from_numpy(rng.integers(0, 3, 8))
    error = torch.softmax(x @ network.layers[0].weight.T, dim=1) - torch.nn.functional.one_hot(y, 3)
    factors = (0.5 / (error.norm(dim=1) * x.norm(dim=1))).clamp(max=1)
    expected = ((error * factors[:, None]).T @ x).flatten()
    torch.testing.assert_close(clipped_gradient_sum(network, x, y, 0.5), expected, rtol=1e-9, atol=1e-12)


def test_every_label_outside_the_classes_is_absent():
    network = MLP((2, 3)).initialise(np.random.default_rng(0))
    x = torch.ones(5, 2, dtype=torch.float64)
    labels = torch.tensor([-1, -7, 3, 2**40, 1])
    alone = clipped_gradient_sum(network, x[4:], labels[4:], 1.0)
    assert torch.equal(clipped_gradient_sum(network, x, labels, 1.0), alone)


def test_an_example_of_weight_zero_contributes_exactly_nothing():
    rng = np.random.default_rng(1)
    network = MLP((4, 5, 3)).initialise(rng)
    x, y = torch.from_numpy(rng.normal(size=(6, 4))), torch.from_numpy(rng.integers(0, 3, 6))
    weights = np.array([1, 0, 1, 1, 0, 1])
    changed = x.clone()
    changed[[1, 4]] = 1e6
    first = clipped_gradient_sum(network, x, y, 1.0, weights)
    assert torch.equal(first, clipped_gradient_sum(network, changed, y, 1.0, weights))
    kept = weights.nonzero()[0]
    torch.testing.assert_close(first, clipped_gradient_sum(network, x[kept], y[kept], 1.0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", per_example.KINDS)
@pytest.mark.parametrize("widths", [(5, 3), (5, 4, 3)])
def test_an_empty_batch_gives_zeros(kind, widths):
    rng = np.random.default_rng(0)
    network = MLP(widths).initialise(rng)
    total = clipped_gradient_sum(network, per_example.rows_of_kind(kind, 0, 5, rng), torch.zeros(0, dtype=int), 1.0)
    assert total.shape == network.parameters.shape
    assert not total.any()


def test_an_empty_batch_of_a_branched_network_gives_zeros():
    network = Branches([(3, 2), (4, 2)], (2,)).initialise(np.random.default_rng(0))
    nothing = [torch.zeros(0, 3, dtype=torch.float64), SparseRows(sp.csr_matrix((0, 4)))]
    assert not clipped_gradient_sum(network, nothing, torch.zeros(0, 2), 1.0).any()


def test_the_result_can_be_written_over_an_old_one():
    rng = np.random.default_rng(0)
    network = TwoHeads().initialise(rng)
    x, y = torch.from_numpy(rng.normal(size=(6, 4))), torch.from_numpy(rng.integers(0, 3, 6))
    buffer = torch.full_like(network.parameters, torch.nan)
    assert clipped_gradient_sum(network, x, y, 1.0, out=buffer) is buffer
    assert torch.equal(buffer, clipped_gradient_sum(network, x, y, 1.0))


def test_gradients_are_taken_inside_no_grad_and_leave_no_graph_behind():
    network = MLP((4, 5, 3)).initialise(np.random.default_rng(0))
    x, y = torch.ones(2, 4, dtype=torch.float64), torch.tensor([0, 1])
    with torch.no_grad():
        total = clipped_gradient_sum(network, x, y, 1.0)
    assert total.any()
    assert not total.requires_grad and not network.parameters.requires_grad and not x.requires_grad


class Recurrent(Network):
    def __init__(self):
        super().__init__([Linear(3, 3)])

    def forward(self, inputs, apply):
        return apply(self.layers[0], torch.tanh(apply(self.layers[0], inputs)))


def test_a_layer_used_twice_is_refused_because_its_norm_would_be_wrong():
    with pytest.raises(PrivacyError, match="used twice"):
        clipped_gradient_sum(Recurrent(), torch.ones(2, 3, dtype=torch.float64), torch.tensor([0, 1]), 1.0)


@pytest.mark.parametrize("clip", [0.0, -1.0, float("nan"), float("inf")])
def test_a_clipping_norm_that_does_not_clip_is_refused(clip):
    with pytest.raises(PrivacyError, match="clipping norm"):
        clipped_gradient_sum(MLP((2, 2)), torch.ones(1, 2, dtype=torch.float64), torch.tensor([0]), clip)


def test_targets_and_weights_of_the_wrong_shape_are_refused():
    network, x = MLP((2, 3)), torch.ones(4, 2, dtype=torch.float64)
    with pytest.raises(InputError, match="targets have shape"):
        clipped_gradient_sum(network, x, torch.zeros(3, dtype=int), 1.0)
    with pytest.raises(InputError, match="targets have shape"):
        clipped_gradient_sum(network, x, torch.zeros(4, 2), 1.0)
    with pytest.raises(InputError, match="weights have shape"):
        clipped_gradient_sum(network, x, torch.zeros(4, dtype=int), 1.0, torch.ones(4, 1))
