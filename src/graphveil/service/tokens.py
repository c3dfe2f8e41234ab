"""Bearer tokens: ``gv_<key>_<secret>``. The key finds the row, the secret is compared by digest in constant time.

A token has a role and says what it is for: one collection, or one saved run; only an operator's may be for everything. That of a
device or of a person names its one record, too. Secrets have 256 random bits, so a plain SHA-256 of one cannot be searched
backwards; neither the database nor a log ever has the secret.
Tests: ``tests/service/test_tokens.py``, ``tests/service/test_scope.py``.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update

from graphveil.errors import InputError
from graphveil.exchange.wire import Defect, identifier
from graphveil.service.clock import now
from graphveil.service.enrolment import enrol
from graphveil.service.schema import tokens
from graphveil.service.store import Store

NOBODY = hashlib.sha256(b"").digest()


class Role(StrEnum):
    """Who somebody is to the service."""

    HOLDER = "holder"  # sends reports of its own records to one collection and asks about them; a device: of one record
    PERSON = "person"  # is in the data of a central run and gets the prediction about itself
    ANALYST = "analyst"  # trains one collection, and sees what anybody may see
    OPERATOR = "operator"  # runs the service: creates collections, closes them; sees no more than an analyst


@dataclass(frozen=True)
class Caller:
    """Who is calling; ``record``: the only record this token is for; ``scope``: the only collection or run, None: all."""

    key: str
    role: Role
    holder: str | None = None
    record: str | None = None
    scope: str | None = None

    def owns(self, record: str) -> bool:
        return self.record is None or self.record == record

    def may_enter(self, scope: str | None) -> bool:
        """Whether the token is for this collection or run; None is the service as a whole."""
        return self.scope is None or self.scope == scope


def collection_scope(name: str) -> str:
    return f"collection:{name}"


def run_scope(folder: Path) -> str:
    """A saved run by its manifest, the digests of all its published files: another run has other people behind the same ids."""
    try:
        content = (folder / "manifest.json").read_bytes()
    except OSError:
        raise InputError(f"{folder} holds no run: give the folder that 'train --out' wrote") from None
    return f"run:{hashlib.sha256(content).hexdigest()}"


def create_token(
    store: Store,
    role: str,
    holder: str | None = None,
    record: str | None = None,
    *,
    collection: str | None = None,
    run: Path | None = None,
) -> str:
    """A new token; this is the only time that anybody sees it. The record of a device is enrolled for its holder."""
    try:
        wanted = Role(role)
    except ValueError:
        raise InputError(f"unknown role {role!r}; known are: {', '.join(Role)}") from None
    _check(wanted, holder, record, collection, run)
    number = None if collection is None else store.number_of(collection)
    if number is not None and holder is not None and record is not None:
        enrol(store, number, holder, [record])
    scope = None if run is None else run_scope(run)
    scope = scope if collection is None else collection_scope(collection)
    key, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    body = {"key": key, "role": wanted.value, "holder": holder, "record": record, "scope": scope, "created": now()}
    with store.writing() as connection:
        connection.execute(insert(tokens).values(**body, digest=_digest(secret)))
    return f"gv_{key}_{secret}"


def _check(role: Role, holder: str | None, record: str | None, collection: str | None, run: Path | None) -> None:
    """An error if a token of this role would be for too much, or for nothing."""
    if (role is Role.HOLDER) != (holder is not None):
        raise InputError("a token of the role holder names its holder (--holder), and no other does")
    if record is not None and role not in (Role.HOLDER, Role.PERSON):
        raise InputError("only a holder's device and a person of a run have a record of their own (--record)")
    if collection is not None and run is not None:
        raise InputError("a token is for a collection (--collection) or for a run (--run), not for both")
    if role is Role.HOLDER and collection is None:
        raise InputError("a token of the role holder is for one collection: say which (--collection NAME)")
    if role is Role.PERSON and (run is None or record is None):
        raise InputError("a token of the role person is for one id of one run: say which (--run DIR --record ID)")
    if role is Role.ANALYST and collection is None and run is None:
        raise InputError("a token of the role analyst is for one collection or run: --collection NAME, or --run DIR")
    for name in (holder, record):
        try:
            identifier("nobody" if name is None else name)
        except Defect as defect:
            raise InputError(str(defect)) from None


def revoke_token(store: Store, key: str) -> None:
    """From now on nobody gets in with it; ``key`` may be the whole token."""
    name = key.split("_")[1] if key.startswith("gv_") and key.count("_") >= 2 else key
    with store.writing() as connection:
        there = update(tokens).where(tokens.c.key == name, tokens.c.revoked.is_(None)).values(revoked=now())
        if not connection.execute(there).rowcount:
            raise InputError(f"there is no token {name!r} that could be revoked")


def all_tokens(store: Store) -> list[dict[str, Any]]:
    columns = [column for column in tokens.c if column.name != "digest"]
    with store.reading() as connection:
        return [dict(row._mapping) for row in connection.execute(select(*columns).order_by(tokens.c.created))]


def caller_of(store: Store, token: str) -> Caller | None:
    """Who holds this token; None if it is no good."""
    prefix, _, rest = token.partition("_")
    key, _, secret = rest.partition("_")
    with store.reading() as connection:
        row = connection.execute(select(tokens).where(tokens.c.key == key[:32])).first() if key.isalnum() else None
    digest = NOBODY if row is None else row.digest
    good = hmac.compare_digest(_digest(secret), bytes(digest)) and prefix == "gv"
    if row is None or not good or row.revoked is not None:
        return None
    if row.scope is None and row.role != Role.OPERATOR:  # made before tokens said what they are for
        return None
    return Caller(row.key, Role(row.role), row.holder, row.record, row.scope)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
