"""Where a service keeps things: SQLite in a folder, or PostgreSQL by URL, through one small door for reading and one for writing.

SQLite runs with a write-ahead log that is synchronised at every commit, so what was acknowledged is on the disk; a writer takes
the lock at its first statement, so that two of them wait for each other instead of failing.
Tests: ``tests/service/test_kill.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, select, update
from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError

from graphveil.errors import InputError
from graphveil.exchange.protocol import Protocol
from graphveil.service import schema
from graphveil.service.clock import now

WAIT_MS = 30_000
READING = "graphveil_reading"


class Store:
    """A database and the folder beside it, where runs are saved."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder.resolve() / 'graphveil.sqlite'}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise InputError(f"the folder {folder} cannot be used: {error.strerror}") from None
        self.engine = _engine(self.url)

    def upgrade(self) -> None:
        """Bring the tables to this version."""
        from graphveil.service.migrations import upgrade

        try:
            upgrade(self.engine)
        except SQLAlchemyError as error:
            raise InputError(f"the store cannot be opened: {type(error).__name__}") from None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One look at the store as it is now; nothing is locked."""
        with self.engine.connect() as connection:
            yield connection.execution_options(**{READING: True})

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction: all of it, durably, or nothing."""
        with self.engine.begin() as connection:
            yield connection

    def close(self) -> None:
        self.engine.dispose()

    def create_collection(self, protocol: Protocol, *, open_to_all: bool = False) -> int:
        """``open_to_all``: records need not be enrolled; whoever of the holders reports one first owns it."""
        body: dict[str, Any] = {
            "name": protocol.name,
            "protocol": json.dumps(protocol.to_json()),
            "state": "open",
            "created": now(),
        }
        body |= {"open": open_to_all}
        try:
            with self.writing() as connection:
                found: Any = connection.execute(insert(schema.collections).values(**body)).inserted_primary_key
                return int(found[0])
        except IntegrityError:
            raise InputError(f"there is a collection {protocol.name!r} already") from None

    def close_collection(self, number: int) -> None:
        with self.writing() as connection:
            connection.execute(
                update(schema.collections).where(schema.collections.c.id == number).values(state="closed")
            )

    def collections(self) -> list[tuple[int, Protocol, str]]:
        table = schema.collections.c
        with self.reading() as connection:
            rows = connection.execute(select(table.id, table.protocol, table.state).order_by(table.id)).all()
        return [(row.id, Protocol.from_json(json.loads(row.protocol)), row.state) for row in rows]

    def number_of(self, name: str) -> int:
        """The number of a collection by its name."""
        table = schema.collections.c
        with self.reading() as connection:
            found = connection.execute(select(table.id).where(table.name == name)).scalar_one_or_none()
        if found is None:
            raise InputError(f"there is no collection {name!r}")
        return int(found)


def _engine(url: str) -> Engine:
    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    try:
        engine = create_engine(url, pool_pre_ping=True)
    except (ArgumentError, ImportError, SQLAlchemyError) as error:
        raise InputError(
            f"--store is no URL of a database, such as sqlite:///service.db: {type(error).__name__}"
        ) from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _careful)
        event.listen(engine, "begin", _lock)
    elif engine.dialect.name != "postgresql":
        raise InputError(f"--store is a {engine.dialect.name} database: SQLite and PostgreSQL are known")
    return engine


def _careful(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where this program says so
    cursor = connection.cursor()
    for line in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={WAIT_MS}"):
        cursor.execute(f"PRAGMA {line}")
    cursor.close()


def _lock(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN" if connection.get_execution_options().get(READING) else "BEGIN IMMEDIATE")
