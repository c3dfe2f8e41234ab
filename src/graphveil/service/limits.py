"""Bodies of a limited size and callers of a limited rate. Tests: ``tests/service/test_refusals.py``."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from fastapi import HTTPException, Request
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_CALLERS = 100_000
TOO_LARGE = "a body of more than {} bytes: send smaller batches"


class Rate:
    """A bucket of requests for each caller, filled at a steady rate; the callers longest unheard of are forgotten."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_for(self, caller: str) -> float:
        """0 if the caller may go on, else after how many seconds."""
        now = time.monotonic()
        with self._lock:
            left, before = self._left.pop(caller, (self.burst, now))
            left = min(self.burst, left + (now - before) * self.rate)
            allowed = left >= 1
            self._left[caller] = (left - 1 if allowed else left, now)
            if len(self._left) > MOST_CALLERS:
                self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self.rate

    def check(self, caller: str) -> None:
        wait = self.wait_for(caller)
        if wait:
            raise HTTPException(
                429, "too many requests: wait a moment", {"Retry-After": str(max(1, round(wait + 0.5)))}
            )


class Limited:
    """No body is larger than this, whoever sends it and whatever route it is for: nothing is read before it is counted."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        told = Headers(scope=scope).get("content-length", "0")
        if not told.isdecimal() or int(told) > self.most:
            await JSONResponse({"detail": TOO_LARGE.format(self.most)}, 413)(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self.most:
                raise HTTPException(413, TOO_LARGE.format(self.most))
            return message

        await self.app(scope, counted, send)


async def limited_body(request: Request, most: int) -> bytes:
    """The body, unless it is too large or packed: nothing is unpacked here."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "a packed body: send it as it is")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise HTTPException(413, TOO_LARGE.format(most))
        parts.append(part)
    return b"".join(parts)
