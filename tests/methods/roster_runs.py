"""Runs of Roster for tests: few steps, and decisions taken by hand instead of by the released test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from graphveil.methods.roster import Roster
from graphveil.methods.roster.weights import Survey, Weights
from tests.methods.roster_histories import mixed

MODES = {  # features, lists, own slot, mass
    "features": (1.0, 0.0, 0.0, 0.3),
    "lists": (0.0, 1.0, 0.0, 2.0),
    "agreement": (1.0, 1.0, 0.7, 0.3),
    "own slots": (0.0, 1.0, 0.7, 4.0),
}


def roster(**options) -> Roster:  # type: ignore[no-untyped-def]
    return Roster(**{"steps": 4, **options})


@contextmanager
def decided(mode: str) -> Iterator[None]:
    """Every test decides for this mode: decisions read released numbers only, so any of them must be safe."""

    def decide(self: Survey, test: object, test_noise: float, *, cover: bool, clip: float) -> Weights:
        return mixed(*MODES[mode], len(self.prior), cover)

    with patch.object(Survey, "decide", decide):
        yield
