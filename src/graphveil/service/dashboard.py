"""One page that shows a service as it runs; it needs nothing but this service, and a token of an analyst or operator.

The page itself says nothing: what it shows it asks for with the token, which stays in the browser's session. Changes come as
server-sent events. Tests: ``tests/service/test_dashboard.py``.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from graphveil.report.palette import css
from graphveil.service.access import Analyst, Anywhere, Door, address
from graphveil.service.reports_api import REFUSALS
from graphveil.service.summary import summary_of

router = APIRouter(tags=["dashboard"])
LOOK_EVERY = 0.7  # seconds
SIGN_OF_LIFE = 20  # looks


@cache
def page() -> tuple[str, str]:
    """The page, and the policy under which a browser may show it."""
    folder = files("graphveil.service") / "pages"
    style, script, body = ((folder / f"dashboard.{kind}").read_text("utf-8") for kind in ("css", "js", "html"))
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {css(True)} }} }}"
    style = f":root {{ {css(False)} }}\n{dark}\n{style}"
    allowed = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'; connect-src 'self'; img-src data:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return body.replace("/*STYLE*/", style).replace("/*SCRIPT*/", script), policy


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def dashboard() -> HTMLResponse:
    """The page."""
    body, policy = page()
    headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
    return HTMLResponse(body, headers=headers)


@router.get("/v1/collections/{name}/summary", responses=REFUSALS)
def get_summary(name: str, request: Request, caller: Analyst) -> dict[str, Any]:
    """Arrivals, refusals, rounds, jobs, quality, certificate and budgets of a collection."""
    number, protocol = request.app.state.registry.find(name)
    return summary_of(request.app.state.store, number, protocol)


@router.get("/v1/collections/{name}/events", responses=REFUSALS, response_class=StreamingResponse)
async def get_events(name: str, request: Request, caller: Analyst) -> StreamingResponse:
    """The same as server-sent events: at once, and whenever something has changed."""
    state = request.app.state
    number, protocol = await run_in_threadpool(state.registry.find, name)

    token = request.headers["authorization"].partition(" ")[2].strip()

    async def events() -> AsyncIterator[str]:
        before, quiet = "", 0
        while state.ready and not await request.is_disconnected() and await still_good(state.door, token, request):
            now = json.dumps(await run_in_threadpool(summary_of, state.store, number, protocol))
            quiet = 0 if now != before else quiet + 1
            if now != before:
                yield f"data: {now}\n\n"
            elif quiet % SIGN_OF_LIFE == 0:
                yield ": still here\n\n"
            before = now
            await asyncio.sleep(LOOK_EVERY)

    return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def still_good(door: Door, token: str, request: Request) -> bool:
    """Whether the token of a stream that goes on has not been revoked meanwhile."""
    try:
        return await door.known(token, address(request)) is not None
    except HTTPException:  # its address has sent too many bad ones, and this one is not known any more
        return False


class TokenState(BaseModel):
    """What a token is for; None: everything."""

    role: str
    collection: str | None
    run: bool


@router.get("/v1/token", responses=REFUSALS)
def get_token(caller: Anywhere) -> TokenState:
    """What the caller's token is for."""
    kind, _, name = (caller.scope or "").partition(":")
    return TokenState(role=caller.role, collection=name if kind == "collection" else None, run=kind == "run")
