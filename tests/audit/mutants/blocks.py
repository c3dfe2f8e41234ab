"""Bugs of work that is cut into blocks: what is repeated, and what every block does for itself."""

from __future__ import annotations

import numpy as np

from graphveil.graph.blocks import spans
from graphveil.learn import engine
from graphveil.privacy.noise import Noise
from graphveil.privacy.words import Stream
from tests.audit.mutants.planting import planted


@planted(engine, "total")
def a_repeated_part_counts_twice(original):
    """A worker dies when its answer is on the way; the task is repeated, and both answers are added."""

    def total(private, query):
        parts = list(engine.each(private, query))
        return original(private, query) + (parts[1] if len(parts) > 1 else 0)

    return total


@planted(Noise, "gaussian")
def blocks_share_noise(original):
    """Every block of records has a key of its own for its rows, and all keys are drawn from the same counter."""

    def gaussian(self, sigma, shape):
        rows, *columns = np.atleast_1d(np.asarray(shape, dtype=int)).tolist() or [1]
        key = int(self.integers(1 << 62, 1)[0])
        parts = [original(Noise(key), sigma, (slots.stop - slots.start, *columns)) for slots in spans(rows)]
        return np.concatenate(parts).reshape(shape)

    return gaussian


@planted(Stream, "start")
def chunks_share_counters(original):
    """The key of a release is fresh, but every chunk of its noise starts at the first counter."""

    def start(self, part):
        original(self, 0)

    return start
