"""Reports are taken: each is checked on its own, and either stored once or refused with its reason.

``(collection, stage, record)`` is the key of a report. The same report again is acknowledged and not counted; another one is
refused, because its owner would pay twice; so is one of a record that belongs to another holder, of a record that was not
enrolled where the collection is not open, and in a later stage of one that no broadcast has named. Who says of a report that a
seed made it is believed, also afterwards: the mark stays, and models that learned without knowing are withdrawn. Requests that
arrive together are written in one transaction by one thread, and are acknowledged when it is on the disk.
Tests: ``tests/service/test_refusals.py``, ``tests/service/test_kill.py``.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    Connection,
    Integer,
    LargeBinary,
    String,
    Table,
    any_,
    cast,
    exists,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from graphveil.exchange.wire import FIRST, WireRecord
from graphveil.service.clock import now
from graphveil.service.enrolment import AT_ONCE, holders_of
from graphveil.service.jobs import withdraw_models
from graphveil.service.schema import arrivals, broadcasts, collections, enrolled, owners, refusals, reports
from graphveil.service.store import Store

ANOTHER_HOLDER = "a record of another holder"
NOT_YOURS = "a record that this token is not for"
ANOTHER_VALUE = "another report of this record was taken before: a second one would spend its budget again"
OVER = "this stage is over: nothing more is taken"
NOT_ENROLLED = "a record that is not enrolled for this holder"  # whether for another one is nobody's business
NOT_NAMED = "a record that did not take part in the first stage"
TOGETHER = 64  # requests in one transaction
AGAIN = 5  # tries, if another process stored the same record at the same moment

STATUS = {ANOTHER_HOLDER: 403, NOT_YOURS: 403, NOT_ENROLLED: 403, ANOTHER_VALUE: 409, OVER: 409, NOT_NAMED: 409}


@dataclass(frozen=True)
class Batch:
    """The good reports of one request, and how often others were refused for what."""

    collection: int
    stage: str
    holder: str
    seeded: bool
    records: Sequence[WireRecord]
    refused: dict[str, int] = field(default_factory=dict)
    later: tuple[str, ...] = ()  # the stages that come after this one: when one of them has begun, this one is over


@dataclass(frozen=True)
class Taken:
    """How many reports of a batch were new and how many were there already; the others by number, with the reason."""

    stored: int
    repeated: int
    refused: dict[int, str]


class Writer:
    """The one thread that writes reports."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._waiting: queue.Queue[tuple[Batch, Future[Taken]] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def put(self, batch: Batch) -> Future[Taken]:
        """Done when the batch is durable."""
        future: Future[Taken] = Future()
        future.set_running_or_notify_cancel()  # a caller who goes away cannot take back what may be on its way to the disk
        self._waiting.put((batch, future))
        return future

    def stop(self) -> None:
        """What is waiting is still written."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            found = [self._waiting.get()]
            while len(found) < TOGETHER and not self._waiting.empty():
                found.append(self._waiting.get())
            last = None in found
            together = [one for one in found if one is not None]
            try:
                taken = write_batches(self.store, [batch for batch, _ in together])
            except Exception as error:  # whatever it is, those who wait have to hear of it
                for _, future in together:
                    future.set_exception(error)
            else:
                for (_, future), one in zip(together, taken, strict=True):
                    future.set_result(one)


def write_batches(store: Store, batches: Sequence[Batch]) -> list[Taken]:
    """Write them in one transaction; a record that another process has just stored is looked at again."""
    for attempt in range(AGAIN):
        try:
            with store.writing() as connection:
                return _written(connection, batches)
        except IntegrityError:
            if attempt == AGAIN - 1:
                raise
    raise AssertionError("unreachable")


def _written(connection: Connection, batches: Sequence[Batch]) -> list[Taken]:
    """Batches of the same stage are looked up and written together."""
    found: dict[int, Taken] = {}
    stages: dict[tuple[int, str], list[int]] = {}
    for number, batch in enumerate(batches):
        stages.setdefault((batch.collection, batch.stage), []).append(number)
    for places in stages.values():
        together = [batches[place] for place in places]
        found |= dict(zip(places, _of_one_stage(connection, together), strict=True))
    return [found[number] for number in range(len(batches))]


def _of_one_stage(connection: Connection, batches: Sequence[Batch]) -> list[Taken]:
    first = batches[0]
    names = list({record.id for batch in batches for record in batch.records})
    over, open_to_all = _doors(connection, first)
    owned, before = _known(connection, first, names)
    unheard = [name for name in names if name not in owned]
    promised = dict(holders_of(connection, enrolled, first.collection, unheard))
    told: dict[str, Any] = {"collection": first.collection}
    rows: dict[str, dict[str, Any]] = {}
    fresh: list[dict[str, Any]] = []
    marked: list[str] = []
    counted: dict[str, int] = {}
    found = []
    for batch in batches:
        stored = repeated = 0
        refused: dict[int, str] = {}
        for number, record in enumerate(batch.records):
            name, body = record.id, record.body()
            there, seeded = before.get(name, (None, False))
            if owned.get(name, promised.get(name, batch.holder)) != batch.holder:
                refused[number] = ANOTHER_HOLDER if open_to_all else NOT_ENROLLED
            elif there == body:
                repeated += 1
                if batch.seeded and not seeded:
                    before[name] = (body, True)
                    marked.append(name)
            elif there is not None:
                refused[number] = ANOTHER_VALUE
            elif over:
                refused[number] = OVER
            elif name not in owned and first.stage != FIRST:
                refused[number] = NOT_NAMED
            elif name not in owned and name not in promised and not open_to_all:
                refused[number] = NOT_ENROLLED
            else:
                if name not in owned:
                    owned[name] = batch.holder
                    fresh.append(told | {"record": name, "holder": batch.holder})
                before[name] = (body, batch.seeded)
                more = {"stage": batch.stage, "holder": batch.holder, "seeded": batch.seeded}
                rows[name] = told | more | {"record": name, "body": body}
                stored += 1
        found.append(Taken(stored, repeated, refused))
        for reason, times in [*batch.refused.items(), *((reason, 1) for reason in refused.values())]:
            counted[reason] = counted.get(reason, 0) + times
    if fresh:
        insert_rows(connection, owners, fresh)
    if rows:
        insert_rows(connection, reports, list(rows.values()))
        count(connection, arrivals, told | {"stage": first.stage, "minute": int(now() // 60)}, len(rows))
    if marked:
        _mark(connection, first, marked)
    for reason, times in sorted(counted.items()):
        count(connection, refusals, told | {"stage": first.stage, "reason": reason[:200]}, times)
    return found


def _doors(connection: Connection, batch: Batch) -> tuple[bool, bool]:
    """Whether nothing new is taken, and whether records need not be enrolled.

    Whoever ends the stage waits for this transaction, and this one for that.
    """
    begun = exists().where(broadcasts.c.collection == batch.collection, broadcasts.c.stage.in_(batch.later))
    table = collections.c
    asked = select(table.state, table.open, begun.label("begun")).where(table.id == batch.collection)
    row = connection.execute(asked.with_for_update(read=True, of=collections)).one()
    return bool(row.state != "open" or row.begun), bool(row.open)


def _known(
    connection: Connection, batch: Batch, names: Sequence[str]
) -> tuple[dict[str, str], dict[str, tuple[bytes, bool]]]:
    """Whose these records are, and what they reported in this stage, with or without a seed, where that is known."""
    owned: dict[str, str] = {}
    before: dict[str, tuple[bytes, bool]] = {}
    one, two = owners.c, reports.c
    same = (two.collection == one.collection) & (two.record == one.record) & (two.stage == batch.stage)
    asked = select(one.record, one.holder, two.body, two.seeded).select_from(owners.outerjoin(reports, same))
    for start in range(0, len(names), AT_ONCE):
        some = list(names[start : start + AT_ONCE])
        chosen: Any = one.record.in_(some)
        if connection.dialect.name == "postgresql":
            chosen = one.record == any_(cast(some, ARRAY(String)))  # one parameter, one plan
        for row in connection.execute(asked.where(one.collection == batch.collection, chosen)):
            owned[row.record] = row.holder
            if row.body is not None:
                before[row.record] = (bytes(row.body), bool(row.seeded))
    return owned, before


def _mark(connection: Connection, batch: Batch, names: Sequence[str]) -> None:
    """A seed made these reports after all: no certificate may hold that was made without knowing."""
    table = reports.c
    there = update(reports).where(table.collection == batch.collection, table.stage == batch.stage)
    for start in range(0, len(names), AT_ONCE):
        connection.execute(there.where(table.record.in_(list(names[start : start + AT_ONCE]))).values(seeded=True))
    withdraw_models(connection, batch.collection)


def insert_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Many rows in one statement: PostgreSQL takes a list for each column, which is one way there and back."""
    if connection.dialect.name != "postgresql":
        connection.execute(insert(table), rows)
        return
    names = list(rows[0])
    kinds = {String: "text[]", Integer: "integer[]", Boolean: "boolean[]", LargeBinary: "bytea[]"}
    lists = ", ".join(f"%s::{kinds[type(table.c[name].type)]}" for name in names)
    words = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({lists})"
    connection.exec_driver_sql(words, tuple([row[name] for row in rows] for name in names))


def count(connection: Connection, table: Any, key: dict[str, Any], more: int) -> None:
    """Add to a counter."""
    where = [table.c[name] == value for name, value in key.items()]
    if not connection.execute(update(table).where(*where).values(reports=table.c.reports + more)).rowcount:
        connection.execute(insert(table).values(**key, reports=more))
