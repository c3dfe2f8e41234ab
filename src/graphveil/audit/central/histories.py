"""Histories for the lock-step audit: recorded with every row in every batch, replayed on neighbours, turned into laws.

With Poisson batches such a history is possible and unlikely; what it refutes is the accounting, which is for all histories.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphveil.audit.central.conformance import Outcome
from graphveil.audit.central.lock_step import realised_mu
from graphveil.audit.central.neighbours import Neighbour, neighbours
from graphveil.audit.central.occurrences import Touched, touched_rows
from graphveil.audit.central.replay import Diverged, Event, Recorder, Replayer
from graphveil.errors import PrivacyError
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.curator import Tape
from graphveil.privacy.laws import Law
from graphveil.privacy.mechanisms import DpGradient
from graphveil.privacy.plan import Plan


class AllIn(Recorder):
    """Records a run in which every coin shows True: batches are whole, so a replay shows all that a change can move."""

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        drawn = np.ones_like(draw())
        self.events.append(Event("coins", name, released=drawn))
        return drawn


@dataclass
class World:
    """One neighbour on one history: what its releases look like there, and whether the model tells it apart outright."""

    neighbour: Neighbour
    laws: list[Law] = field(default_factory=list)
    sampled: dict[str, DpGradient] = field(default_factory=dict)
    touched: dict[str, Touched] = field(default_factory=dict)
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
    left: Outcome | None = None

    @classmethod
    def of(cls, method: PrivateMethod, plan: Plan, data: Any, seed: int) -> History:
        history = cls(method, plan, data, seed)
        model = history.run(data, history.recorder)
        if any(event.what == "peek" for event in history.recorder.events):
            history.left = Outcome.of(model, data)
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
            tape = Replayer(self.recorder.events, neighbour.record)
            try:
                model = self.run(neighbour.data, tape)
                tape.finish()
            except (Diverged, PrivacyError):
                continue
            world = World(neighbour)
            squares = 0.0
            for moved in tape.measured:
                if (steps := moved.release.mechanism.poisson) is not None:
                    world.sampled[moved.release.name] = steps
                    squares += (steps.rate * moved.distance / steps.sigma) ** 2
                else:
                    world.laws += moved.release.mechanism.worlds(moved.before, moved.after)
            world.guide = math.hypot(math.sqrt(squares), realised_mu(world.laws))
            if self.left is not None:
                world.seen = [what for what in self.left.differences(model, neighbour) if what != "the certificate"]
            yield world

    def expand(self, world: World) -> None:
        """Add the Poisson sums of a world by its touched rows, measured one by one."""
        for name, steps in world.sampled.items():
            found = touched_rows(self.run, self.data, world.neighbour.data, self.recorder.events, name)
            world.touched[name] = found
            if found.before:
                before, after = (np.stack(list(rows.values())) for rows in (found.before, found.after))
                world.laws += steps.row_worlds(before, after)
