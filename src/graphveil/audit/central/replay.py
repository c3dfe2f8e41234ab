"""Record a run on G, then replay it on a neighbour G' with every random outcome frozen.

With released outputs and batch coins fixed, everything a method does must be the same on G' except the clean values behind
the noise, and those may differ by at most the declared sensitivity. That is exactly the hypothesis of adaptive
composition, so a violation is a bug in the method or its proof, found without statistics.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from graphveil.audit.central.neighbours import Neighbour
from graphveil.methods.base import PrivateMethod
from graphveil.methods.model import Model
from graphveil.privacy.curator import Tape
from graphveil.privacy.mechanisms import Mechanism
from graphveil.privacy.plan import Plan, Release


@dataclass(frozen=True)
class Event:
    """One random event of a run: a noisy release, a draw of batch coins, or an unaccounted peek."""

    what: str
    name: str
    mechanism: Mechanism | None = None
    clean: np.ndarray = field(default_factory=lambda: np.empty(0))
    released: np.ndarray = field(default_factory=lambda: np.empty(0))


class Diverged(Exception):
    """The replay took another path than the recording."""


class Recorder(Tape):
    """Keeps every event of a run."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        drawn = draw()
        self.events.append(Event("coins", name, released=drawn))
        return drawn

    def emit(self, release: Release, clean: np.ndarray, perturb: Callable[[], np.ndarray]) -> np.ndarray:
        clean = clean.copy()
        released = perturb()
        self.events.append(Event("release", release.name, release.mechanism, clean, np.array(released)))
        return released

    def peek(self, name: str, value: Any) -> Any:
        self.events.append(Event("peek", name))
        return value


@dataclass(frozen=True)
class Measured:
    """One step of a release: its clean values on the two graphs, as far as others see them."""

    release: Release
    before: np.ndarray
    after: np.ndarray

    @cached_property
    def distance(self) -> float:
        return self.release.mechanism.distance(self.before, self.after)


class Replayer(Tape):
    """Returns recorded outcomes and measures how far the clean values have moved; ``record`` is the changed node."""

    def __init__(self, events: list[Event], record: int | None) -> None:
        self._events = iter(events)
        self._record = record
        self.measured: list[Measured] = []

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        return self._next("coins", name).released

    def emit(self, release: Release, clean: np.ndarray, perturb: Callable[[], np.ndarray]) -> np.ndarray:
        event = self._next("release", release.name)
        if event.mechanism != release.mechanism:
            raise Diverged(f"{release.name}: noise {release.mechanism} on the neighbour, {event.mechanism} before")
        if release.mechanism.shaped and event.clean.shape != clean.shape:
            raise Diverged(f"{release.name}: shape {clean.shape} on the neighbour, {event.clean.shape} before")
        before, after = event.clean, np.array(clean)
        if release.own_row_excluded and self._record is not None:  # only its owner sees that row
            before, after = (np.delete(value, self._record, axis=0) for value in (before, after))
        self.measured.append(Measured(release, before, after))
        return event.released.copy()

    def peek(self, name: str, value: Any) -> Any:
        self._next("peek", name)
        return value

    def finish(self) -> None:
        if (event := next(self._events, None)) is not None:
            raise Diverged(f"the neighbour's run ended before {event.what} {event.name!r}")

    def _next(self, what: str, name: str) -> Event:
        event = next(self._events, None)
        if event is None or (event.what, event.name) != (what, name):
            before = "nothing more" if event is None else f"{event.what} {event.name!r}"
            raise Diverged(f"{what} {name!r} on the neighbour, {before} before")
        return event


@dataclass
class Recording:
    """A recorded run of a method, and how to repeat it."""

    method: PrivateMethod
    plan: Plan
    data: Any
    seed: int
    recorder: Recorder = field(default_factory=Recorder)

    @property
    def peeked(self) -> bool:
        """Whether the run has read anything without account."""
        return any(event.what == "peek" for event in self.recorder.events)

    def run(self, data: Any, tape: Tape) -> Model:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            promise, plan = self.plan.promise, self.plan
            return self.method.fit(data, promise, seed=self.seed, tape=tape, on_bad_rows="zero", plan=plan)

    def replay(self, neighbour: Neighbour) -> tuple[Model, Replayer]:
        """The run on a neighbour with all outcomes frozen; :class:`Diverged` if it takes another path."""
        tape = Replayer(self.recorder.events, neighbour.record)
        model = self.run(neighbour.data, tape)
        tape.finish()
        return model, tape
