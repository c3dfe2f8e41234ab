"""A table of what was drawn: by what it is about and the keyed digest of the id, the law it was drawn by, and the report.

It is one file of SQLite, readable by its owner; rows are written durably, found by key, and never changed.
Tests: ``tests/exchange/test_sent.py``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import numpy as np

from graphveil.errors import InputError, PrivacyError

OWNER_ONLY = 0o600
AT_ONCE = 500  # keys in one question
TABLE = (
    "CREATE TABLE IF NOT EXISTS drawn (what TEXT, who BLOB, law TEXT, body TEXT, PRIMARY KEY (what, who)) WITHOUT ROWID"
)


class Drawn:
    """The file ``path``, made when it is first used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, what: str, digests: np.ndarray) -> dict[int, tuple[str, str]]:
        """Law and report of those of these digests that are there."""
        found: dict[int, tuple[str, str]] = {}
        keys = [key_of(digest) for digest in digests.tolist()]
        with closing(self._open()) as store:
            for start in range(0, len(keys), AT_ONCE):
                some = keys[start : start + AT_ONCE]
                asked = f"SELECT who, law, body FROM drawn WHERE what = ? AND who IN ({','.join('?' * len(some))})"
                for who, law, body in store.execute(asked, (what, *some)):
                    found[int.from_bytes(who, "little")] = (law, body)
        return found

    def write(self, rows: Iterable[tuple[str, int, str, str]]) -> None:
        """Add what, digest, law and report; all of them or, if one is there already, none."""
        keyed = [(what, key_of(digest), law, body) for what, digest, law, body in rows]
        with closing(self._open()) as store, store:
            try:
                store.executemany("INSERT INTO drawn VALUES (?, ?, ?, ?)", keyed)
            except sqlite3.IntegrityError:
                raise PrivacyError("another process is randomising the same records: run this again") from None

    def _open(self) -> sqlite3.Connection:
        try:
            if not self.path.exists():
                self.path.touch(OWNER_ONLY)
            store = sqlite3.connect(self.path, timeout=30)
            for line in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", TABLE):
                store.execute(line)
            return store
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{self.path} cannot be used as a memory: {error}") from None


def key_of(digest: int) -> bytes:
    return digest.to_bytes(8, "little")
