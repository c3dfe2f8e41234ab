"""Stored reports as a method reads them: the same interface as files, holder by holder and stage by stage.

Rows are read in pieces and become arrays piece by piece, so memory grows with the arrays and not with what JSON needs.
Tests: ``tests/service/test_service.py``; ``benchmarks/service.py`` loads a million.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from sqlalchemy import func, insert, select

from graphveil.errors import GraphveilError, InputError
from graphveil.exchange.broadcast import Broadcast
from graphveil.exchange.files import Files
from graphveil.exchange.protocol import Protocol
from graphveil.exchange.wire import Stage, stored_record
from graphveil.exchange.wire_reports import Columns, WireReports
from graphveil.service.clock import now
from graphveil.service.schema import broadcasts, collections, owners, reports
from graphveil.service.store import Store

PIECE = 20_000


def stored_files(store: Store, number: int, protocol: Protocol) -> Files:
    """All reports of a collection."""
    found = [
        part
        for name in protocol.stages
        for part in _of_stage(store, number, protocol.stage(name, read_broadcast(store, number, protocol, name)))
    ]
    if not found:
        raise InputError(f"nobody has reported to collection {protocol.name!r} yet")
    return Files(found)


def _of_stage(store: Store, number: int, stage: Stage) -> Iterator[WireReports]:
    parts: dict[tuple[str, bool], list[Columns]] = {}
    for holder, seeded, columns in _pieces(store, number, stage):
        parts.setdefault((holder, seeded), []).append(columns)
    for holder, seeded in sorted(parts):
        yield WireReports.of(Columns.joined(parts.pop((holder, seeded))), stage, holder, seeded)


def _pieces(store: Store, number: int, stage: Stage) -> Iterator[tuple[str, bool, Columns]]:
    """Reports by holder, in the order of their ids, some at a time."""
    table, last = reports.c, ""
    with store.reading() as connection:
        while True:
            asked = select(table.record, table.holder, table.seeded, table.body)
            asked = asked.where(table.collection == number, table.stage == stage.name, table.record > last)
            rows = connection.execute(asked.order_by(table.record).limit(PIECE)).all()
            if not rows:
                return
            bodies = json.loads(b"[" + b",".join(bytes(row.body) for row in rows) + b"]")
            groups: dict[tuple[str, bool], list[int]] = {}
            for at, row in enumerate(rows):
                groups.setdefault((row.holder, row.seeded), []).append(at)
            for (holder, seeded), places in groups.items():
                records = [stored_record(rows[at].record, bodies[at]) for at in places]
                yield holder, seeded, Columns.of(records, stage)
            last = rows[-1].record


def read_broadcast(store: Store, number: int, protocol: Protocol, name: str) -> Broadcast | None:
    """What the round of this stage hears; None while it has not been told."""
    content = broadcast_bytes(store, number, name)
    if content is None:
        return None
    return Broadcast.from_bytes(content, next(round for round in protocol.rounds if round.name == name))


def broadcast_bytes(store: Store, number: int, name: str) -> bytes | None:
    """The broadcast of a stage as an Arrow stream of ids and bins."""
    table = broadcasts.c
    with store.reading() as connection:
        row = connection.execute(select(table.body).where(table.collection == number, table.stage == name)).first()
    return None if row is None else bytes(row.body)


class MoreHaveCome(GraphveilError):
    """Reports arrived while a broadcast was made: it does not name everybody."""


def keep_broadcast(store: Store, number: int, name: str, told: Broadcast) -> None:
    """Tell everybody what a round hears, once: whoever answered would have heard something else otherwise."""
    with store.writing() as connection:
        connection.execute(select(collections.c.id).where(collections.c.id == number).with_for_update())
        there = select(broadcasts.c.digest).where(broadcasts.c.collection == number, broadcasts.c.stage == name)
        before = connection.execute(there).first()
        people = select(func.count()).where(owners.c.collection == number)
        if before is not None and before.digest != told.digest:
            raise InputError(f"round {name!r} has been asked with another broadcast: it stays as it is")
        if before is None and connection.execute(people).scalar_one() != len(told.ids):
            raise MoreHaveCome("reports have arrived while the broadcast was made")
        if before is None:
            body = {"collection": number, "stage": name, "digest": told.digest, "body": told.to_bytes()}
            connection.execute(insert(broadcasts).values(**body, created=now()))
