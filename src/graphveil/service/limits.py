"""Bodies of a limited size and callers of a limited rate. Tests: ``tests/service/test_refusals.py``."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from fastapi import HTTPException, Request

MOST_CALLERS = 100_000


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


async def limited_body(request: Request, most: int) -> bytes:
    """The body, unless it is too large or packed: nothing is unpacked here."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "a packed body: send it as it is")
    told = request.headers.get("content-length", "0")
    if not told.isdecimal() or int(told) > most:
        raise HTTPException(413, f"a body of more than {most} bytes: send smaller batches")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise HTTPException(413, f"a body of more than {most} bytes: send smaller batches")
        parts.append(part)
    return b"".join(parts)
