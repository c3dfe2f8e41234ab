"""Who is calling, and whether they may: bearer tokens at the door, roles and what a token is for behind it.

Tests: ``tests/service/test_refusals.py``, ``tests/service/test_scope.py``.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from graphveil.service.limits import Rate
from graphveil.service.settings import Settings
from graphveil.service.store import Store
from graphveil.service.tokens import Caller, Role, caller_of, collection_scope

REMEMBERED = 1.0  # seconds that a token is not looked up again: a revoked one is good for so long at most
MOST_SEEN = 10_000  # tokens that are remembered
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
        found = None if credentials is None else await self.known(credentials.credentials, address(request))
        if found is None:
            if credentials is None:
                self.strangers.check(address(request))
            what = "no token" if credentials is None else "a token that is not good here"
            raise HTTPException(401, f"{what}: send 'Authorization: Bearer ...'", {"WWW-Authenticate": "Bearer"})
        self.callers.check(found.key)
        request.state.caller = found
        return found

    async def known(self, token: str, where: str) -> Caller | None:
        """Who holds this token now. An address that has sent too many bad ones is turned away before anything is looked up.

        A token that was good a while ago is looked up all the same: strangers behind the same address cannot lock it out.
        """
        now, key = time.monotonic(), hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        before = self._seen.get(key)
        if before is not None and now - before[0] < REMEMBERED:
            return before[1]
        if before is None:
            self.strangers.check(where)
        found = await run_in_threadpool(caller_of, self.store, token)
        if before is None and found is not None:
            self.strangers.give_back(where)
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()
        self._seen.pop(key, None)
        if found is not None:
            self._seen[key] = (now, found)
        return found


def address(request: Request) -> str:
    return "somebody" if request.client is None else request.client.host


def of_collection(request: Request) -> str | None:
    """What a route is about: the collection in its path, or the service as a whole."""
    name = request.path_params.get("name")
    return None if name is None else collection_scope(name)


def of_run(request: Request) -> str | None:
    """The run that is served."""
    central = request.app.state.central
    if central is None:
        raise HTTPException(404, "this service has no central model")
    return str(central.scope)


def allowed(*roles: Role, of: Callable[[Request], str | None] = of_collection) -> object:
    """A parameter of a route: the caller, who must have one of these roles (default: any) for what the route is about."""

    async def check(request: Request, credentials: Credentials) -> Caller:
        found: Caller = await request.app.state.door.caller(request, credentials)
        if roles and found.role not in roles:
            raise HTTPException(403, f"this is for the role {' or '.join(roles)}")
        if not found.may_enter(of(request)):
            raise HTTPException(403, "this token is for another collection or run")
        return found

    return Depends(check)


async def public(request: Request) -> None:
    """What needs no token is limited by address."""
    request.app.state.door.callers.check(address(request))


async def anywhere(request: Request, credentials: Credentials) -> Caller:
    """Whoever has a token, whatever it is for."""
    found: Caller = await request.app.state.door.caller(request, credentials)
    return found


Public = Depends(public)
Anywhere = Annotated[Caller, Depends(anywhere)]
Anybody = Annotated[Caller, allowed(Role.HOLDER, Role.ANALYST, Role.OPERATOR)]
Holder = Annotated[Caller, allowed(Role.HOLDER)]
Analyst = Annotated[Caller, allowed(Role.ANALYST, Role.OPERATOR)]
Operator = Annotated[Caller, allowed(Role.OPERATOR)]
Person = Annotated[Caller, allowed(Role.PERSON, of=of_run)]
RunAnalyst = Annotated[Caller, allowed(Role.ANALYST, Role.OPERATOR, of=of_run)]
