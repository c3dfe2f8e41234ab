"""Training jobs: one at a time for each collection, in a process of its own, with a lease that a dead one loses.

A job that was running when the service was killed goes on in its process, or, if that is gone, starts again from the stored
reports; after ``MOST_ATTEMPTS`` it is marked failed. Tests: ``tests/service/test_kill.py``.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, insert, select, update

from graphveil.errors import InputError
from graphveil.service.clock import now
from graphveil.service.schema import collections, jobs
from graphveil.service.store import Store

MOST_ATTEMPTS = 3
STALE = 20.0  # seconds without a sign of life
BEAT = 2.0
LOOK_EVERY = 0.25


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # for a round that nobody has answered yet
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"  # its certificate turned out to be false


UNFINISHED = (State.QUEUED, State.RUNNING)
SEEDED_AFTER_ALL = "a report it learned from was made with a seed, as was said afterwards: train again"


class Busy(InputError):
    """The collection has a job already."""


def create_job(store: Store, number: int, seed: int | None) -> int:
    """A job in the queue; :class:`Busy` if the collection has one that is not finished."""
    with store.writing() as connection:
        connection.execute(select(collections.c.id).where(collections.c.id == number).with_for_update())
        there = select(jobs.c.id).where(jobs.c.collection == number, jobs.c.state.in_(UNFINISHED))
        busy = connection.execute(there).first()
        if busy is not None:
            raise Busy(f"job {busy.id} of this collection is not finished: wait for it, or cancel it")
        body = {"collection": number, "seed": seed, "state": State.QUEUED, "created": now(), "done": 0, "total": 0}
        found: Any = connection.execute(insert(jobs).values(**body, attempts=0)).inserted_primary_key
        return int(found[0])


def read_job(store: Store, number: int) -> Any | None:
    with store.reading() as connection:
        return connection.execute(select(jobs).where(jobs.c.id == number)).first()


def jobs_of(store: Store, number: int) -> list[Any]:
    """The newest first."""
    with store.reading() as connection:
        asked = select(jobs).where(jobs.c.collection == number).order_by(jobs.c.id.desc()).limit(50)
        return list(connection.execute(asked))


def last_done(store: Store, number: int) -> Any | None:
    """The newest job of a collection that has a model."""
    asked = select(jobs).where(jobs.c.collection == number, jobs.c.state == State.DONE)
    with store.reading() as connection:
        return connection.execute(asked.order_by(jobs.c.id.desc()).limit(1)).first()


def cancel_job(store: Store, number: int) -> bool:
    """Whether there was something to cancel; its process ends at its next sign of life."""
    there = update(jobs).where(jobs.c.id == number, jobs.c.state.in_(UNFINISHED))
    with store.writing() as connection:
        return bool(connection.execute(there.values(state=State.CANCELLED, finished=now())).rowcount)


def withdraw_models(connection: Connection, number: int) -> None:
    """Nothing that a collection has trained so far is shown any more; what runs now starts again from the stored reports."""
    mine = update(jobs).where(jobs.c.collection == number)
    told = {"state": State.WITHDRAWN, "message": SEEDED_AFTER_ALL}
    connection.execute(mine.where(jobs.c.state == State.DONE).values(**told))
    again = {"state": State.QUEUED, "worker": None, "attempts": jobs.c.attempts - 1}
    connection.execute(mine.where(jobs.c.state == State.RUNNING).values(**again))


class Runner:
    """Starts the processes of jobs, one at a time, and takes up what a dead one left."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._child: tuple[int, subprocess.Popen[bytes]] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """The job that runs is put back into the queue; it starts again with the service."""
        self._stopping.set()
        self._thread.join()
        if self._child is None:
            return
        number, process = self._child
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with self.store.writing() as connection:
            mine = update(jobs).where(jobs.c.id == number, jobs.c.state == State.RUNNING)
            connection.execute(mine.values(state=State.QUEUED, worker=None, attempts=jobs.c.attempts - 1))

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_EVERY):
            try:
                self.look()
            except Exception as error:  # a store that is away for a moment must not end this thread
                print(f"graphveil: jobs: {type(error).__name__}", file=sys.stderr)

    def look(self) -> None:
        """Collect what has ended, put back what is stale, start what is next."""
        if self._child is not None:
            number, process = self._child
            if process.poll() is None:
                row = read_job(self.store, number)
                if row is not None and row.state == State.CANCELLED:
                    process.kill()
                    process.wait()
                else:
                    return
            self._child = None
            self._put_back(jobs.c.id == number)
        with self.store.reading() as connection:
            if connection.execute(select(jobs.c.id).where(jobs.c.state.in_(UNFINISHED)).limit(1)).first() is None:
                return
        self._put_back(jobs.c.heartbeat < now() - STALE)
        with self.store.writing() as connection:
            row = connection.execute(
                select(jobs.c.id).where(jobs.c.state == State.QUEUED).order_by(jobs.c.id).limit(1).with_for_update()
            ).first()
            if row is None:
                return
            worker = secrets.token_hex(8)
            told = {"state": State.RUNNING, "worker": worker, "heartbeat": now(), "attempts": jobs.c.attempts + 1}
            connection.execute(update(jobs).where(jobs.c.id == row.id).values(**told))
        words = [sys.executable, "-m", "graphveil.service.worker", str(row.id), worker]
        environment = os.environ | {"GRAPHVEIL_STORE": self.store.url, "GRAPHVEIL_FOLDER": str(self.store.folder)}
        process = subprocess.Popen(words, env=environment, start_new_session=True, stdin=subprocess.DEVNULL)
        self._child = (row.id, process)

    def _put_back(self, which: Any) -> None:
        """Jobs that were running and are no longer: again, or failed if that has happened too often."""
        running = update(jobs).where(which, jobs.c.state == State.RUNNING)
        often = jobs.c.attempts >= MOST_ATTEMPTS
        with self.store.writing() as connection:
            told = {"state": State.FAILED, "message": f"its process died {MOST_ATTEMPTS} times", "finished": now()}
            connection.execute(running.where(often).values(**told))
            connection.execute(running.where(~often).values(state=State.QUEUED, worker=None))
