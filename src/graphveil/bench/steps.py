"""One training step of the same network, done five ways.

All steps train ``width - 64 - 10`` with SELU on one fixed batch in float64 with Adam. Ours draws its noise from the
product's cryptographic, grid-rounded source; Opacus draws ordinary pseudo-random numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from graphveil.graph.rows import SparseRows
from graphveil.learn import MLP, Adam, Inputs, clipped_gradient_sum, descend
from graphveil.privacy.noise import Noise

Step = Callable[[], None]

HIDDEN, CLASSES = 64, 10
RATE, CLIP, SIGMA = 1e-3, 1.0, 1.0
PRIVATE = {"noise_multiplier": SIGMA / CLIP, "max_grad_norm": CLIP}
PHYSICAL_BATCH = 256


def private_step(batch: Callable[[], Inputs], labels: Tensor, width: int) -> Step:
    """Forward, clipped sum, noise for every parameter, optimiser update, as the methods do it."""
    network = MLP((width, HIDDEN, CLASSES)).initialise(np.random.default_rng(0))
    optimizer, noise = Adam(RATE), Noise()
    total = torch.empty_like(network.parameters)

    def gradient(_: int) -> Tensor:
        clipped_gradient_sum(network, batch(), labels, CLIP, out=total)
        released = noise.add(total.numpy(), noise.gaussian(SIGMA, total.numel()), SIGMA)
        return torch.from_numpy(released)

    return lambda: descend(network, gradient, optimizer, steps=1, divisor=len(labels))


def dense_step(rows: Tensor, labels: Tensor) -> Step:
    """The private step on dense rows."""
    return private_step(lambda: rows, labels, rows.shape[1])


def sparse_step(rows: Tensor, labels: Tensor) -> Step:
    """The private step on sparse rows, as fresh as a newly drawn batch: nothing is kept from the step before."""
    matrix = csr_matrix(rows.numpy())
    return private_step(lambda: SparseRows(matrix), labels, rows.shape[1])


def plain_step(rows: Tensor, labels: Tensor) -> Step:
    """Ordinary autograd and ``torch.optim``."""
    model = _model(rows.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()

    return step


def hooks_step(rows: Tensor, labels: Tensor) -> Step:
    """Opacus with per-sample gradients; large batches in physical batches, as its BatchMemoryManager does."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = GradSampleModule(_model(rows.shape[1]))
    optimizer = DPOptimizer(torch.optim.Adam(model.parameters(), lr=RATE), expected_batch_size=len(rows), **PRIVATE)
    parts = list(zip(rows.split(PHYSICAL_BATCH), labels.split(PHYSICAL_BATCH), strict=True))

    def step() -> None:
        for number, (part, targets) in enumerate(parts, start=1):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(part), targets).backward()
            optimizer.signal_skip_step(do_skip=number < len(parts))
            optimizer.step()

    return _quietly(step)


def ghost_step(rows: Tensor, labels: Tensor) -> Step:
    """Opacus with ghost clipping: norms in a first backward pass, the weighted gradient in a second."""
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    model = GradSampleModuleFastGradientClipping(_model(rows.shape[1]), max_grad_norm=CLIP, use_ghost_clipping=True)
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    optimizer = DPOptimizerFastGradientClipping(adam, expected_batch_size=len(rows), **PRIVATE)
    criterion = DPLossFastGradientClipping(model, optimizer, nn.CrossEntropyLoss())

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(rows), labels).backward()
        optimizer.step()

    return _quietly(step)


def _model(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.SELU(), nn.Linear(HIDDEN, CLASSES)).double()


def _quietly(step: Step) -> Step:
    def silent() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step()

    return silent
