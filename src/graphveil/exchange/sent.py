"""Reports made for a service, kept by record: whoever is asked again sends the same bytes, from any file, after any crash.

The key is the keyed digest of the id (``memory.py``) and what was drawn: a part of the record, or one round on contacts. With it
stand the randomizer, what it heard and whether a seed drew it; a request under another law is a second look at the record and is
refused, and what a seed has drawn is never sent as if it had not been. A report is on the disk before it leaves. Lookups and
inserts are by key, so time is linear in the records and memory does not grow.
Tests: ``tests/exchange/test_sent.py``.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.memory import OWNER_ONLY, SENT, Memory, what_is_drawn
from graphveil.exchange.wire import Stage
from graphveil.privacy.local import Part
from graphveil.privacy.mechanisms import mechanism_to_json

FIELDS = {Part.FEATURES: ("features",), Part.LABELS: ("label",), Part.EDGES: ("counts", "contacts", "degree")}
AT_ONCE = 500


class Sent:
    """The reports in the folder of a memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.path = memory.path / SENT

    def recall(
        self, stage: Stage, digests: np.ndarray, seeded: bool = False
    ) -> list[tuple[dict[str, object], frozenset[str]]]:
        """What was made before for each of these records, and what of it: parts, or rounds on contacts."""
        laws = laws_of(stage, seeded)
        with closing(self._open()) as store:
            each = {what: self._read(store, what, digests) for what in laws}
        found = []
        for digest in digests.tolist():
            told: dict[str, object] = {}
            known = [what for what in laws if digest in each[what]]
            for what in known:
                law, body = each[what][digest]
                if law != laws[what]:
                    raise PrivacyError(
                        f"{what} of some records have been randomised already, in another way, after hearing something else, or "
                        f"{'without' if seeded else 'with'} a seed; "
                        f"a second draw would spend the budget again ({self.memory.path} remembers)"
                    )
                told |= json.loads(body)
            found.append((told, frozenset(known)))
        return found

    def keep(
        self,
        stage: Stage,
        digests: np.ndarray,
        bodies: Sequence[Mapping[str, object]],
        known: Sequence[frozenset[str]],
        seeded: bool = False,
    ) -> None:
        """Keep durably what is not ``known`` of each record; an error, and nothing is kept, if a file has it already."""
        rows = []
        for what, law in laws_of(stage, seeded).items():
            new = np.array([what not in one for one in known], dtype=bool)
            self.memory.refuse_again(what, digests[new])
            names = _fields(what)
            for at in np.flatnonzero(new).tolist():
                part = {name: bodies[at][name] for name in names if name in bodies[at]}
                rows.append(
                    (what, _key(int(digests[at])), law, json.dumps(part, sort_keys=True, separators=(",", ":")))
                )
        with closing(self._open()) as store, store:
            try:
                store.executemany("INSERT INTO drawn VALUES (?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                raise PrivacyError("another process is randomising the same records: run this again") from None

    def refuse_again(self, what: str, digests: np.ndarray) -> None:
        """An error if one of these records was drawn for a service."""
        with closing(self._open()) as store:
            again = len(self._read(store, what, digests))
        if again:
            raise PrivacyError(
                f"{again} of {len(digests)} records have been randomised already ({what}, for a service): send them there again "
                f"(--to), a second draw would spend the budget again. {self.memory.path} remembers"
            )

    def _read(self, store: sqlite3.Connection, what: str, digests: np.ndarray) -> dict[int, tuple[str, str]]:
        found: dict[int, tuple[str, str]] = {}
        keys = [_key(digest) for digest in digests.tolist()]
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            asked = f"SELECT who, law, body FROM drawn WHERE what = ? AND who IN ({','.join('?' * len(some))})"
            for who, law, body in store.execute(asked, (what, *some)):
                found[int.from_bytes(who, "little")] = (law, body)
        return found

    def _open(self) -> sqlite3.Connection:
        try:
            if not self.path.exists():
                self.path.touch(OWNER_ONLY)
            store = sqlite3.connect(self.path, timeout=30)
            store.execute("PRAGMA journal_mode=WAL")
            store.execute("PRAGMA synchronous=FULL")
            store.execute(
                "CREATE TABLE IF NOT EXISTS drawn (what TEXT, who BLOB, law TEXT, body TEXT, PRIMARY KEY (what, who)) "
                "WITHOUT ROWID"
            )
            return store
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{self.path} cannot be used as a memory: {error}") from None


def laws_of(stage: Stage, seeded: bool = False) -> dict[str, str]:
    """What a stage draws (or sends in the clear), and by which law; ``seeded``: with noise that can be drawn again."""
    found = {}
    for round in stage.rounds:
        heard = stage.heard if round.part is Part.EDGES else ""
        law = [mechanism_to_json(round.randomizer), heard, *(["seeded"] if seeded else [])]
        found[what_is_drawn(round)] = hashlib.sha256(json.dumps(law, sort_keys=True).encode()).hexdigest()
    return found | {f"raw-{part.value}": "raw" for part in Part if stage.raw(part)}


def _fields(what: str) -> tuple[str, ...]:
    return FIELDS[Part(what.removeprefix("raw-").partition("-")[0])]


def _key(digest: int) -> bytes:
    return digest.to_bytes(8, "little")
