"""Several processes of this machine: spawned, one run at a time each, graphs loaded once per worker.

Every worker has a pipe of its own, so that a worker that dies (out of memory, say) costs the run it had and no other. Workers end
with the driver, however it ends.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from typing import Any

from graphveil.experiments.execute import execute, failed
from graphveil.experiments.run import Run
from graphveil.learn.engine.threads import limit_threads, thread_variables

GRACE = 5.0  # seconds in which an idle worker may end by itself


@dataclass(frozen=True)
class Processes:
    """``workers`` processes with ``threads`` threads each."""

    workers: int
    threads: int = 1
    name: str = "process"

    def run(self, runs: Iterator[Run]) -> Iterator[dict[str, Any]]:
        team = [_Worker(self.threads)]
        try:
            while True:
                if all(worker.run is not None for worker in team) and len(team) < self.workers:
                    team.append(_Worker(self.threads))
                for worker in team:
                    if worker.run is None and (taken := next(runs, None)) is not None:
                        worker.start(taken)
                busy = [worker for worker in team if worker.run is not None]
                if len(busy) == len(team) < self.workers:
                    continue
                if not busy:
                    return
                ready = connection.wait([end for worker in busy for end in (worker.pipe, worker.process.sentinel)])
                for worker in busy:
                    if worker.pipe in ready or worker.process.sentinel in ready:
                        yield worker.outcome()
                team = [worker if worker.process.is_alive() else _Worker(self.threads) for worker in team]
        finally:
            for worker in team:
                worker.stop()


class _Worker:
    """A process that answers one run at a time."""

    def __init__(self, threads: int) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, threads), daemon=True)
        with _environment(thread_variables(threads)):  # read by numerical libraries when they are imported
            self.process.start()
        theirs.close()
        self.run: Run | None = None

    def start(self, run: Run) -> None:
        self.run = run
        self.pipe.send(run.to_json())

    def outcome(self) -> dict[str, Any]:
        """The row of the run it had, or that the worker died with it."""
        run, self.run = self.run, None
        assert run is not None
        try:
            row: dict[str, Any] = self.pipe.recv()
            return row
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            return failed(run, f"the worker process died with exit code {code} (killed, perhaps for want of memory)")

    def stop(self) -> None:
        if self.run is None and self.process.is_alive():
            try:
                self.pipe.send(None)
                self.process.join(GRACE)
            except OSError:
                pass
        self.process.kill()
        self.process.join()


def _work(pipe: connection.Connection, threads: int) -> None:
    threading.Thread(target=_end_with_driver, daemon=True).start()
    limit_threads(threads)
    while (body := pipe.recv()) is not None:
        pipe.send(execute(body))


def _end_with_driver() -> None:
    """A driver that was killed cannot stop its workers: they watch it."""
    driver = parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    kept = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
