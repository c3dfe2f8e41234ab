"""What carries over from a run on an earlier export: its released numbers, placed in the slots of the graph at hand.

Each is averaged with its successor by the inverse of the variances of their noise. Two runs at half of mu^2 then know nearly as
much as one at all of it; beginning the gradient steps at the old weights instead was worse (``docs/results/months.md``). After
several months older ones fade: the last run counts as much as its own noise says, whatever is averaged into it.

Formal guarantee: a released number is public, and what a later run does with it is post-processing. Given everything the first
run released, the second is a mechanism on its own graph within its own plan, whose sensitivities hold for every history. Both
together are therefore the adaptive composition of the two plans: what carries over costs nothing beyond it. Whoever is in both
graphs pays both, whoever is in one pays that one (``privacy/earlier.py``). Nothing else of the first run is read, neither its
graph nor what its curator keeps, but for the digests of ids: who is in which slot is a public fact in both runs.
Tests: ``tests/methods/test_previous.py`` (replay, and planted methods that read what they must not).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.errors import DataWarning, InputError
from graphveil.methods.alignment import IN_ORDER, NOT_ALIGNED
from graphveil.privacy.budget.account import Notion
from graphveil.privacy.budget.charge import Charge
from graphveil.privacy.certificate import Certificate
from graphveil.privacy.earlier import EarlierRun
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Level, Promise
from graphveil.privacy.shares import shares_by_kind

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.methods.base import PrivateMethod
    from graphveil.methods.model import Model
    from graphveil.privacy.curator import Curator

SAME_PEOPLE = "who is in which slot of this graph and of that of the run before"


@dataclass(frozen=True)
class Previous:
    """The released numbers of an earlier run of the same method; ``slots``: by slot of this graph the one there, or -1."""

    predictor: Any
    certificate: Certificate
    slots: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """The slots of this graph whose people were there before."""
        return self.slots >= 0

    def placed(self, table: np.ndarray) -> np.ndarray:
        """A released table with a row per slot then, as one with a row per slot now; newcomers have zeros."""
        rows = np.zeros((len(self.slots), *table.shape[1:]))
        rows[self.known] = table[self.slots[self.known]]
        return rows

    def noise(self, name: str) -> float:
        """The standard deviation of the noise of a release of then; infinite if it was not made."""
        return next((deviation(made) for made in self.certificate.releases if made.name == name), math.inf)

    def weight(self, curator: Curator, name: str, kinds: Collection[str] = ()) -> float:
        """How much the outcome of a release of then counts beside that of now: by the inverse of the variances.

        ``kinds``: of whose records the release is a mean, where it is one.
        """
        now = next(deviation(made) for made in curator.ledger.entries if made.name == name)
        then, sizes = self.noise(name), [1, 1]
        if kinds:
            sizes = [max(1, sum(map(facts.count, kinds))) for facts in (self.certificate.facts, curator.facts)]
        return weight_of(then / sizes[0], now / sizes[1])

    def share(self, name: str) -> float | None:
        """The part of mu^2 that a release took then, of whoever paid most for it."""
        return max((found[name] for found in shares_by_kind(self.certificate).values() if name in found), default=None)


def deviation(release: Release) -> float:
    """The standard deviation of the noise of a release, 0 without noise."""
    return 0.0 if release.mechanism.added is None else release.mechanism.added.deviation


def weight_of(then: float, now: float) -> float:
    """The weight of the older of two noisy values of nearly the same thing; none if the newer one has no noise."""
    return 0.0 if now == 0 or math.isinf(then) else now**2 / (now**2 + then**2)


@dataclass(frozen=True)
class Following:
    """How a run follows an earlier one: what it takes over (nothing if it starts anew), and all runs before it."""

    taken: Previous | None
    earlier: tuple[EarlierRun, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What is taken as public because of it."""
        return () if self.taken is None or not self.taken.known.any() else (SAME_PEOPLE,)


def follow(method: PrivateMethod, before: Model, graph: Graph, promise: Promise) -> Following:
    """What ``method`` on ``graph`` takes over from a model of an earlier export; an error if nothing can be said of both."""
    certificate = before.certificate
    if Level.LOCAL in (promise.level, certificate.promise.level) or Level.NONE in (
        promise.level,
        certificate.promise.level,
    ):
        raise InputError("a run before counts where a curator spends under a promise, not at level local or none")
    if not certificate.holds:
        raise InputError("no promise holds for the run before: what both cost together has no bound; train without it")
    then, now = Notion.of(certificate.promise), Notion.of(promise)
    if then != now:
        raise InputError(
            f"the run before promised {then}, this one is to promise {now}: they do not compose; ask for the same "
            "level, adjacency and relation, or train without the run before"
        )
    takes = (
        before.method.name == method.name
        and (certificate.facts.features, certificate.facts.classes) == (graph.features, graph.classes)
        and (before.class_names or None) == (None if graph.class_names is None else tuple(graph.class_names))
        and not certificate.own_rows
        and method.takes(before.predictor, promise)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        plan = before.method.plan(certificate.facts, certificate.promise)
    run = EarlierRun(
        certificate.to_json()["digest"],
        certificate.method,
        certificate.promise,
        Charge.of_plan(plan, promise.with_default_delta(graph.nodes).target_delta),
        certificate.seeded,
        certificate.weaker,
        taken=takes,
    )
    taken = Previous(before.predictor, certificate, slots_then(before, graph)) if takes else None
    return Following(taken, (*certificate.earlier, run))


def slots_then(before: Model, graph: Graph) -> np.ndarray:
    """By slot of the graph, that of the same person in the run before, or -1."""
    if not before.reads_slots:
        return np.full(graph.nodes, -1)
    if graph.ids is None:
        if graph.nodes != before.certificate.facts.nodes:
            raise InputError(
                f"the run before had {before.certificate.facts.nodes} nodes, these data have {graph.nodes} and no ids: "
                "give data.ids (import --id), so that people can be told"
            )
        warnings.warn(IN_ORDER, DataWarning, stacklevel=4)
        return np.arange(graph.nodes)
    if before.order is None:
        raise InputError(NOT_ALIGNED)
    slots = before.order.places_of(graph.ids)
    if not (slots >= 0).any():
        raise InputError("none of these ids is in the run before: these are other people, or other ids of them")
    return slots


def met_again(before: Model, ids: np.ndarray | None) -> dict[str, int] | None:
    """Of people with these ids, how many the run before knows, how many are new, and how many of then have left."""
    if before.order is None or ids is None:
        return None
    known = int((before.order.places_of(ids) >= 0).sum())
    return {"known": known, "new": len(ids) - known, "left": len(before.order.digests) - known}
