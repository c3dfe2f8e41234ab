"""Private gradient sums in which a record owns one row: how they are planned and spent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from graphveil.methods.common.group_training import descend_on_groups
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact
from graphveil.privacy.noise import summation_error
from graphveil.privacy.plan import Release, Slot
from graphveil.privacy.promise import Promise, Relation
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import Inputs, Network, Optimizer

LEMMA = "a training record owns one clipped row of every gradient sum; nobody else's row depends on it"


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


def poisson_batches(facts: PublicFacts, epochs: int, batch_size: int) -> tuple[int, float]:
    """Steps and sampling rate of ``epochs`` passes over the training records."""
    records = max(1, facts.count("train"))
    return max(1, epochs * records // batch_size), min(1.0, batch_size / records)


def poisson_release(
    name: str,
    promise: Promise,
    facts: PublicFacts,
    size: int,
    *,
    steps: int,
    rate: float,
    clip: float,
    noise_multiplier: float,
) -> Release:
    """``steps`` Poisson batches of this rate, with noise ``noise_multiplier * clip`` on each sum."""
    if not promise.private:
        return Release(name, Exact(steps), {"train": clip}, LEMMA)
    mechanism = DpGradient(
        noise_multiplier * clip,
        clip,
        steps,
        size,
        rate=rate,
        replaces=promise.relation is Relation.REPLACE,
        slack=2 * summation_error(facts.count("train"), clip),
    )
    return Release(name, mechanism, {"train": clip}, LEMMA)


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

    Absent and unlabelled records contribute nothing.
    """
    from graphveil.learn import take

    rows_of = lambda private, rows: take(inputs(private), rows)
    descend_on_groups(
        curator, name, network, rows_of, optimizer, progress=progress, after_epoch=after_epoch, share=share
    )
