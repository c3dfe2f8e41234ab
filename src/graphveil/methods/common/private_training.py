"""Private gradient sums, also where one person touches several rows: how they are planned, calibrated and spent.

The noise of a group follows from Lemma G (``privacy/accounting/group_loss.py``). Its size is parametrised by the Gaussian
parameter it is worth: ``sigma = q (a + b) clip sqrt(T) / mu`` is where the sampled group tends to for many steps, and one common
mu is then searched so that the exact composition of all parts meets the promise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.privacy.accounting.loss import gaussian_mu
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact
from graphveil.privacy.noise import summation_error
from graphveil.privacy.plan import Plan, Release, Slot, calibrate_scale
from graphveil.privacy.promise import Promise, Relation
from graphveil.progress import Progress, silent

if TYPE_CHECKING:
    from torch import Tensor

LEMMA = "a training record owns one clipped row of every gradient sum; nobody else's row depends on it"


def parameter_count(*chains: Sequence[int], bias: bool = True) -> int:
    """Numbers in chains of linear layers of these widths."""
    return sum(b * (a + bias) for widths in chains for a, b in itertools.pairwise(widths))


def full_batch_release(
    name: str,
    promise: Promise,
    records: int,
    size: int,
    *,
    steps: int,
    clip: float,
    mu: float,
    growth: float = 1.0,
    lemma: str = LEMMA,
    slack: float | None = None,
) -> Release:
    """``steps`` full-batch gradient sums over the training records for a total of mu.

    ``growth``: the factor by which intermediate terms are longer than final ones (``noise.summation_error``). ``slack``: what
    rounding can move, where sums are exact.
    """
    if not promise.private:
        return Release(name, Exact(steps), {"train": clip}, lemma)
    slack = 2 * summation_error(records, clip, growth) if slack is None else slack
    mechanism = DpGradient.for_mu(clip, mu, steps, size, promise.relation is Relation.REPLACE, slack)
    return Release(name, mechanism, {"train": clip}, lemma)


def full_batch_slot(
    name: str,
    promise: Promise,
    bounds: Mapping[str, float],
    records: int,
    size: int,
    steps: int,
    slack: float | None = None,
) -> Slot:
    """:func:`full_batch_release` with a share chosen at run time; ``bounds`` are the clipping norms of the kinds read."""
    slack = 2 * summation_error(records, max(bounds.values())) if slack is None else slack
    replaces = promise.relation is Relation.REPLACE
    return Slot(name, bounds, 1.0, size, LEMMA, steps=steps, replaces=replaces, slack=slack)


def poisson_batches(facts: PublicFacts, epochs: int, batch_size: int) -> tuple[int, float]:
    """Steps and sampling rate of ``epochs`` passes over the training records."""
    records = max(1, facts.count("train"))
    return max(1, epochs * records // batch_size), min(1.0, batch_size / records)


def poisson_release(
    name: str, promise: Promise, records: int, size: int, batches: tuple[int, float], clip: float, multiplier: float
) -> Release:
    """Poisson batches (steps and rate), with noise ``multiplier * clip`` on each sum."""
    steps, rate = batches
    if not promise.private:
        return Release(name, Exact(steps), {"train": clip}, LEMMA)
    replaces, slack = promise.relation is Relation.REPLACE, 2 * summation_error(records, clip)
    mechanism = DpGradient(multiplier * clip, clip, steps, size, rate=rate, replaces=replaces, slack=slack)
    return Release(name, mechanism, {"train": clip}, LEMMA)


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
    """``steps`` Poisson gradient sums over ``records`` rows, of which a person touches ``group``, worth about mu."""
    if not promise.private:
        return Release(name, Exact(steps), bounds, lemma)
    sigma = rate * sum(group) * clip * math.sqrt(steps) / mu
    slack = 2 * summation_error(records, clip, growth)
    return Release(name, DpGradient(sigma, clip, steps, size, rate=rate, slack=slack, group=group), bounds, lemma)


def calibrated(
    promise: Promise, facts: PublicFacts, releases: Callable[[float], tuple[Release, ...]], sampled: float = 1.0
) -> Plan:
    """The plan of ``releases(mu)`` with the largest mu that keeps the promise; mu is the total Gaussian budget."""

    def plan(mu: float) -> Plan:
        return Plan(promise, facts, releases(mu), sampled=sampled)

    if not promise.private:
        return plan(math.inf)
    scale = 1 / gaussian_mu(promise.epsilon, promise.target_delta)
    slope, last = 1.0, None
    for _ in range(8):  # epsilon is close to a power of the noise: a secant in logarithms, aimed just below the target
        candidate = plan(1 / scale)
        reached = candidate.epsilon() / promise.epsilon
        if 1 - 3e-4 <= reached <= 1:
            return candidate
        if last is not None and scale != last[0] and reached != last[1]:
            slope = min(max(-math.log(reached / last[1]) / math.log(scale / last[0]), 0.3), 3.0)
        last = scale, reached
        scale *= (reached / (1 - 1e-4)) ** (1 / slope)
    return plan(1 / calibrate_scale(lambda z: plan(1 / z).epsilon(), promise.epsilon, scale))


def descend_on_groups(
    curator: Curator,
    name: str,
    network: learn.Network,
    inputs: Callable[[Graph, np.ndarray], learn.Inputs],
    optimizer: learn.Optimizer,
    rows: np.ndarray | None = None,
    progress: Progress = silent,
    before_step: Callable[[], None] | None = None,
    after_epoch: Callable[[learn.Network], None] | None = None,
    share: float | None = None,
) -> None:
    """Spend the gradient release ``name``; ``inputs(private, rows)`` are the inputs of the rows of these public slots.

    ``rows``: by default one for every record that pays. The divisor is the expected batch size, a public number.
    """
    import torch

    def prepare(private: Graph, chosen: np.ndarray) -> tuple[learn.Inputs, Tensor]:
        return inputs(private, chosen), torch.from_numpy(private.labels[chosen])

    steps = curator.gradients(name, prepare, share, rows)
    batch = steps.rate * (max(1, curator.facts.count("train")) if rows is None else len(rows))
    epoch, total = max(1, round(1 / steps.rate)), torch.empty_like(network.parameters)

    def query(prepared: tuple[learn.Inputs, Tensor], batch: np.ndarray | None) -> np.ndarray:
        examples, targets = prepared
        if batch is not None:
            examples, targets = learn.take(examples, batch), targets[torch.from_numpy(batch)]
        return learn.clipped_gradient_sum(network, examples, targets, steps.clip, out=total).numpy()

    def gradient(step: int) -> Tensor:
        if before_step is not None:
            before_step()
        return torch.from_numpy(steps.step(query))

    def passed(done: int, total: int) -> None:
        if after_epoch is not None and (done % epoch == 0 or done == total):
            after_epoch(network)
        progress(name, done, total)

    learn.descend(network, gradient, optimizer, steps.total, max(1.0, batch), progress=passed)


def descend_privately(
    curator: Curator,
    name: str,
    network: learn.Network,
    inputs: Callable[[Graph], learn.Inputs],
    optimizer: learn.Optimizer,
    progress: Progress,
    **others: Any,
) -> None:
    """:func:`descend_on_groups` where ``inputs(private)`` has one row per node.

    Absent and unlabelled records contribute nothing.
    """
    rows_of = lambda private, rows: learn.take(inputs(private), rows)
    descend_on_groups(curator, name, network, rows_of, optimizer, progress=progress, **others)
