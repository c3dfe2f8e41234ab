"""A service on a port, until it is told to stop: requests under way are answered, what was taken is written, then it ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from graphveil.errors import InputError
from graphveil.service.app import create_app
from graphveil.service.settings import Settings
from graphveil.service.store import Store
from graphveil.service.watch import write_logs

PATIENCE = 20  # seconds for requests under way when it stops
KEEP_ALIVE = 30


class Announcing(uvicorn.Server):
    """Says on standard output where it listens, when it does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            print(f"listening on http://{host}:{port}", flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.config.app.state.ready = False  # type: ignore[union-attr]  # whoever listens to events is let go
        super().handle_exit(sig, frame)


def patient(seconds: float) -> type[asyncio.Protocol]:
    """The protocol of a connection on which a request must arrive, up to its body, within so many seconds.

    Uvicorn waits for ever for the rest of a request, on a new line as on one that is kept alive: a few hundred callers who send
    a byte now and then would take all the lines there are.
    """

    class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        waiting: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._wait()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def _wait(self) -> None:
            """The time runs from the first byte that belongs to no request under way."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self.waiting is None:
                self.waiting = self.loop.call_later(seconds, self._give_up)

        def _stop(self) -> None:
            if self.waiting is not None:
                self.waiting.cancel()
                self.waiting = None

        def _give_up(self) -> None:
            self.waiting = None
            if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
                self.transport.close()

    return Patient


def limits_of(settings: Settings) -> dict[str, Any]:
    """What uvicorn is told about connections."""
    return {
        "http": patient(settings.slowest_head),
        "limit_concurrency": settings.most_connections,
        "timeout_graceful_shutdown": PATIENCE,
        "timeout_keep_alive": KEEP_ALIVE,
        "proxy_headers": settings.proxy is not None,
        "forwarded_allow_ips": settings.proxy or "",
        "server_header": False,
        "access_log": False,
        "log_level": "warning",
        "h11_max_incomplete_event_size": 65536,
    }


def run_service(settings: Settings, host: str, port: int) -> None:
    """Blocks until SIGTERM or SIGINT."""
    store = Store(settings.folder, settings.url)
    store.upgrade()  # an error here is one line, and nothing listens
    store.close()
    write_logs()
    server = Announcing(uvicorn.Config(create_app(settings), host, port, **limits_of(settings)))
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: None)  # uvicorn raises it again when all is done: this is no failure
    with suppress(SystemExit):  # it has said why
        server.run()
    if not server.started:
        raise InputError(f"the service could not start on {host}:{port}: is the port taken, or the store away?")
    print("stopped", file=sys.stderr)
