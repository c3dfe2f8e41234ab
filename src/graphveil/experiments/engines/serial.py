"""One run after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphveil.experiments.execute import execute
from graphveil.experiments.run import Run
from graphveil.learn.engine.threads import limit_threads


@dataclass(frozen=True)
class Serial:
    """No workers."""

    threads: int = 1
    name: str = "serial"

    def run(self, runs: Iterator[Run]) -> Iterator[dict[str, Any]]:
        limit_threads(self.threads)
        for run in runs:
            yield execute(run.to_json())
