"""Training a network through a curator: how the gradient release is planned, and the loop that spends it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.base import Progress
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact
from graphveil.privacy.noise import summation_error
from graphveil.privacy.plan import Gap, Release, Slot
from graphveil.privacy.promise import Promise, Relation

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.graph import Graph
    from graphveil.learn import Inputs, Network, Optimizer

LEMMA = "a training record owns one clipped row of every gradient sum; nobody else's row depends on it"
SELECTION = Gap(
    "D8",
    "the epoch is chosen by accuracy on private validation labels, which no budget pays for",
    check="unaccounted",
    release="selection",
)


def parameter_count(*chains: Sequence[int], bias: bool = True) -> int:
    """Numbers in chains of linear layers of these widths."""
    return sum(b * (a + bias) for widths in chains for a, b in itertools.pairwise(widths))


def full_batch_release(
    name: str,
    promise: Promise,
    facts: PublicFacts,
    size: int,
    *,
    steps: int,
    clip: float,
    mu: float,
    growth: float = 1.0,
) -> Release:
    """``steps`` full-batch gradient sums over the training records for a total of mu."""
    replaces = promise.relation is Relation.REPLACE
    if not promise.private:
        return Release(name, Exact(steps), {"train": clip}, LEMMA)
    slack = 2 * summation_error(facts.count("train"), clip, growth)
    mechanism = DpGradient.for_mu(clip, mu, steps, size, replaces, slack)
    return Release(name, mechanism, {"train": clip}, LEMMA)


def full_batch_slot(
    name: str,
    promise: Promise,
    bounds: Mapping[str, float],
    records: int,
    size: int,
    *,
    steps: int,
    growth: float = 1.0,
) -> Slot:
    """:func:`full_batch_release` with a share chosen at run time; ``bounds`` are the clipping norms of the kinds read."""
    slack = 2 * summation_error(records, max(bounds.values()), growth)
    replaces = promise.relation is Relation.REPLACE
    return Slot(name, bounds, 1.0, size, LEMMA, steps=steps, replaces=replaces, slack=slack)


def poisson_release(
    name: str,
    promise: Promise,
    facts: PublicFacts,
    size: int,
    *,
    epochs: int,
    batch_size: int,
    clip: float,
    noise_multiplier: float,
) -> Release:
    """``epochs`` passes of Poisson batches with noise ``noise_multiplier * clip`` on each sum."""
    records = facts.count("train")
    steps = max(1, epochs * records // batch_size)
    if not promise.private:
        return Release(name, Exact(steps), {"train": clip}, LEMMA)
    mechanism = DpGradient(
        noise_multiplier * clip,
        clip,
        steps,
        size,
        rate=min(1.0, batch_size / records),
        replaces=promise.relation is Relation.REPLACE,
        slack=2 * summation_error(records, clip),
    )
    return Release(name, mechanism, {"train": clip}, LEMMA)


def paper_batches(facts: PublicFacts, epochs: int, batch_size: int) -> dict[str, Any]:
    """Steps and rate of one trained stage, as :func:`poisson_release` draws them, for ``paper_accounting.claimed_noise``."""
    records = max(1, facts.count("train"))
    return {"steps": max(1, epochs * records // batch_size), "rate": min(1.0, batch_size / records)}


def descend_privately(
    curator: Curator,
    name: str,
    network: Network,
    inputs: Callable[[Graph], Inputs],
    optimizer: Optimizer,
    progress: Progress | None = None,
    after_epoch: Callable[[Network], None] | None = None,
    share: float | None = None,
) -> None:
    """Spend the gradient release ``name`` on ``network``; ``inputs(private)`` are its inputs, one row per node.

    The divisor is the expected batch size, a public number. Absent and unlabelled records contribute nothing.
    """
    import torch

    from graphveil.learn import clipped_gradient_sum, descend, take

    def prepare(private: Graph, rows: np.ndarray) -> tuple[Inputs, Tensor]:
        return take(inputs(private), rows), torch.from_numpy(private.labels[rows])

    steps = curator.gradients(name, prepare, share)
    records = max(1, curator.facts.count("train"))
    per_epoch = max(1, round(1 / steps.rate))

    def query(prepared: Any, batch: np.ndarray | None) -> np.ndarray:
        examples, targets = prepared
        if batch is not None:
            examples, targets = take(examples, batch), targets[torch.from_numpy(batch)]
        return clipped_gradient_sum(network, examples, targets, steps.clip).numpy()

    def gradient(step: int) -> Tensor:
        if after_epoch is not None and step and step % per_epoch == 0:
            after_epoch(network)
        return torch.from_numpy(steps.step(query))

    report = None if progress is None else lambda done, total: progress(name, done, total)
    descend(network, gradient, optimizer, steps.total, max(1.0, steps.rate * records), progress=report)
    if after_epoch is not None:
        after_epoch(network)


class BestEpoch:
    """The papers' choice of epoch: keep the parameters with the best accuracy on validation labels; without any, the last.

    ``look`` answers a question about the records: at edge level, where they are open, by reading them; elsewhere by the peek that
    published modes allow themselves and declare (D8).
    """

    def __init__(self, look: Callable[[Callable[[Graph], float]], float], inputs: Callable[[Graph], Inputs]) -> None:
        self._look, self._inputs = look, inputs
        self._best = -1.0
        self._parameters: Tensor | None = None
        self._held: tuple[Inputs, np.ndarray] | None = None

    def __call__(self, network: Network) -> None:
        from graphveil.learn import take

        def accuracy(private: Graph) -> float:
            if self._held is None:
                chosen = np.flatnonzero(private.masks["calibration"] & (private.labels >= 0))
                self._held = take(self._inputs(private), chosen), private.labels[chosen]
            inputs, labels = self._held
            return float(np.mean(network(inputs).argmax(dim=1).numpy() == labels)) if labels.size else math.nan

        reached = self._look(accuracy)
        if reached > self._best:
            self._best, self._parameters = reached, network.parameters.clone()

    @classmethod
    def peeking(cls, curator: PaperCurator, inputs: Callable[[Graph], Inputs]) -> BestEpoch:
        return cls(lambda question: curator.peek("selection", question), inputs)

    def restore(self, network: Network) -> None:
        if self._parameters is not None:
            network.parameters.copy_(self._parameters)
