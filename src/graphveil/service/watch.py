"""What an operator sees of a running service: one line of JSON for each request, and counters. Neither has a private value.

A line names the route (never the path, which may have an id in it), the status, the time it took and the public key of the
token. No body, no record, no address and no secret is logged. Tests: ``tests/service/test_watch.py``.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("graphveil.service")
REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
STEPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """Counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        one: Any = {"registry": self.registry}
        self.requests = Counter("graphveil_requests", "Requests", ["route", "method", "status"], **one)
        self.seconds = Histogram("graphveil_request_seconds", "Time of a request", ["route"], buckets=STEPS, **one)
        self.reports = Counter("graphveil_reports", "Reports by what became of them", ["collection", "outcome"], **one)
        self.jobs = Gauge("graphveil_jobs_unfinished", "Training jobs queued or running", **one)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class JsonLines(logging.Formatter):
    """A line of JSON for each event."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = getattr(record, "told", {})
        time_of = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        body = {"time": time_of, "level": record.levelname.lower(), "event": record.getMessage(), **told}
        if record.exc_info and record.exc_info[0] is not None:
            body["error"] = record.exc_info[0].__name__  # its words may quote what somebody sent
        return json.dumps(body)


def write_logs(level: int = logging.INFO) -> None:
    """Send the lines to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    log.handlers, log.propagate = [handler], False
    log.setLevel(level)


class Observed:
    """Gives every request an id, and writes down how it went."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope).get("x-request-id", "")
        number = asked if REQUEST_ID.fullmatch(asked) else secrets.token_hex(8)
        scope.setdefault("state", {})["id"] = number
        start, status = time.perf_counter(), 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).append("X-Request-ID", number)
            await send(message)

        try:
            await self.app(scope, receive, answer)
        except Exception:
            log.exception("error", extra={"told": {"request": number}})
            if status:
                raise
            body = {"detail": "something went wrong here; the request id finds it in the log"}
            await JSONResponse(body, 500)(scope, receive, answer)
        finally:
            self._write_down(scope, number, status, time.perf_counter() - start)

    def _write_down(self, scope: Scope, number: str, status: int, took: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if route != "none" else "any"
        self.metrics.requests.labels(route, method, str(status)).inc()
        self.metrics.seconds.labels(route).observe(took)
        caller = scope["state"].get("caller")
        told = {
            "request": number,
            "route": route,
            "method": method,
            "status": status,
            "ms": round(1000 * took, 2),
            "token": None if caller is None else caller.key,
            "role": None if caller is None else caller.role.value,
        }
        log.info("request", extra={"told": told})
