"""Bearer tokens: ``gv_<key>_<secret>``. The key finds the row, the secret is compared by digest in constant time.

Secrets have 256 random bits, so a plain SHA-256 of one cannot be searched backwards; neither the database nor a log ever has the
secret. Tests: ``tests/service/test_tokens.py``.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import insert, select, update

from graphveil.errors import InputError
from graphveil.exchange.wire import Defect, identifier
from graphveil.service.clock import now
from graphveil.service.schema import tokens
from graphveil.service.store import Store

NOBODY = hashlib.sha256(b"").digest()


class Role(StrEnum):
    """Who somebody is to the service."""

    HOLDER = "holder"  # sends reports of its own records and asks about them
    ANALYST = "analyst"  # trains, and sees what anybody may see
    OPERATOR = "operator"  # runs the service: creates collections, closes them; sees no more than an analyst


@dataclass(frozen=True)
class Caller:
    """Who is calling; ``record``: the only record this token is for."""

    key: str
    role: Role
    holder: str | None = None
    record: str | None = None

    def owns(self, record: str) -> bool:
        return self.record is None or self.record == record


def create_token(store: Store, role: str, holder: str | None = None, record: str | None = None) -> str:
    """A new token; this is the only time that anybody sees it."""
    try:
        wanted = Role(role)
    except ValueError:
        raise InputError(f"unknown role {role!r}; known are: {', '.join(Role)}") from None
    if (wanted is Role.HOLDER) != (holder is not None) or (record is not None and holder is None):
        raise InputError("a token of the role holder names its holder (--holder), and no other does")
    for name in (holder, record):
        try:
            identifier("holder" if name is None else name)
        except Defect as defect:
            raise InputError(str(defect)) from None
    key, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    body = {"key": key, "role": wanted.value, "holder": holder, "record": record, "created": now()}
    with store.writing() as connection:
        connection.execute(insert(tokens).values(**body, digest=_digest(secret)))
    return f"gv_{key}_{secret}"


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
    return Caller(row.key, Role(row.role), row.holder, row.record)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
