"""A service on a port, until it is told to stop: requests under way are answered, what was taken is written, then it ends."""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn

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


def run_service(settings: Settings, host: str, port: int) -> None:
    """Blocks until SIGTERM or SIGINT."""
    store = Store(settings.folder, settings.url)
    store.upgrade()  # an error here is one line, and nothing listens
    store.close()
    write_logs()
    limits: dict[str, Any] = {"timeout_graceful_shutdown": PATIENCE, "timeout_keep_alive": KEEP_ALIVE}
    limits |= {
        "server_header": False,
        "access_log": False,
        "log_level": "warning",
        "h11_max_incomplete_event_size": 65536,
    }
    server = Announcing(uvicorn.Config(create_app(settings), host, port, **limits))
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda *_: None)  # uvicorn raises it again when all is done: this is no failure
    with suppress(SystemExit):  # it has said why
        server.run()
    if not server.started:
        raise InputError(f"the service could not start on {host}:{port}: is the port taken, or the store away?")
    print("stopped", file=sys.stderr)
