"""A Ray cluster: an existing one by its address, or one that is started on this machine and stopped afterwards.

Workers import graphveil and load graphs themselves, once each: on a cluster the package and the data folder
(``$GRAPHVEIL_DATA``) must be there on every machine. Ray never repeats a task by itself: a run that is lost is recorded as
failed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from graphveil.errors import InputError
from graphveil.experiments.engines.base import limit_threads, thread_variables
from graphveil.experiments.execute import execute, failed
from graphveil.experiments.run import Run

MISSING = "engine ray needs Ray: pip install 'graphveil[ray]', or use --engine process"
SECONDS_TO_CONNECT = 5.0
PASSED_ON = ("GRAPHVEIL_DATA", "PYTHONPATH")  # where workers find data and package


@dataclass(frozen=True)
class Ray:
    """``address`` of a cluster, or None for a local one with ``workers`` processors."""

    workers: int
    address: str | None = None
    threads: int = 1
    name: str = "ray"

    def run(self, runs: Iterator[Run]) -> Iterator[dict[str, Any]]:
        try:
            import ray
        except ImportError:
            raise InputError(MISSING) from None
        if self.address is not None:
            _check_reachable(self.address)
        variables = thread_variables(self.threads) | {n: os.environ[n] for n in PASSED_ON if n in os.environ}
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray 2.60 warns about otherwise
        here: dict[str, Any] = {"num_cpus": self.workers, "include_dashboard": False} if self.address is None else {}
        try:
            ray.init(address=self.address, runtime_env={"env_vars": variables}, log_to_driver=False, **here)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError(f"no Ray cluster at {self.address or 'this machine'}: {error}") from None
        try:
            yield from self._drive(ray, runs)
        finally:
            ray.shutdown()

    def _drive(self, ray: Any, runs: Iterator[Run]) -> Iterator[dict[str, Any]]:
        remote = ray.remote(num_cpus=self.threads, max_retries=0)(_work)
        room = max(1, int(ray.cluster_resources().get("CPU", self.workers)) // self.threads)
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


def _check_reachable(address: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would go on trying for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:  # a name that Ray looks up, such as auto
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT).close()
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(f"no Ray cluster at {address}: {error}; --address takes host:port, or auto") from None


def _work(body: dict[str, Any], threads: int) -> dict[str, Any]:
    limit_threads(threads)
    return execute(body)
