"""Small graphs, and a web server on the loopback interface that can break off."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data


@pytest.fixture
def small() -> Data:
    """Seven nodes, two classes, five undirected edges, one unlabelled node, one isolated node."""
    edges = np.array([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]])
    data = Data(
        x=torch.tensor([[1.0, 0], [0, 2], [1, 1], [0, 0], [3, 0], [0, 1], [1, 0]]),
        y=torch.tensor([0, 1, 0, 1, 0, -1, 1]),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1)),
    )
    data.num_nodes, data.num_classes, data.directed = 7, 2, False
    for name, nodes in (("train_mask", [0, 1, 2]), ("val_mask", [3]), ("test_mask", [4, 6])):
        data[name] = torch.zeros(7, dtype=torch.bool)
        data[name][nodes] = True
    return data


@dataclass
class Server:
    """Serves ``files`` with HTTP ranges; ``break_after`` bytes it drops the connection (once per entry)."""

    files: dict[str, bytes]
    break_after: list[int] = field(default_factory=list)
    pause: float = 0.0
    ranges: bool = True
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        name = handler.path.lstrip("/")
        asked = handler.headers.get("Range")
        self.requests.append((name, asked))
        if name not in self.files:
            handler.send_error(404)
            return
        body, tag = self.files[name], f'"{hash(self.files[name])}"'
        start = 0
        if asked and self.ranges and handler.headers.get("If-Range") == tag:
            start = int(asked.removeprefix("bytes=").split("-")[0])
        handler.send_response(206 if start else 200)
        handler.send_header("ETag", tag)
        handler.send_header("Content-Length", str(len(body) - start))
        handler.end_headers()
        stop = self.break_after.pop(0) if self.break_after else len(body)
        for position in range(start, min(len(body), start + stop), 4096):
            handler.wfile.write(body[position : min(position + 4096, start + stop)])
            handler.wfile.flush()
            time.sleep(self.pause)


@pytest.fixture
def serve():
    """``serve({name: bytes})`` starts a server and returns it."""
    running = []

    def start(files: dict[str, bytes]) -> Server:
        server = Server(files)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    server.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(httpd)
        threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        server.url = f"http://127.0.0.1:{httpd.server_port}"
        return server

    yield start
    for httpd in running:
        httpd.shutdown()
        httpd.server_close()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without data folder, with an empty cache (returned) and without the wheel."""
    monkeypatch.delenv("GRAPHVEIL_DATA", raising=False)
    monkeypatch.setenv("GRAPHVEIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("graphveil.graph.data.load.wheel_files", lambda: None)
    monkeypatch.setattr("graphveil.graph.data.places.wheel_files", lambda: None)
    return tmp_path / "cache"
