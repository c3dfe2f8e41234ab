"""Histories for the lock-step audit: recorded with every row in every batch, replayed on neighbours, turned into score parts.

With Poisson batches such a history is possible and unlikely; what it refutes is the accounting, which is for all histories.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphveil.audit.central.conformance import Left
from graphveil.audit.central.lock_step import Part, SampledShift, parts_of, realised_mu
from graphveil.audit.central.neighbours import Neighbour, neighbours
from graphveil.audit.central.occurrences import Touched, touched_rows
from graphveil.audit.central.replay import Diverged, Event, Recorder, Replayer
from graphveil.errors import PrivacyError
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.curator import Tape
from graphveil.privacy.mechanisms import DpGradient
from graphveil.privacy.plan import Plan, Release


class AllIn(Recorder):
    """Records a run in which every coin shows True: batches are whole, so a replay shows all that a change can move."""

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        drawn = np.ones_like(draw())
        self.events.append(Event("coins", name, released=drawn))
        return drawn


class Pairs(Replayer):
    """A replay that keeps the clean values of both worlds, without the row that only its owner sees."""

    def __init__(self, events: list[Event], record: int | None) -> None:
        super().__init__(events, record)
        self.pairs: list[tuple[Release, np.ndarray, np.ndarray]] = []

    def _distance(self, release: Release, before: np.ndarray, after: np.ndarray) -> float:
        if release.own_row_excluded and self._record is not None:
            kept = [np.delete(value, self._record, axis=0) for value in (before, after)]
        else:
            kept = [before, np.array(after)]
        self.pairs.append((release, *kept))
        return super()._distance(release, before, after)


@dataclass
class World:
    """One neighbour on one history: what its releases look like there, and whether the model tells it apart outright."""

    neighbour: Neighbour
    parts: list[Part] = field(default_factory=list)
    sampled: dict[str, Release] = field(default_factory=dict)
    touched: list[Touched] = field(default_factory=list)
    guide: float = 0.0
    seen: list[str] = field(default_factory=list)


@dataclass
class History:
    """A recorded run of a method and how to repeat it."""

    method: PrivateMethod
    plan: Plan
    data: Any
    seed: int
    recorder: AllIn = field(default_factory=AllIn)
    left: Left | None = None

    @classmethod
    def of(cls, method: PrivateMethod, plan: Plan, data: Any, seed: int) -> History:
        history = cls(method, plan, data, seed)
        model = history.run(data, history.recorder)
        if any(event.what == "peek" for event in history.recorder.events):
            predictor = model.predictor
            history.left = Left(
                predictor.arrays(), predictor.config(), model.certificate.to_json(), model.predict_proba(data)
            )
        return history

    def run(self, data: Any, tape: Tape) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.method.fit(
                data, self.plan.promise, seed=self.seed, tape=tape, on_bad_rows="zero", plan=self.plan
            )

    def worlds(self, names: dict[str, int]) -> Iterator[World]:
        """Every neighbour that the replay can follow (conformance reports the others)."""
        for neighbour in neighbours(self.data, names, self.plan.promise, self.seed, self.plan.weaker):
            tape = Pairs(self.recorder.events, neighbour.record)
            try:
                model = self.run(neighbour.data, tape)
                tape.finish()
            except (Diverged, PrivacyError):
                continue
            world = World(neighbour)
            squares = 0.0
            for release, before, after in tape.pairs:
                mechanism = release.mechanism
                if isinstance(mechanism, DpGradient) and mechanism.rate < 1:
                    world.sampled[release.name] = release
                    distance = float(np.linalg.norm(before - after))
                    squares += (mechanism.rate * distance / mechanism.sigma) ** 2
                else:
                    world.parts += parts_of(mechanism, before, after)
            world.guide = math.hypot(math.sqrt(squares), realised_mu(world.parts))
            if self.left is not None:
                world.seen = [what for what in self.left.differences(model, neighbour) if what != "the certificate"]
            yield world

    def expand(self, world: World) -> None:
        """Replace the Poisson sums of a world by its touched rows, measured one by one."""
        for name, release in world.sampled.items():
            found = touched_rows(self.run, self.data, world.neighbour.data, self.recorder.events, name)
            world.touched.append(found)
            world.parts += _sampled_parts(found, release.mechanism)  # type: ignore[arg-type]
        world.sampled = {}


def _sampled_parts(found: Touched, mechanism: DpGradient) -> list[Part]:
    """One mixture per step, along the direction in which the two sums differ."""
    if not found.before:
        return []
    before, after = np.stack(list(found.before.values())), np.stack(list(found.after.values()))
    direction = (before - after).sum(axis=0)
    flat = ~direction.any(axis=1)
    direction[flat] = (before - after)[0][flat]
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
    along = [np.einsum("jtd,td->tj", rows, direction) for rows in (before, after)]
    return [
        SampledShift(mechanism.sigma, mechanism.rate, here, there)
        for here, there in zip(*along, strict=True)
        if np.any(here != there)
    ]
