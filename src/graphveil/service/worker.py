"""The process of one training job: reads stored reports, learns, saves the run, and says how far it is.

It writes to its job only while the lease is its own and the job was not cancelled; it ends by itself otherwise.
Tests: ``tests/service/test_kill.py``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from sqlalchemy import select, update

from graphveil.errors import GraphveilError
from graphveil.exchange.files import RoundNotAnswered
from graphveil.exchange.protocol import Protocol
from graphveil.service.clock import now
from graphveil.service.jobs import BEAT, State
from graphveil.service.quality import figures_of
from graphveil.service.schema import collections, jobs
from graphveil.service.store import Store
from graphveil.service.stored import MoreHaveCome, keep_broadcast, stored_files

LOST = 75  # exit code: the lease is somebody else's, or the job was cancelled


class Lease:
    """The right to work on a job; a thread renews it."""

    def __init__(self, store: Store, number: int, worker: str) -> None:
        self.store, self.number, self.worker = store, number, worker
        self._told = 0.0
        self._ended = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def write(self, **values: Any) -> None:
        mine = update(jobs).where(jobs.c.id == self.number, jobs.c.worker == self.worker)
        with self.store.writing() as connection:
            told = mine.where(jobs.c.state == State.RUNNING).values(heartbeat=now(), **values)
            if not connection.execute(told).rowcount:
                os._exit(LOST)

    def end(self, state: State, **values: Any) -> None:
        self._ended.set()
        self.write(state=state, finished=now(), **values)

    def tell(self, step: str, done: int, total: int) -> None:
        """Progress, at most twice a second."""
        if now() - self._told > 0.5 or done == total:
            self._told = now()
            self.write(step=step, done=done, total=total)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            self.write()


def work(store: Store, number: int, worker: str) -> None:
    """Do the job, whatever becomes of it."""
    lease = Lease(store, number, worker)
    try:
        with store.reading() as connection:
            job = connection.execute(select(jobs).where(jobs.c.id == number)).one()
            asked = select(collections.c.protocol).where(collections.c.id == job.collection)
            protocol = Protocol.from_json(json.loads(connection.execute(asked).scalar_one()))
        while True:
            try:
                _train(lease, job, protocol)
                return
            except MoreHaveCome:
                continue
    except GraphveilError as error:
        lease.end(State.FAILED, message=" ".join(str(error).split()))
    except Exception as error:
        traceback.print_exc()
        lease.end(State.FAILED, message=f"{type(error).__name__}: see the log of the service")


def _train(lease: Lease, job: Any, protocol: Protocol) -> None:
    from graphveil.methods.registry import build

    store = lease.store
    lease.tell("reading reports", 0, 1)
    files = stored_files(store, job.collection, protocol)
    method: Any = build(protocol.method, dict(protocol.options))
    facts = {"directed": protocol.facts.directed, "mean_degree": protocol.facts.mean_degree}
    try:
        model = method.fit_reports(files, protocol.promise, seed=job.seed, progress=lease.tell, **facts)
    except RoundNotAnswered as stop:
        if stop.broadcast is None:
            raise
        keep_broadcast(store, job.collection, stop.round.name, stop.broadcast)
        lease.end(State.WAITING, message=f"round {stop.round.name!r} is now asked: holders answer it, then train again")
        return
    run = Path("runs") / f"{protocol.name}-{job.id}"
    folder = store.folder / run
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier attempt left
    model.save(folder)
    figures = figures_of(model, files)
    told = {"accepted": files.accepted, "refused": len(files.refused), **figures}
    certificate = json.dumps(model.certificate.to_json())
    lease.end(State.DONE, run=str(run), certificate=certificate, figures=json.dumps(told), message=None)


def main() -> None:
    store = Store(Path(os.environ["GRAPHVEIL_FOLDER"]), os.environ["GRAPHVEIL_STORE"])
    work(store, int(sys.argv[1]), sys.argv[2])


if __name__ == "__main__":
    main()
