"""One store for all experiments: a SQLite file in WAL mode, written by the driver alone.

A run is asked for by experiments, attempted, and finished once: its row is kept under its content hash, with a digest, and the
first outcome stays. An attempt is written before its run starts, so that what a killed sweep may have drawn noise for is known.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from graphveil.errors import InputError
from graphveil.experiments.run import Run

SCHEMA = 1
TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  experiment TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL, label TEXT NOT NULL, spec TEXT NOT NULL,
  PRIMARY KEY (experiment, id));
CREATE TABLE IF NOT EXISTS attempts (
  id TEXT NOT NULL, attempt INTEGER NOT NULL, started TEXT NOT NULL, PRIMARY KEY (id, attempt));
CREATE TABLE IF NOT EXISTS results (id TEXT PRIMARY KEY, row TEXT NOT NULL, digest TEXT NOT NULL);
"""
Row = dict[str, Any]


class Store:
    """The finished runs of any number of experiments; ``with Store(path) as store``."""

    def __init__(self, path: str | Path, *, must_exist: bool = False) -> None:
        self.path = Path(path)
        if must_exist and not self.path.is_file():
            raise InputError(f"{path} does not exist: 'graphveil sweep SPEC --out {path}' makes it")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA):
                raise InputError(f"{path} was written by another version of graphveil (schema {version})")
            self._db.executescript(f"{TABLES} PRAGMA user_version={SCHEMA};")
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{path} cannot be used as a store of results: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextmanager
    def driving(self) -> Iterator[None]:
        """Refuse a second driver of this store while one is at work; the lock ends with the process, however it ends."""
        with self.path.with_name(self.path.name + ".lock").open("a") as handle:
            try:
                import fcntl

                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:  # pragma: no cover - no advisory locks on this system
                pass
            except OSError:
                raise InputError(
                    f"another sweep is writing to {self.path}: wait for it, or choose another --out"
                ) from None
            yield

    def ask(self, experiment: str, runs: Sequence[Run]) -> None:
        """Note which runs belong to an experiment, beside those it had; labels are those of the last time it was asked for."""
        values = [(experiment, run.id, n, run.label, json.dumps(run.to_json())) for n, run in enumerate(runs)]
        again = "ON CONFLICT (experiment, id) DO UPDATE SET position = excluded.position, label = excluded.label"
        with self._transaction():
            self._db.executemany(f"INSERT INTO runs VALUES (?, ?, ?, ?, ?) {again}", values)

    def begin(self, run: Run) -> int:
        """Write down that a run is about to start; returns the number of this attempt."""
        with self._transaction():
            attempt = int(self._db.execute("SELECT count(*) FROM attempts WHERE id = ?", (run.id,)).fetchone()[0]) + 1
            self._db.execute("INSERT INTO attempts VALUES (?, ?, ?)", (run.id, attempt, run.moment()))
        return attempt

    def finish(self, row: Row) -> bool:
        """Keep the outcome of a run; a second outcome of the same run is not kept, and False is returned."""
        text = json.dumps(row, sort_keys=True, allow_nan=False)
        with self._transaction():
            values = (row["id"], text, _digest(text))
            done = self._db.execute("INSERT INTO results VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING", values)
            return done.rowcount == 1

    def forget_failures(self, ids: Iterable[str]) -> None:
        """Let failed runs be tried again."""
        with self._transaction():
            for name in ids:
                kept = self._db.execute("SELECT row FROM results WHERE id = ?", (name,)).fetchone()
                if kept is not None and json.loads(kept[0])["status"] == "failed":
                    self._db.execute("DELETE FROM results WHERE id = ?", (name,))

    def finished(self) -> dict[str, str]:
        """Status by run."""
        found = self._db.execute("SELECT id, json_extract(row, '$.status') FROM results")
        return dict(found.fetchall())

    def experiments(self) -> list[str]:
        return [name for (name,) in self._db.execute("SELECT DISTINCT experiment FROM runs ORDER BY experiment")]

    def rows(self, experiment: str | None = None) -> list[Row]:
        """The rows of an experiment, or of all, in the order in which they were asked for."""
        asked = (
            "SELECT runs.experiment, runs.label, results.row FROM runs JOIN results USING (id) "
            "WHERE ?1 IS NULL OR runs.experiment = ?1 ORDER BY runs.experiment, runs.position"
        )
        return [
            {"experiment": name, **json.loads(text), "label": label}
            for name, label, text in self._db.execute(asked, (experiment,))
        ]

    def missing(self, experiment: str) -> int:
        """How many runs of an experiment have no outcome yet."""
        asked = "SELECT count(*) FROM runs WHERE experiment = ? AND id NOT IN (SELECT id FROM results)"
        return int(self._db.execute(asked, (experiment,)).fetchone()[0])

    def check(self) -> list[str]:
        """What is wrong with the store, in words: nothing if it is intact."""
        found = [line for (line,) in self._db.execute("PRAGMA integrity_check") if line != "ok"]
        known = {name for (name,) in self._db.execute("SELECT id FROM runs")}
        tried = {name for (name,) in self._db.execute("SELECT id FROM attempts")}
        for name, text, digest in self._db.execute("SELECT id, row, digest FROM results"):
            if _digest(text) != digest:
                found.append(f"run {name}: its row was changed after it was written")
            elif json.loads(text)["id"] != name:
                found.append(f"run {name}: its row is that of another run")
            if name not in tried:
                found.append(f"run {name}: it has an outcome but was never started")
        for name, spec in self._db.execute("SELECT id, spec FROM runs"):
            if Run.from_json(json.loads(spec)).id != name:
                found.append(f"run {name}: its specification has another hash")
        return found + [f"run {name}: no experiment asked for it" for name in sorted(tried - known)]

    def attempts(self) -> dict[str, int]:
        """How often each run was started; more often than once only if a sweep was stopped, or a failure tried again."""
        return dict(self._db.execute("SELECT id, count(*) FROM attempts GROUP BY id").fetchall())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
