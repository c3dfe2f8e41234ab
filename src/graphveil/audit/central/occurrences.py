"""How many rows of a sampled gradient sum one record touches, and by how much: measured row by row, against the declared group.

A replay whose batch is a chosen set of rows shows the sum over exactly these rows, in either world, on one history. Sets whose
sums agree in both worlds are set aside, the others halved: about ``touched log(rows)`` replays find every touched row alone.
Lemma G (``privacy/accounting/group_loss.py``) counts on at most a rows before and b rows after.
Tests: ``tests/audit/test_lock_step.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.audit.central.replay import Event, Replayer
from graphveil.privacy.mechanisms import DpGradient
from graphveil.privacy.plan import Release

MOST_REPLAYS = 600

Run = Callable[[Any, Replayer], None]  # fit the method on this graph under this tape


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


def touched_rows(run: Run, here: Any, there: Any, events: list[Event], name: str) -> Touched:
    """Every row of the release ``name`` whose gradient differs between the two graphs, measured alone."""
    rows = next(len(e.released) for e in events if e.what == "coins" and e.name == name)
    before: dict[int, np.ndarray] = {}
    after: dict[int, np.ndarray] = {}
    waiting, replays = [np.arange(rows)], 0
    while waiting and replays < MOST_REPLAYS:
        block = waiting.pop()
        sums = []
        for data in (here, there):
            probe = Probe(events, name, block)
            run(data, probe)
            sums.append(np.array([one.ravel() for one in probe.sums]))
        replays += 2
        if np.array_equal(sums[0], sums[1]):
            continue
        if len(block) == 1:
            before[int(block[0])], after[int(block[0])] = sums
        else:
            waiting += [block[: len(block) // 2], block[len(block) // 2 :]]
    return Touched(before, after, complete=not waiting)
