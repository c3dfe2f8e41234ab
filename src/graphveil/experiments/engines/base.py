"""What an engine is: runs in, rows out, in whatever order they finish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from graphveil.experiments.run import Run


class Engine(Protocol):
    """Takes a run from the iterator only when it can start it, so that what was taken was started."""

    @property
    def name(self) -> str: ...

    def run(self, runs: Iterator[Run]) -> Iterator[dict[str, Any]]: ...
