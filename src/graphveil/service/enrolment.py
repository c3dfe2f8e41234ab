"""Whose a record is, said by the operator before anybody reports it: nobody takes another's place by being first.

A record is enrolled for one holder. In a collection that is not open to all, nothing else is taken; in one that is, what was
enrolled is still for its holder alone. Tests: ``tests/service/test_scope.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlalchemy import Connection, Table, select

from graphveil.errors import InputError
from graphveil.exchange.wire import Defect, identifier
from graphveil.service.schema import collections, enrolled, owners
from graphveil.service.store import Store

AT_ONCE = 400  # rows in one question
MOST = 1_000_000  # ids in one list


def enrol(store: Store, number: int, holder: str, records: Sequence[str]) -> int:
    """Enrol records for a holder; how many are new. An error, and nothing is enrolled, if one is another's."""
    if len(records) > MOST:
        raise InputError(f"more than {MOST} ids in one list: enrol them in parts")
    try:
        identifier(holder)
        wanted = sorted({identifier(record) for record in records})
    except Defect as defect:
        raise InputError(str(defect)) from None
    with store.writing() as connection:
        connection.execute(select(collections.c.id).where(collections.c.id == number).with_for_update())
        known = dict(holders_of(connection, enrolled, number, wanted))
        others = known | dict(holders_of(connection, owners, number, wanted))
        if any(other != holder for other in others.values()):
            raise InputError(f"some of these records are of another holder than {holder!r}: nobody was enrolled")
        rows = [{"collection": number, "record": one, "holder": holder} for one in wanted if one not in known]
        for start in range(0, len(rows), AT_ONCE):
            connection.execute(enrolled.insert(), rows[start : start + AT_ONCE])
    return len(rows)


def read_names(path: Path) -> list[str]:
    """The ids of a list, one a line: a holder gives the operator these, never its table."""
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {type(error).__name__}") from None


def holders_of(connection: Connection, table: Table, number: int, records: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Those of these records that a table of a collection knows, with their holders."""
    told = table.c
    for start in range(0, len(records), AT_ONCE):
        some = told.record.in_(list(records[start : start + AT_ONCE]))
        for row in connection.execute(select(told.record, told.holder).where(told.collection == number, some)):
            yield row.record, row.holder
