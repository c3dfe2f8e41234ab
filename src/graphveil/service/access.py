"""Who is calling, and whether they may: bearer tokens at the door, roles behind it. Tests: ``tests/service/test_refusals.py``."""

from __future__ import annotations

import hashlib
import time
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from graphveil.service.limits import Rate
from graphveil.service.settings import Settings
from graphveil.service.store import Store
from graphveil.service.tokens import Caller, Role, caller_of

REMEMBERED = 1.0  # seconds that a token is not looked up again: a revoked one is good for so long at most
bearer = HTTPBearer(auto_error=False, description="A token that 'graphveil serve token create' printed.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


class Door:
    """Checks tokens and rates."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.callers = Rate(settings.rate, settings.burst)
        self.strangers = Rate(settings.stranger_rate, settings.stranger_burst)
        self._seen: dict[bytes, tuple[float, Caller]] = {}

    async def caller(self, request: Request, credentials: HTTPAuthorizationCredentials | None) -> Caller:
        """Whoever holds the token of this request; 401 if it has none, or a bad one."""
        found = None if credentials is None else await self._known(credentials.credentials)
        if found is None:
            self.strangers.check(address(request))
            what = "no token" if credentials is None else "a token that is not good here"
            raise HTTPException(401, f"{what}: send 'Authorization: Bearer ...'", {"WWW-Authenticate": "Bearer"})
        self.callers.check(found.key)
        request.state.caller = found
        return found

    async def _known(self, token: str) -> Caller | None:
        now, key = time.monotonic(), hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        before = self._seen.get(key)
        if before is not None and now - before[0] < REMEMBERED:
            return before[1]
        found = await run_in_threadpool(caller_of, self.store, token)
        if len(self._seen) > 10_000:
            self._seen.clear()
        self._seen.pop(key, None)
        if found is not None:
            self._seen[key] = (now, found)
        return found


def address(request: Request) -> str:
    return "somebody" if request.client is None else request.client.host


def allowed(*roles: Role) -> object:
    """A parameter of a route: the caller, who must have one of these roles (default: any)."""

    async def check(request: Request, credentials: Credentials) -> Caller:
        found: Caller = await request.app.state.door.caller(request, credentials)
        if roles and found.role not in roles:
            raise HTTPException(403, f"this is for the role {' or '.join(roles)}")
        return found

    return Depends(check)


async def public(request: Request) -> None:
    """What needs no token is limited by address."""
    request.app.state.door.callers.check(address(request))


Public = Depends(public)
Anybody = Annotated[Caller, allowed()]
Holder = Annotated[Caller, allowed(Role.HOLDER)]
Analyst = Annotated[Caller, allowed(Role.ANALYST, Role.OPERATOR)]
Operator = Annotated[Caller, allowed(Role.OPERATOR)]
