"""Private gradient sums, also where one person touches several rows: how they are planned, calibrated and spent.

The noise of such a release follows from Lemma G (``privacy/accounting/group_loss.py``). Its size is parametrised by the Gaussian
parameter it is worth: ``sigma = q (a + b) clip sqrt(T) / mu`` is where the sampled group tends to for many steps, and one common
mu is then searched so that the exact composition of all parts meets the promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from graphveil.privacy.accounting.loss import gaussian_mu
from graphveil.privacy.curator import Curator
from graphveil.privacy.mechanisms import DpGradient, Exact
from graphveil.privacy.noise import summation_error
from graphveil.privacy.plan import Plan, Release, calibrate_scale
from graphveil.privacy.promise import Promise
from graphveil.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.graph import Graph
    from graphveil.learn import Inputs, Network, Optimizer


def group_release(
    name: str,
    promise: Promise,
    bounds: Mapping[str, float],
    size: int,
    *,
    group: tuple[int, int],
    records: int,
    steps: int,
    rate: float,
    clip: float,
    mu: float,
    lemma: str,
    growth: float = 1.0,
) -> Release:
    """``steps`` Poisson gradient sums over ``records`` rows, of which a person touches ``group``, worth about mu.

    ``growth``: the factor by which intermediate terms are longer than final ones (``noise.summation_error``).
    """
    if not promise.private:
        return Release(name, Exact(steps), bounds, lemma)
    sigma = rate * sum(group) * clip * math.sqrt(steps) / mu
    slack = 2 * summation_error(records, clip, growth)
    return Release(name, DpGradient(sigma, clip, steps, size, rate=rate, slack=slack, group=group), bounds, lemma)


def calibrated(promise: Promise, releases: Callable[[float], tuple[Release, ...]], plan: Callable[..., Plan]) -> Plan:
    """The plan of ``releases(mu)`` with the largest mu that keeps the promise; mu is the total Gaussian budget."""
    if not promise.private:
        return plan(releases(math.inf))
    scale = 1 / gaussian_mu(promise.epsilon, promise.target_delta)
    slope, last = 1.0, None
    for _ in range(8):  # epsilon is close to a power of the noise: a secant in logarithms, aimed just below the target
        candidate = plan(releases(1 / scale))
        reached = candidate.epsilon() / promise.epsilon
        if 1 - 3e-4 <= reached <= 1:
            return candidate
        if last is not None and scale != last[0] and reached != last[1]:
            slope = min(max(-math.log(reached / last[1]) / math.log(scale / last[0]), 0.3), 3.0)
        last = scale, reached
        scale *= (reached / (1 - 1e-4)) ** (1 / slope)
    scale = calibrate_scale(lambda z: plan(releases(1 / z)).epsilon(), promise.epsilon, scale)
    return plan(releases(1 / scale))


def descend_on_groups(
    curator: Curator,
    name: str,
    network: Network,
    inputs: Callable[[Graph, np.ndarray], Inputs],
    optimizer: Optimizer,
    rows: np.ndarray | None = None,
    progress: Progress | None = None,
    before_step: Callable[[], None] | None = None,
    after_epoch: Callable[[Network], None] | None = None,
    share: float | None = None,
) -> None:
    """Spend the gradient release ``name``; ``inputs(private, rows)`` are the inputs of the rows of these public slots.

    ``rows``: by default one for every record that pays. The divisor is the expected batch size, a public number.
    """
    import torch

    from graphveil.learn import clipped_gradient_sum, descend, take

    def prepare(private: Graph, chosen: np.ndarray) -> tuple[Inputs, Tensor]:
        return inputs(private, chosen), torch.from_numpy(private.labels[chosen])

    steps = curator.gradients(name, prepare, share, rows)
    batch = steps.rate * (max(1, curator.facts.count("train")) if rows is None else len(rows))
    epoch = max(1, round(1 / steps.rate))

    def query(prepared: tuple[Inputs, Tensor], batch: np.ndarray | None) -> np.ndarray:
        examples, targets = prepared
        if batch is not None:
            examples, targets = take(examples, batch), targets[torch.from_numpy(batch)]
        return clipped_gradient_sum(network, examples, targets, steps.clip).numpy()

    def gradient(step: int) -> Tensor:
        if before_step is not None:
            before_step()
        return torch.from_numpy(steps.step(query))

    def passed(done: int, total: int) -> None:
        if after_epoch is not None and (done % epoch == 0 or done == total):
            after_epoch(network)
        if progress is not None:
            progress(name, done, total)

    descend(network, gradient, optimizer, steps.total, max(1.0, batch), progress=passed)
