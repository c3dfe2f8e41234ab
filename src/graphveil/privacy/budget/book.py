"""The book itself: a chain of entries in one SQLite file, each on disk before what it pays for can happen.

Entries are ``open`` (an account and its total), ``reserve`` (a run, before its first release, with all that its plan can cost)
and ``settle`` (the same run, finished, with what its ledger cost; or given up, with what it had released). A killed run leaves
its reservation, so the book never shows less than was released. Admission and reservation are one transaction under SQLite's
write lock: of two processes that would overspend together, one is refused, and a refusal writes nothing.

*Tampering.* Every entry holds the digest of the one before, and the head of the chain is kept apart with its length: a changed,
moved or missing entry is found by ``verify``, and so is one that no run writes, such as a second settlement. Whoever can write
the file can also write a whole new chain; a head that was noted elsewhere (``head``; every run folder has one) tells that, too.
Tests: ``tests/privacy/test_budget.py``.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphveil.errors import InputError, PrivacyError
from graphveil.privacy.budget.account import Account, Notion
from graphveil.privacy.budget.charge import Charge
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Level, Promise

if TYPE_CHECKING:
    from sqlalchemy import Connection

SCHEMA = "graphveil/budget/1"
PATIENCE = 60.0  # seconds to wait for another process that writes
START = "0" * 64
RECEIPT = "budget.json"  # in the folder of a run: which entry of which book paid for it


@dataclass(frozen=True)
class Entry:
    """One line of the book."""

    number: int
    time: str
    kind: str
    run: str
    body: dict[str, Any]
    previous: str
    digest: str = ""

    def sealed(self) -> str:
        """SHA-256 over everything but the digest itself."""
        told = [SCHEMA, self.number, self.time, self.kind, self.run, self.body, self.previous]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@dataclass
class Reservation:
    """A run that has been admitted; settle it when it is over."""

    book: BudgetBook
    run: str
    plan: Plan
    entry: Entry
    settled: Entry | None = field(default=None)

    def settle(self, releases: Iterable[Release], *, certificate: str | None = None, note: str = "finished") -> Entry:
        """Note what was really released; what was reserved beyond that is free again."""
        if self.settled is None:
            self.settled = self.book._settle(self, tuple(releases), certificate, note)
        return self.settled

    def give_up(self, releases: Iterable[Release]) -> Entry | None:
        """Note that the run broke off. Without a release it cost nothing; else it keeps its reservation."""
        return None if tuple(releases) else self.settle((), note="broken off before its first release")


class BudgetBook:
    """What runs on one data set may cost people in all; ``with BudgetBook(path) as book``."""

    _engine: Any

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(f"there is no budget book {self.path}; 'graphveil budget init' makes one")
        self._connect()

    @classmethod
    def create(cls, path: str | Path, name: str, promise: Promise) -> BudgetBook:
        """A new book with its first account; an existing file is left alone."""
        file = Path(path)
        if file.exists():
            raise InputError(
                f"{file} already exists; a budget book is never overwritten ('budget open' adds an account)"
            )
        if not file.parent.is_dir():
            raise InputError(f"there is no folder {file.parent} for a budget book")
        draft = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
        draft.touch(mode=0o600)
        book = cls.__new__(cls)
        book.path = draft
        try:
            book._connect()
            book._lay_out(name)
            book.open_account(promise)
            book.close()
            file.hardlink_to(draft)  # whole or not at all, and never over somebody else's
        except FileExistsError:
            raise InputError(f"{file} already exists; a budget book is never overwritten") from None
        finally:
            book.close()
            for rest in ("", "-wal", "-shm"):
                Path(f"{draft}{rest}").unlink(missing_ok=True)
        return cls(file)

    def __enter__(self) -> BudgetBook:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    # what it says

    @property
    def name(self) -> str:
        with self._reading() as db:
            return str(db.exec_driver_sql("SELECT name FROM book").scalar_one())

    @property
    def head(self) -> str:
        """The digest of the last entry; note it elsewhere to be able to tell a rewritten book."""
        with self._reading() as db:
            return str(db.exec_driver_sql("SELECT digest FROM book").scalar_one())

    def entries(self) -> list[Entry]:
        with self._reading() as db:
            return _entries(db)

    def accounts(self) -> list[Account]:
        """Every account with what is charged to it: settled runs as they were, others as reserved."""
        return accounts_of(self.entries())

    def completed(self, promise: Promise) -> Promise:
        """The promise with the delta of the account it is charged to, if it states none."""
        if promise.delta is not None:
            return promise
        covered = (a.promise.target_delta for a in self.accounts() if Notion.of(promise).covers(a.notion))
        delta = min(covered, default=None)
        return promise if delta is None else promise.at(delta)

    def receipt(self, certificate: str) -> dict[str, Any]:
        """Which entry of which book paid for the run with this digest of its certificate."""
        entry = next(entry for entry in reversed(self.entries()) if entry.body.get("certificate") == certificate)
        return {"schema": SCHEMA, "book": self.name, "entry": entry.number, "run": entry.run, "head": entry.digest}

    def verify(self, heads: Iterable[str] = ()) -> list[str]:
        """What is wrong with the book, in words; nothing if it is whole. ``heads``: digests that must be in its chain."""
        with self._reading() as db:
            entries = _entries(db)
            count, digest, name = db.exec_driver_sql("SELECT entries, digest, name FROM book").one()
        faults: list[str] = []
        previous = START
        for place, entry in enumerate(entries, 1):
            if entry.number != place:
                return [*faults, f"entry {place} is missing"]
            if entry.previous != previous or entry.sealed() != entry.digest:
                faults.append(f"entry {place} ({entry.kind}) was changed after it was written")
            previous = entry.digest
        if count != len(entries) or digest != previous:
            faults.append(f"the book should end with entry {count}, and ends with entry {len(entries)}")
        if entries and entries[0].body.get("book", name) != name:
            faults.append(f"the book was begun as {entries[0].body['book']!r}, and is called {name!r}")
        faults += _out_of_order(entries)
        known = {entry.digest for entry in entries}
        faults += [f"no entry has the digest {head}: the book was rewritten" for head in heads if head not in known]
        if not faults:
            faults += [
                f"{account.notion}: more was spent than promised"
                for account in accounts_of(entries)
                if not account.kept
            ]
        return faults

    # what it takes

    def open_account(self, promise: Promise) -> Account:
        """Promise a total under one more notion; a promised total is never changed."""
        if promise.level in (Level.NONE, Level.LOCAL) or not promise.private:
            raise InputError(
                "a budget book counts what a curator spends: node, k-neighbor or edge level, finite epsilon"
            )
        account = Account(promise.at(promise.target_delta))
        with self._writing() as db:
            entries = _entries(db)
            if any(known.notion == account.notion for known in accounts_of(entries)):
                raise InputError(
                    f"the book has a total for {account.notion} already; a promised total is never changed"
                )
            if any(entry.kind == "reserve" for entry in entries):
                raise InputError(
                    "runs were charged already, and what they cost under another notion was not counted: start a new book"
                )
            named = {} if entries else {"book": db.exec_driver_sql("SELECT name FROM book").scalar_one()}
            _append(db, "open", "", {"promise": account.promise.to_json(), **named})
        return account

    def reserve(self, plan: Plan, *, method: str, mode: str = "sound", seeded: bool = False) -> Reservation:
        """Admit a run under every account, or refuse it: what it asks, what is spent and what is left.

        ``seeded``: its noise can be drawn again; noted, because the total says nothing to whoever knows the seed.
        """
        run = uuid.uuid4().hex
        with self._writing() as db:
            charges = {}
            for account in accounts_of(_entries(db)):
                charge = _charge(plan, account)
                if not (after := account.with_charge(charge)).kept:
                    raise PrivacyError(_refusal(method, account, charge, after))
                charges[str(account.notion)] = charge.to_json()
            body: dict[str, Any] = {
                "method": method,
                "mode": mode,
                "promise": plan.promise.to_json(),
                "charges": charges,
            }
            body |= ({"seeded": True} if seeded else {}) | ({"weaker": dict(plan.weaker)} if plan.weaker else {})
            entry = _append(db, "reserve", run, body)
        return Reservation(self, run, plan, entry)

    def _settle(
        self, reservation: Reservation, releases: tuple[Release, ...], certificate: str | None, note: str
    ) -> Entry:
        with self._writing() as db:
            accounts = accounts_of(_entries(db))
            made = {
                str(account.notion): Charge.of_releases(
                    reservation.plan, releases, account.promise.target_delta
                ).to_json()
                for account in accounts
            }
            return _append(db, "settle", reservation.run, {"certificate": certificate, "note": note, "charges": made})

    # the file

    def _connect(self) -> None:
        from sqlalchemy import URL, create_engine, event
        from sqlalchemy.pool import NullPool

        where = URL.create("sqlite", database=str(self.path))
        self._engine = create_engine(where, connect_args={"timeout": PATIENCE}, poolclass=NullPool)

        @event.listens_for(self._engine, "connect")
        def _durable(connection: Any, _: Any) -> None:
            connection.isolation_level = None  # transactions are begun below, with the write lock
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

    def _lay_out(self, name: str) -> None:
        with self._writing() as db:
            db.exec_driver_sql("CREATE TABLE book (schema TEXT, name TEXT, entries INTEGER, digest TEXT)")
            db.exec_driver_sql(
                "CREATE TABLE entries (number INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, run TEXT NOT NULL, "
                "body TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL)"
            )
            db.exec_driver_sql("INSERT INTO book VALUES (?, ?, 0, ?)", (SCHEMA, name, START))

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._transaction("BEGIN") as db:
            yield db

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction that holds the write lock from its beginning."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            yield db

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        from sqlalchemy.exc import DatabaseError, MultipleResultsFound, NoResultFound

        try:
            with self._engine.connect() as db:
                db.exec_driver_sql(begin)
                try:
                    yield db
                    db.exec_driver_sql("COMMIT")
                except BaseException:
                    db.exec_driver_sql("ROLLBACK")
                    raise
        except DatabaseError as error:
            raise InputError(f"{self.path} is not a usable budget book: {error.orig}") from None
        except (NoResultFound, MultipleResultsFound):
            raise InputError(f"{self.path} is not a usable budget book: its head was changed by hand") from None


def _charge(plan: Plan, account: Account) -> Charge:
    notion = Notion.of(plan.promise)
    if not notion.covers(account.notion):
        raise PrivacyError(
            f"the book promises a total for {account.notion}, and nothing is known of what a run under {notion} costs there; "
            "train under that notion, or keep another book for other people"
        )
    return Charge.of_plan(plan, account.promise.target_delta)


def _refusal(method: str, account: Account, charge: Charge, after: Account) -> str:
    alone = Account(account.promise, (charge,)).spent
    total = account.promise
    return (
        f"{method} was refused: it asks for epsilon {alone:.4g}, {account.spent:.4g} of {total.epsilon:g} is spent "
        f"(delta {total.target_delta:g}, {account.notion}), both together would be {after.spent:.4g}; "
        f"a run of up to epsilon {account.left:.4g} still fits"
    )


def _entries(db: Connection) -> list[Entry]:
    rows = db.exec_driver_sql("SELECT number, time, kind, run, body, previous, digest FROM entries ORDER BY number")
    try:
        return [
            Entry(n, time, kind, run, json.loads(body), before, digest)
            for n, time, kind, run, body, before, digest in rows
        ]
    except (ValueError, TypeError):
        raise InputError("the budget book holds an entry that cannot be read: it was changed by hand") from None


def _append(db: Connection, kind: str, run: str, body: dict[str, Any]) -> Entry:
    count, previous = db.exec_driver_sql("SELECT entries, digest FROM book").one()
    draft = Entry(count + 1, datetime.now(UTC).isoformat(timespec="milliseconds"), kind, run, body, previous)
    entry = Entry(draft.number, draft.time, kind, run, body, previous, draft.sealed())
    text = json.dumps(body, sort_keys=True)
    db.exec_driver_sql(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)",
        (entry.number, entry.time, kind, run, text, previous, entry.digest),
    )
    db.exec_driver_sql("UPDATE book SET entries = ?, digest = ?", (entry.number, entry.digest))
    return entry


def accounts_of(entries: Iterable[Entry]) -> list[Account]:
    promises: list[Promise] = []
    reserved: dict[str, dict[str, Any]] = {}
    made: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if entry.kind == "open":
            promises.append(Promise.from_json(entry.body["promise"]))
        elif entry.kind == "reserve":
            reserved[entry.run] = entry.body["charges"]
        else:  # what settles a run takes the place of what reserved it, once
            made.setdefault(entry.run, entry.body["charges"])
    return [
        Account(
            promise,
            tuple(Charge.from_json(made.get(run, asked)[str(notion)]) for run, asked in reserved.items()),
            tuple(Charge.from_json(asked[str(notion)]) for asked in reserved.values()),
        )
        for promise, notion in ((promise, Notion.of(promise)) for promise in promises)
    ]


def _out_of_order(entries: Iterable[Entry]) -> Iterator[str]:
    """Entries that no run writes: a settlement without a reservation or a second one, a total after the first run."""
    reserved: set[str] = set()
    settled: set[str] = set()
    for entry in entries:
        match entry.kind:
            case "open" if not reserved:
                continue
            case "reserve" if entry.run not in reserved:
                reserved.add(entry.run)
            case "settle" if entry.run in reserved - settled:
                settled.add(entry.run)
            case _:
                yield f"entry {entry.number} ({entry.kind}) is none that a run could have written"
