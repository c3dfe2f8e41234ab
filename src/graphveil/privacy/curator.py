"""The only door to private data: it admits what the plan contains, writes the ledger, then adds noise.

*Filter.* Fixed releases happen at most once each, with the parameters of the plan. Adaptive slots are Gaussian; the curator
keeps, for every kind of record, the sum of squared Gaussian parameters within mu^2 and refuses the release that would
exceed it. By the filter theorem (adaptive Gaussian composition with an almost-sure bound; Smith and Thakurta 2022, Koskela
et al. 2023) everything released is mu-GDP, whatever the shares depended on, as long as it was released values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphveil.errors import PrivacyError
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.noise import Array, Noise
from graphveil.privacy.plan import Plan, Release, Slot, total_mu
from graphveil.privacy.promise import Level

if TYPE_CHECKING:
    from graphveil.graph import Graph


class Tape:
    """What happens at each random event. This one lets it happen; audits record and replay (``graphveil.audit``)."""

    def coins(self, name: str, draw: Callable[[], NDArray[np.bool_]]) -> NDArray[np.bool_]:
        return draw()

    def emit(self, release: Release, clean: Array, perturb: Callable[[], Array]) -> Array:
        return perturb()

    def peek(self, name: str, value: Any) -> Any:
        return value


class Curator:
    """Hands out noisy values of private data, within a plan.

    ``facts`` and ``masks`` are public. Labels outside the training and calibration masks are handed to a query only if its
    slot says so in the plan (``query_labels``).
    """

    def __init__(self, graph: Graph, plan: Plan, noise: Noise, ledger: Ledger, tape: Tape | None = None) -> None:
        self.plan = plan
        self.facts = plan.facts
        self.masks = dict(graph.masks)
        self.ledger = ledger
        self._noise = noise
        self._tape = tape or Tape()
        self._sampled = False
        readable = self.masks["train"] | self.masks["calibration"]
        self._with_query_labels = replace(graph, ids=None)  # who is who is no query's business
        self._private = replace(self._with_query_labels, labels=np.where(readable, graph.labels, -1))

    def release(self, name: str, query: Callable[[Graph], Any], share: float | None = None) -> Array:
        """One noisy value of ``query``; for a slot, ``share`` is its part of mu^2."""
        release = self._admit(name, share)
        step = self.plan.step(name)
        scored = isinstance(step, Slot) and step.query_labels
        return self._emit(release, query(self._with_query_labels if scored else self._private))

    def gradients(
        self,
        name: str,
        prepare: Callable[[Graph, NDArray[np.int64]], Any],
        share: float | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> GradientSteps:
        """A session of noisy gradient sums; ``prepare(private, rows)`` runs once on the records that take part.

        All steps are written to the ledger before the first one. ``rows``: the public slots that own a row of the sum, where
        these are not simply the records that pay (with groups, a record also pays for the rows of others it touches).
        """
        release = self._admit(name, share)
        if rows is None:
            paying = [kind for kind, bound in release.sensitivity.items() if bound > 0 and kind in self.masks]
            rows = np.flatnonzero(np.any([self.masks[kind] for kind in paying], axis=0))
        return GradientSteps(self, release, prepare(self._private, rows), len(rows))

    def sample_slots(self) -> NDArray[np.bool_]:
        """Blank every slot that loses its coin of rate ``plan.sampled``, for the whole run; the coins must stay secret."""
        if self.ledger.entries:
            raise PrivacyError("slots are sampled before the first release; this run has already released something")
        if self.plan.sampled == 1:
            return np.ones(self.facts.nodes, dtype=bool)
        return self._keep_only(lambda: self._noise.coins(self.plan.sampled, self.facts.nodes))

    def _keep_only(self, draw: Callable[[], NDArray[np.bool_]], most: int | None = None) -> NDArray[np.bool_]:
        """Blank, for the whole run, every slot that these coins do not show; ``most``: where the plan fixes their number."""
        from graphveil.graph.graph import blanked

        coins = self._tape.coins("slots", draw)
        if most is not None:  # an audit may show more of them
            coins = coins & self.masks["train"] & (np.cumsum(coins & self.masks["train"]) <= most)
        self._private = blanked(self._private, ~coins)
        self._with_query_labels = blanked(self._with_query_labels, ~coins)
        self._sampled = True
        return coins

    def noise_scale(self, name: str) -> float:
        """The standard deviation of the noise added in a release that has happened; 0 if none was. Public."""
        mechanism = next(entry.mechanism for entry in self.ledger.entries if entry.name == name)
        return mechanism.added.deviation if mechanism.added else 0.0

    def open_records(self) -> Graph:
        """Features and labels, without contact lists, where they are public: at edge level, or if nothing is private."""
        if self.plan.promise.level not in (Level.EDGE, Level.NONE):
            raise PrivacyError(f"features and labels are private at {self.plan.promise.level} level; ask for a release")
        return self._private.without_lists()

    def _admit(self, name: str, share: float | None) -> Release:
        step = self.plan.step(name)
        if self.plan.sampled < 1 and not self._sampled:
            raise PrivacyError("this plan counts on sampled slots; call sample_slots() before the first release")
        if any(entry.name == name for entry in self.ledger.entries):
            raise PrivacyError(f"release {name!r} has already happened; a second one is not in the plan")
        if isinstance(step, Slot):
            if share is None or not step.admits(share):
                limits = f"from {step.min_share:g} to {step.max_share:g}"
                raise PrivacyError(f"slot {step.name!r} takes a positive share {limits}, got {share}")
            private = self.plan.promise.private
            step = step.release(self.plan.mu * math.sqrt(share * (1 - 1e-12)) if private else math.inf)
        elif share is not None:
            raise PrivacyError(f"release {name!r} is fixed by the plan; it takes no share")
        # the filter: refuse what would take any kind of record over mu
        for kind in self.plan.kinds if self.plan.adaptive and self.plan.promise.private else ():
            spent = total_mu((*self.ledger.spent(kind), step.loss(kind)))
            if spent is None or spent > self.plan.mu:
                raise PrivacyError(
                    f"release {name!r} would exceed the promise for {kind} records; mu would be {spent} of {self.plan.mu:.6g}"
                )
        self.ledger.append(step)
        return step

    def _emit(self, release: Release, value: Any) -> Array:
        clean = np.asarray(value)
        mechanism = release.mechanism
        if mechanism.size is not None and clean.size != mechanism.size:
            raise PrivacyError(f"release {release.name!r} has {clean.size} numbers, the plan says {mechanism.size}")
        if not np.all(np.isfinite(clean)):
            raise PrivacyError(f"release {release.name!r} is not finite: a bad row got in; nothing was released")
        return self._tape.emit(release, clean, lambda: mechanism.apply(clean, self._noise))


class GradientSteps:
    """The steps of one gradient release; batches are full or truly Poisson, empty ones included."""

    def __init__(self, curator: Curator, release: Release, prepared: Any, records: int) -> None:
        sums = release.mechanism.sums
        if sums is None:
            raise PrivacyError(f"release {release.name!r} is not a gradient session")
        self.total, self.done = sums.steps, 0
        self.clip, self.rate = sums.clip, sums.rate
        self._curator, self._release, self._prepared, self._records = curator, release, prepared, records

    def step(self, query: Callable[[Any, NDArray[np.int64] | None], Any]) -> Array:
        """The noisy sum for one step; ``query(prepared, batch)`` with ``batch=None`` for all records."""
        if self.done >= self.total:
            raise PrivacyError(f"release {self._release.name!r} has used all of its {self.total} steps")
        self.done += 1
        batch = None
        if self.rate < 1:
            noise, tape = self._curator._noise, self._curator._tape
            coins = tape.coins(self._release.name, lambda: noise.coins(self.rate, self._records))
            batch = np.flatnonzero(coins)
        return self._curator._emit(self._release, query(self._prepared, batch))


class PaperCurator(Curator):
    """Published mode: what the paper does, including reads it does not account for. Certificates say ``holds: false``."""

    def peek(self, name: str, query: Callable[[Graph], Any]) -> Any:
        """A read of private data without noise and without account, as the paper's algorithm has it."""
        return self._tape.peek(name, query(self._private))

    def sample_training(self, count: int) -> NDArray[np.bool_]:
        """Exactly ``count`` training slots by secret coins, a public number, as papers sample; everybody else is blank."""

        def draw() -> NDArray[np.bool_]:
            train = np.flatnonzero(self.masks["train"])
            shown = np.zeros(self.facts.nodes, dtype=bool)
            shown[train[np.argsort(self._noise.uniform(train.size), kind="stable")[:count]]] = True
            return shown

        return self._keep_only(draw, count)
