"""Laws of what a run has drawn: noise of the declared scale and law, on the public grid, independent.

Tests: ``tests/audit/test_noise_checks.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy.stats import kstest

from graphveil.audit.central.replay import Event
from graphveil.audit.result import Failure
from graphveil.privacy.noise import Added, Array

FALSE_ALARM = 6.0  # standard errors: what is correct fails with probability below 1e-8 per release


def _additions(events: list[Event]) -> Iterator[tuple[Event, Added]]:
    """The releases that added noise number by number, and that noise."""
    for event in events:
        if event.mechanism is not None and (added := event.mechanism.added) is not None:
            yield event, added


def noise_law(events: list[Event]) -> Iterator[Failure]:
    """Noise has the declared scale and law, lies on the grid and is never used twice."""
    seen: dict[bytes, str] = {}
    by_name: dict[tuple[str, Callable[[Any], Array]], list[Array]] = {}
    for event, added in _additions(events):
        residual = added.residual(event.clean, event.released)
        by_name.setdefault((event.name, added.distribution), []).append(residual)
        head = np.round(residual[:16], 6).tobytes()
        if head in seen:
            yield Failure("noise", event.name, f"the noise of {seen[head]} was used again")
        seen[head] = event.name
    off_grid = [event.name for event, added in _additions(events) if not added.on_grid(event.released)]
    if off_grid:
        betrayed = "released values are off the public grid: last digits may betray the input"
        yield Failure("noise", off_grid[0], betrayed)
    for (name, law), parts in by_name.items():
        sample = np.concatenate(parts)
        spread = math.sqrt(5.0 / len(sample))  # fourth moments of Gaussian and Laplace are at most 6
        if abs(float(np.mean(sample**2)) - 1) > FALSE_ALARM * spread:
            yield Failure("noise", name, f"its variance is {np.mean(sample**2):.3g} of the declared one")
        elif kstest(sample, law).pvalue < 1e-9:
            yield Failure("noise", name, "it does not have the declared law")
        if len(np.unique(np.round(np.abs(sample), 8))) < 0.99 * len(sample):
            yield Failure("noise", name, "numbers are not drawn one by one: values repeat, perhaps with another sign")


def correlations(events: list[Event]) -> Iterable[Failure]:
    """Noise is independent across releases, across steps and along every release: six standard errors per correlation."""
    before: list[tuple[str, Array]] = []
    for event, added in _additions(events):
        name, residual = event.name, added.residual(event.clean, event.released)
        if len(residual) < 32:
            continue
        pairs = [("the numbers before it", residual[:-1], residual[1:])]
        for other, past in before[-3:]:
            size = min(len(past), len(residual))
            pairs.append((f"the noise of {other}", past[:size], residual[:size]))
        for what, first, second in pairs:
            scale = math.sqrt(float(first @ first) * float(second @ second))
            correlation = float(first @ second) / scale if scale > 0 else 0.0
            if abs(correlation) > FALSE_ALARM / math.sqrt(len(first)):
                yield Failure("noise", name, f"it depends on {what}: correlation {correlation:.3g}")
        before.append((name, residual))
