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
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request
from starlette.responses import Response

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


async def observed(request: Request, call: Callable[[Request], Awaitable[Response]], metrics: Metrics) -> Response:
    """Give a request an id, answer it, and write down how that went."""
    asked = request.headers.get("x-request-id", "")
    request.state.id = asked if REQUEST_ID.fullmatch(asked) else secrets.token_hex(8)
    start = time.perf_counter()
    try:
        response = await call(request)
    except Exception:
        log.exception("error", extra={"told": {"request": request.state.id}})
        body = {"detail": "something went wrong here; the request id finds it in the log"}
        response = Response(json.dumps(body), 500, media_type="application/json")
    took = time.perf_counter() - start
    route = getattr(request.scope.get("route"), "path", "none")
    response.headers["X-Request-ID"] = request.state.id
    metrics.requests.labels(route, request.method if route != "none" else "any", str(response.status_code)).inc()
    metrics.seconds.labels(route).observe(took)
    caller = getattr(request.state, "caller", None)
    told = {
        "request": request.state.id,
        "route": route,
        "method": request.method,
        "status": response.status_code,
        "ms": round(1000 * took, 2),
        "token": None if caller is None else caller.key,
        "role": None if caller is None else caller.role.value,
    }
    log.info("request", extra={"told": told})
    return response
