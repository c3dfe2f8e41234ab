"""A Ray cluster: an existing one by its address, or one that is started on this machine and stopped afterwards.

Workers import graphveil and load graphs themselves, once each: on a cluster the package and the data folder
(``$GRAPHVEIL_DATA``) must be there on every machine. Ray never repeats a task by itself: a run that is lost is recorded as
failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphveil.experiments.execute import execute, failed
from graphveil.experiments.run import Run
from graphveil.learn.engine.cluster import joined, processors
from graphveil.learn.engine.threads import limit_threads


@dataclass(frozen=True)
class Ray:
    """``address`` of a cluster, or None for a local one with ``workers`` processors."""

    workers: int
    address: str | None = None
    threads: int = 1
    name: str = "ray"

    def run(self, runs: Iterator[Run]) -> Iterator[dict[str, Any]]:
        with joined(self.workers, self.address, self.threads) as ray:
            yield from self._drive(ray, runs)

    def _drive(self, ray: Any, runs: Iterator[Run]) -> Iterator[dict[str, Any]]:
        remote = ray.remote(num_cpus=self.threads, max_retries=0)(_work)
        room = max(1, processors(ray) // self.threads)
        flying: dict[Any, Run] = {}
        while True:
            while len(flying) < room and (taken := next(runs, None)) is not None:
                flying[remote.remote(taken.to_json(), self.threads)] = taken
            if not flying:
                return
            for done in ray.wait(list(flying))[0]:
                run = flying.pop(done)
                try:
                    yield ray.get(done)
                except ray.exceptions.RayError as error:
                    yield failed(run, f"the Ray worker was lost: {' '.join(str(error).split())[:500]}")


def _work(body: dict[str, Any], threads: int) -> dict[str, Any]:
    limit_threads(threads)
    return execute(body)
