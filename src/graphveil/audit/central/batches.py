"""Batches against the plan: fresh coins of one rate for every record, and an empty batch is a step like any other.

*One run*: at every step of a run of the method its coins are tossed many times over, so that rates and dependence among records
are those of the rows that the method has prepared. *Whole sessions*: curators of their own take all steps of the release, again
and again; dependence across steps shows in successive batches, and in how often a record takes part in a session. Each check of
a release fails without cause with probability at most ``statistics.drawn.RATE``. *No coins*: a run in which no coin of a batch
shows. It takes every step, each sum is empty, and noise is added to it all the same; otherwise the number of steps, or a value
without noise, would tell that nobody was there.
Tests: ``tests/audit/test_batches.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import binom

from graphveil.audit.central.many_draws import all_steps, answer_of, curators
from graphveil.audit.central.noise_checks import noise_law
from graphveil.audit.central.replay import Recorder, Recording
from graphveil.audit.result import Failure
from graphveil.errors import GraphveilError
from graphveil.privacy.mechanisms import DpGradient
from graphveil.privacy.plan import Release
from graphveil.statistics.drawn import coin_p_values, distance_p_value, plausible

CHECK = "batches"
TOSSES = 4000


class ManyCoins(Recorder):
    """Tosses the coins of these releases ``tosses`` times in all, a part of them at every step."""

    def __init__(self, sampled: dict[str, DpGradient], tosses: int) -> None:
        super().__init__()
        self._times = {name: math.ceil(tosses / steps.steps) for name, steps in sampled.items()}
        self.seen: dict[str, list[np.ndarray]] = {name: [] for name in sampled}

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        if name not in self.seen:
            return super().coins(name, draw)
        self.seen[name] += [draw() for _ in range(self._times[name])]
        return super().coins(name, lambda: self.seen[name][-1])


class NoCoins(Recorder):
    """Records a run in which no coin of a batch shows."""

    def __init__(self, sampled: dict[str, DpGradient]) -> None:
        super().__init__()
        self._sampled = sampled

    def coins(self, name: str, draw: Callable[[], np.ndarray]) -> np.ndarray:
        return super().coins(name, lambda: np.zeros_like(draw()) if name in self._sampled else draw())


def batch_failures(run: Recording, tosses: int = TOSSES) -> Iterator[Failure]:
    """What is wrong with the batches of any sampled release of the plan."""
    releases = [step for step in run.plan.steps if isinstance(step, Release) and step.mechanism.poisson]
    sampled = {step.name: step.mechanism.poisson for step in releases if step.mechanism.poisson}
    if not sampled:
        return
    many = ManyCoins(sampled, tosses)
    run.run(run.data, many)
    for step in releases:
        steps = sampled[step.name]
        table = np.array(many.seen[step.name])
        if not table.size:
            yield Failure(CHECK, step.name, "batches are planned and no coin was tossed")
            continue
        sessions = Recorder()
        for curator, _ in curators(run, math.ceil(tosses / steps.steps), partial(_same, sessions)):
            all_steps(curator, step, answer_of(step, run), table.shape[1])
        taken = np.array(
            [event.released for event in sessions.events if event.what == "coins" and event.name == step.name]
        )
        if len(taken) % steps.steps:
            yield Failure(CHECK, step.name, "coins are not tossed once per step")
            continue
        found = [*coin_p_values(table, steps.rate).items(), *_of_sessions(taken, steps).items()]
        yield from (Failure(CHECK, step.name, what) for what, p in found if not plausible(np.multiply(p, len(found))))
        for curator, tape in curators(run, 1, lambda: NoCoins(sampled)):
            handed = all_steps(curator, step, answer_of(step, run), table.shape[1])
            drawn = [event.released for event in tape.events if event.what == "release"]
            if not drawn or not np.array_equal(handed, drawn[-1]):
                yield Failure(CHECK, step.name, "an empty batch does not give a noisy sum")
    yield from _without_coins(run, sampled)


def _same(tape: Recorder) -> Recorder:
    return tape


def _of_sessions(taken: np.ndarray, steps: DpGradient) -> dict[str, np.ndarray]:
    """Of batches in the order in which sessions drew them: how often a record takes part in a session is binomial."""
    often = taken.reshape(-1, steps.steps, taken.shape[1]).sum(axis=1)
    reached = np.bincount(often.ravel(), minlength=steps.steps + 1).cumsum() / often.size
    apart = reached - binom.cdf(np.arange(steps.steps + 1), steps.steps, steps.rate)
    by_number = np.array([distance_p_value(apart, apart, often.size)])
    alike = "records take part in a session too often alike: its steps lean on each other"
    return {alike: by_number} | {f"in sessions {what}": p for what, p in coin_p_values(taken, steps.rate).items()}


def _without_coins(run: Recording, sampled: dict[str, DpGradient]) -> Iterator[Failure]:
    empty = replace(run, recorder=NoCoins(sampled))
    try:
        empty.run(run.data, empty.recorder)
    except (GraphveilError, ValueError, IndexError, ZeroDivisionError, RuntimeError) as error:
        yield Failure(CHECK, "", f"a run with empty batches stops: {error}")
        return
    events = [event for event in empty.recorder.events if event.what == "release" and event.name in sampled]
    for name, steps in sampled.items():
        own = [event for event in events if event.name == name]
        if len(own) != steps.steps:
            yield Failure(CHECK, name, f"with empty batches {len(own)} of {steps.steps} steps are taken")
        if any(np.any(event.clean) for event in own):
            yield Failure(CHECK, name, "the sum over an empty batch is not empty")
    yield from (Failure(CHECK, wrong.release, f"empty batches: {wrong.detail}") for wrong in noise_law(events))
