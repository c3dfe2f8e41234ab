"""Histories for the lock-step audit: recorded with every row in every batch, replayed on neighbours, turned into laws.

With Poisson batches such a history is possible and unlikely; what it refutes is the accounting, which is for all histories.

*Occurrences*: how many rows of a sampled gradient sum one record touches, and by how much, against the declared group.
A replay whose batch is a chosen set of rows shows the sum over exactly these rows, in either world, on one history. Sets whose
sums agree in both worlds are set aside, the others halved: about ``touched log(rows)`` replays find every touched row alone.
Lemma G (``privacy/accounting/group_loss.py``) counts on at most a rows before and b rows after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphveil.audit.central.conformance import Outcome
from graphveil.audit.central.neighbours import Neighbour, neighbours
from graphveil.audit.central.replay import Diverged, Event, Recorder, Recording, Replayer
from graphveil.errors import PrivacyError
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.laws import Law, realised_mu
from graphveil.privacy.mechanisms import DpGradient
from graphveil.privacy.plan import Plan, Release

MOST_REPLAYS = 600


class AllIn(Recorder):
    """Records a run in which every coin shows True: batches are whole, so a replay shows all that a change can move."""

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        return super().coins(name, lambda: np.ones_like(draw()))


class Probe(Replayer):
    """Replays a history, with chosen rows as the batch of one release, and keeps that release's clean sums."""

    def __init__(self, events: list[Event], name: str, rows: np.ndarray) -> None:
        super().__init__(events, None)
        self.name, self.rows = name, rows
        self.sums: list[np.ndarray] = []

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        coins = super().coins(name, draw)
        if name != self.name:
            return coins
        batch = np.zeros_like(coins)
        batch[self.rows] = True
        return batch

    def emit(self, release: Release, clean: np.ndarray, perturb: Callable[[], np.ndarray]) -> np.ndarray:
        if release.name == self.name:
            self.sums.append(np.array(clean, dtype=np.float64))
        event = self._next("release", release.name)
        return event.released.copy()


@dataclass(frozen=True)
class Touched:
    """The rows of one release that a change touches: ``before[row]`` and ``after[row]`` are (steps, numbers) tables."""

    before: dict[int, np.ndarray]
    after: dict[int, np.ndarray]
    complete: bool

    @property
    def group(self) -> tuple[int, int]:
        """How many rows contribute before and after, in the worst step, among those that differ."""
        counts = [0, 0]
        for side, tables in enumerate((self.before, self.after)):
            if tables:
                counts[side] = int(np.stack([table.any(axis=1) for table in tables.values()]).sum(axis=0).max())
        return counts[0], counts[1]

    def within(self, mechanism: DpGradient) -> bool:
        """Whether Lemma G covers this: (a, b) rows in one order or the other."""
        (a, b), (most, least) = self.group, mechanism.rows
        return (a <= most and b <= least) or (b <= most and a <= least)

    @property
    def longest(self) -> float:
        """The longest row, which the clipping norm bounds."""
        tables = [*self.before.values(), *self.after.values()]
        return max((float(np.linalg.norm(table, axis=1).max()) for table in tables), default=0.0)


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
class History(Recording):
    """The recording of a run with whole batches; ``left``: what it leaves behind, where that shows unaccounted reads."""

    recorder: Recorder = field(default_factory=AllIn)
    left: Outcome | None = None

    @classmethod
    def of(cls, method: PrivateMethod, plan: Plan, data: Any, seed: int) -> History:
        history = cls(method, plan, data, seed)
        model = history.run(data, history.recorder)
        if history.peeked:
            history.left = Outcome.of(model, data)
        return history

    def worlds(self, names: dict[str, int]) -> Iterator[World]:
        """Every neighbour that the replay can follow (conformance reports the others)."""
        for neighbour in neighbours(self.data, names, self.plan.promise, self.seed, self.plan.weaker):
            try:
                model, tape = self.replay(neighbour)
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
            found = self.touched(name, world.neighbour.data)
            world.touched[name] = found
            if found.before:
                before, after = (np.stack(list(rows.values())) for rows in (found.before, found.after))
                world.laws += steps.row_worlds(before, after)

    def touched(self, name: str, there: Any) -> Touched:
        """Every row of the release ``name`` whose gradient differs on the other graph, measured alone."""
        events = self.recorder.events
        rows = next(len(e.released) for e in events if e.what == "coins" and e.name == name)
        before: dict[int, np.ndarray] = {}
        after: dict[int, np.ndarray] = {}
        waiting, replays = [np.arange(rows)], 0
        while waiting and replays < MOST_REPLAYS:
            block = waiting.pop()
            sums = []
            for data in (self.data, there):
                probe = Probe(events, name, block)
                self.run(data, probe)
                sums.append(np.array([one.ravel() for one in probe.sums]))
            replays += 2
            if np.array_equal(sums[0], sums[1]):
                continue
            if len(block) == 1:
                before[int(block[0])], after[int(block[0])] = sums
            else:
                waiting += [block[: len(block) // 2], block[len(block) // 2 :]]
        return Touched(before, after, complete=not waiting)
