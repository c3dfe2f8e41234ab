"""Bodies of a limited size that come in a limited time, and callers of a limited rate.

Tests: ``tests/service/test_refusals.py``, ``tests/service/test_slow.py``.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict

from fastapi import HTTPException, Request
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_CALLERS = 100_000
TOO_SLOW = "the body did not come in {:g} s: send smaller batches"
SMALL = 1 << 20  # bytes of a body that is no batch of reports
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

    def give_back(self, caller: str) -> None:
        """That request did not count after all."""
        with self._lock:
            if caller in self._left:
                left, before = self._left[caller]
                self._left[caller] = (min(self.burst, left + 1), before)

    def check(self, caller: str) -> None:
        wait = self.wait_for(caller)
        if wait:
            raise HTTPException(
                429, "too many requests: wait a moment", {"Retry-After": str(max(1, round(wait + 0.5)))}
            )


class Limited:
    """No body is larger than this or takes longer, whoever sends it and whatever route it is for.

    Nothing is read before it is counted. Only batches of reports may be large: other bodies are read before a token is.
    """

    def __init__(self, app: ASGIApp, most: int, seconds: float) -> None:
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = self.most if scope["path"].endswith("/reports") else min(self.most, SMALL)
        told = Headers(scope=scope).get("content-length", "0")
        if not told.isdecimal() or int(told) > most:
            await _refused(413, TOO_LARGE.format(most))(scope, receive, send)
            return
        size, ends, whole = 0, asyncio.get_running_loop().time() + self.seconds, False

        async def counted() -> Message:
            nonlocal size, whole
            if whole:  # what comes now is that the caller has gone, whenever that is
                return await receive()
            try:
                async with asyncio.timeout_at(ends):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, TOO_SLOW.format(self.seconds), {"Connection": "close"}) from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > most:
                raise HTTPException(413, TOO_LARGE.format(most), {"Connection": "close"})
            return message

        await self.app(scope, counted, send)


def _refused(status: int, why: str) -> JSONResponse:
    """An answer to a body that is not read: the line is closed behind it."""
    return JSONResponse({"detail": why}, status, {"Connection": "close"})


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
