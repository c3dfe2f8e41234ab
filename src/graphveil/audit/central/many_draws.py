"""Every planned release, drawn ten thousand times through the curator, against the law that the plan states.

A run draws each release once: of one number that says nothing, and of a slot that its history does not reach not even that.
Here every step of the plan is released by curators of its own, with a query that answers what the run has answered (zeros where
the run did not ask), and the tape lets the curator's own noise come again and again. What the curator hands back must be what it
has drawn last.

*Which defects are found at which size.* Up to ``WIDE`` numbers every number is drawn ten thousand times: a scale that is wrong by
a tenth shows in any one of them, and so do another law, a part that numbers share and a draw that leans on the one before. All
releases of ``graphveil audit --all`` are of this kind. A wider table (a user's data) costs too much for that: two designs share
the work. *Whole tables* through the curator, at least ``LEAST`` (of sets: ``CURATORS``) and ``MOST`` numbers in all: they find
what depends on the place, because each number, each row and each column has a sum of squares of its own. A number without noise
is found always, one with half or twice of it in tables of up to a million, and a row or column of r numbers if its noise is wrong
by a share of 12/sqrt(LEAST r) or more. *A part* of ``WIDE`` numbers, spread at random over the table, its first and last among
them: the mechanism that the curator has used draws it ten thousand times, which finds what is wrong everywhere as in a small
release. What is not found is one number of a wide table, all others being right, whose noise is off by less than half.

*Blocks.* Graphs of millions are worked on in blocks (``graph/blocks.py``), and noise that is drawn block by block from keys or
counters of which two are equal has the right law in every release of one block. So every mechanism that adds noise also draws
one column for more than two blocks of records: its numbers must not depend on each other at any distance.

A check of one release fails without cause with probability at most ``statistics.drawn.RATE``, however many numbers it has; a
release with added noise has two such checks, a wide one three.
Tests: ``tests/audit/test_many_draws.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from graphveil.audit.central.replay import Recording
from graphveil.audit.result import Failure
from graphveil.graph.blocks import SIZE
from graphveil.privacy.curator import Curator, Tape
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.mechanisms import AskedFlips, EdgeFlips, GumbelTop, Mechanism, RandomizedResponse
from graphveil.privacy.noise import Added, Array, Noise
from graphveil.privacy.plan import Release, Slot
from graphveil.statistics.drawn import (
    NormalTable,
    binomial_p_values,
    chi_squared_p_values,
    coin_p_values,
    lag_p_values,
    normal_scores,
    plausible,
)

DRAWS = 10_000
MOST = 25_000_000  # numbers drawn from one release: wide tables are drawn less often, but this many times
LEAST = 150
WIDE = MOST // DRAWS  # numbers
CURATORS = 20  # that share the draws of a release, at least one each
HELD = 2_500_000  # numbers in memory before they go into the statistics
SHARE = 0.25  # of mu^2, for slots
ALTERED = "the curator hands back something else than it has drawn"


@dataclass
class ManyDraws(Tape):
    """Draws every release ``repeats`` times and hands back the last draw; all draws go to ``listener``, and the last stays."""

    repeats: int
    listener: Callable[[ManyDraws], None] = lambda tape: None
    drawn: list[Any] = field(default_factory=list)
    clean: Any = None
    mechanism: Mechanism | None = None

    def emit(self, release: Release, clean: np.ndarray, perturb: Callable[[], np.ndarray]) -> np.ndarray:
        if len(self.drawn) * np.size(clean) >= HELD:
            self.listener(self)
            self.drawn = []
        self.clean, self.mechanism = clean, release.mechanism
        self.drawn += [perturb() for _ in range(self.repeats)]
        return np.array(self.drawn[-1])


def many_draws(run: Recording, draws: int = DRAWS) -> Iterator[Failure]:
    """What is wrong with the noise of any step of the plan of a recorded run."""
    for step in run.plan.steps:
        answer = answer_of(step, run)
        if answer is None:  # a set that no history has shown
            continue
        yield from (Failure("noise", step.name, what) for what in _wrong_draws(run, step, answer, draws))


def _wrong_draws(run: Recording, step: Release | Slot, answer: Any, draws: int) -> Iterator[str]:
    pairs = getattr(getattr(step, "mechanism", None), "pairs", 0)  # a set is as large as it could be
    size, steps = max(pairs, np.size(answer), 1), steps_of(step)
    tables = min(draws, max(MOST // size, CURATORS if pairs else LEAST))
    repeats = max(min(math.ceil(tables / (CURATORS * steps)), HELD // size), 1)
    law: AddedLaw | DiscreteLaw | None = None

    def listen(tape: ManyDraws) -> None:
        nonlocal law
        law = law or law_of(tape.mechanism, tape.clean)
        law.add(tape.drawn)

    for curator, tape in curators(
        run, max(CURATORS, math.ceil(tables / (repeats * steps))), partial(ManyDraws, repeats, listen)
    ):
        handed = all_steps(curator, step, answer)
        if not np.array_equal(handed, tape.drawn[-1]):
            yield ALTERED
            return
        listen(tape)
    yield from law.wrong() if law else ()
    if isinstance(law, AddedLaw):
        yield from _wrong_blocks(tape.mechanism, Noise(0xD4A5 + run.seed))
    if tables < draws:
        yield from _wrong_part(tape.mechanism, tape.clean, draws, Noise(0xD4A4 + run.seed))


def _wrong_part(mechanism: Any, clean: Any, draws: int, noise: Noise) -> Iterator[str]:
    """What is wrong with so many draws of a mechanism on a part of its clean value."""
    mechanism, clean = part_of(mechanism, clean)
    law = law_of(mechanism, clean)
    for _ in range(CURATORS):
        law.add([mechanism.apply(clean, noise) for _ in range(math.ceil(draws / CURATORS))])
    yield from law.wrong()


def _wrong_blocks(mechanism: Any, noise: Noise) -> Iterator[str]:
    """What is wrong with the noise of one column for more than two blocks of records."""
    clean = np.zeros(2 * SIZE + SIZE // 2)
    residual = mechanism.added.residual(clean, mechanism.apply(clean, noise))
    found = lag_p_values(normal_scores(residual, mechanism.added.distribution))
    yield from _implausible({"its numbers come again at some distance: blocks share noise": found})


def part_of(mechanism: Any, clean: Any) -> tuple[Any, Any]:
    """The same mechanism on about ``WIDE`` of its numbers: the first, the last and others at random."""
    match mechanism:
        case AskedFlips():
            return mechanism, clean[:, _some(clean.shape[1], WIDE)]
        case EdgeFlips():
            pairs = _some(mechanism.pairs, WIDE)
            return replace(mechanism, pairs=len(pairs)), np.flatnonzero(np.isin(pairs, clean))
        case GumbelTop():
            columns = _some(mechanism.columns, max(WIDE, mechanism.picks))
            rows = _some(mechanism.rows, max(WIDE // len(columns), 1))
            return replace(mechanism, rows=len(rows), columns=len(columns)), clean[np.ix_(rows, columns)]
    numbers = np.ravel(clean)
    return mechanism, numbers[_some(len(numbers), WIDE)]


def _some(size: int, most: int) -> np.ndarray:
    """At most so many of the places 0 .. size - 1; a public choice."""
    if size <= most:
        return np.arange(size)
    between = np.random.default_rng(0).choice(size - 2, max(most - 2, 0), replace=False)
    return np.unique([0, size - 1, *(1 + between)])[:most]


def curators(run: Recording, count: int, tape: Callable[[], Any]) -> Iterator[tuple[Curator, Any]]:
    """Fresh curators of the run's plan and data, each with a tape of its own and an empty ledger, and one stream of noise."""
    graph, noise = run.method.validated(run.data, "zero"), Noise(0xD4A3 + run.seed)
    for _ in range(count):
        listening = tape()
        curator = run.method.curator(graph, run.plan, noise, Ledger(), listening)
        curator.sample_slots()
        yield curator, listening


def steps_of(step: Release | Slot) -> int:
    """How often a step of the plan draws noise."""
    if isinstance(step, Slot):
        return max(step.steps, 1)
    return step.mechanism.sums.steps if step.mechanism.sums else 1


def all_steps(curator: Curator, step: Release | Slot, answer: Any, rows: int | None = None) -> Any:
    """Release a step of the plan, all of it if it is a session, over so many rows; the last value that comes back."""
    share = max(step.min_share, min(step.max_share, SHARE)) if isinstance(step, Slot) else None
    session = step.steps > 0 if isinstance(step, Slot) else step.mechanism.sums is not None
    if not session:
        return curator.release(step.name, lambda _: answer, share)
    taking_part = np.arange(curator.facts.nodes if rows is None else rows)
    steps = curator.gradients(step.name, lambda *_: None, share, taking_part)
    return [steps.step(lambda *_: answer) for _ in range(steps.total)][-1]


def answer_of(step: Release | Slot, run: Recording) -> Any:
    """What the query of a step answers: as in the recorded run, else zeros of the planned size; None if that is not known."""
    for event in run.recorder.events:
        if event.what == "release" and event.name == step.name:
            return event.clean
    size = step.dimension if isinstance(step, Slot) else step.mechanism.size
    return None if size is None else np.zeros(size)


class AddedLaw:
    """Noise added number by number: its scale, its law and its independence, and the grid of what is released."""

    def __init__(self, added: Added, clean: Array) -> None:
        self._added, self._clean, self._off_grid = added, np.asarray(clean, dtype=np.float64), 0
        self._table = NormalTable(self._clean.size)

    def add(self, drawn: list[Array]) -> None:
        released = np.array(drawn)
        self._off_grid += not self._added.on_grid(released)
        residual = ((released - self._clean) / self._added.deviation).reshape(len(released), -1)
        self._table.add(normal_scores(residual, self._added.distribution))

    def wrong(self) -> Iterator[str]:
        if self._off_grid:
            yield "released values are off the public grid: last digits may betray the input"
        yield from _implausible(self._table.p_values() | self._lines())

    def _lines(self) -> dict[str, Array]:
        """Of the rows and the columns of a table."""
        if self._clean.ndim != 2:
            return {}
        squares, shape = self._table.squares.reshape(self._clean.shape), self._clean.shape
        return {
            f"its scale is not the declared one in a {line}": chi_squared_p_values(
                squares.sum(axis=axis), self._table.rows * shape[axis]
            )
            for line, axis in (("row", 1), ("column", 0))
        }


class DiscreteLaw:
    """Categories, sets or choices, kept as they were drawn."""

    def __init__(self, p_values: Callable[[list[Any]], dict[str, Array]]) -> None:
        self._p_values = p_values
        self._drawn: list[Any] = []

    def add(self, drawn: list[Any]) -> None:
        self._drawn += drawn

    def wrong(self) -> Iterator[str]:
        yield from _implausible(self._p_values(self._drawn))


def law_of(mechanism: Any, clean: Any) -> AddedLaw | DiscreteLaw:
    """The law of a mechanism around a clean value; one that this audit does not know is never wrong."""
    if mechanism.added is not None:
        return AddedLaw(mechanism.added, clean)
    match mechanism:
        case RandomizedResponse():
            return DiscreteLaw(lambda drawn: _responses(mechanism, clean, np.array(drawn)))
        case AskedFlips():
            places, joined = partial(np.searchsorted, clean[0]), np.flatnonzero(clean[1])
            alike = EdgeFlips(mechanism.epsilon, clean.shape[1])
            return DiscreteLaw(
                lambda drawn: _flips(alike, joined, [np.asarray(places(released)) for released in drawn])
            )
        case EdgeFlips():
            return DiscreteLaw(lambda drawn: _flips(mechanism, clean, drawn))
        case GumbelTop():
            return DiscreteLaw(lambda drawn: _picks(mechanism, clean, np.array(drawn)))
    return DiscreteLaw(lambda drawn: {})


def _implausible(found: dict[str, Array]) -> Iterator[str]:
    """What a too small p-value means; all of them together share one error."""
    count = sum(values.size for values in found.values())
    for meaning, values in found.items():
        if not plausible(values * (count / max(values.size, 1))):
            yield f"{meaning} (p-value {np.min(values):.1e})"


def _responses(mechanism: RandomizedResponse, clean: Array, drawn: np.ndarray) -> dict[str, Array]:
    shift = (drawn - clean) % mechanism.categories
    others = [np.count_nonzero(shift == number) for number in range(1, mechanism.categories)]
    uneven = binomial_p_values(others, shift.size, mechanism.response.other)
    return coin_p_values((shift == 0).reshape(len(drawn), -1), mechanism.response.keep) | {
        "responses are uneven": uneven
    }


def _flips(mechanism: EdgeFlips, clean: np.ndarray, drawn: list[np.ndarray]) -> dict[str, Array]:
    table = np.zeros((len(drawn), mechanism.pairs), dtype=bool)
    for row, released in zip(table, drawn, strict=True):
        row[np.setxor1d(clean, released)] = True
    return coin_p_values(table, mechanism.flips.flip)


def _picks(mechanism: GumbelTop, scores: Array, drawn: np.ndarray) -> dict[str, Array]:
    """The first choice of every row by the exponential mechanism, and the second by the same, without the first."""
    chance = softmax(scores / mechanism.scale, axis=1)
    after = chance * ((chance / (1 - chance)).sum(axis=1, keepdims=True) - chance / (1 - chance))
    found = {}
    for place, expected in enumerate([chance, after][: mechanism.picks]):
        seen = np.stack([np.bincount(picks, minlength=mechanism.columns) for picks in drawn[:, :, place].T])
        found[f"choice {place + 1} is made too often or too rarely"] = binomial_p_values(
            seen, len(drawn), expected
        ).ravel()
    return found
