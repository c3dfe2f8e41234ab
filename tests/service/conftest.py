"""A service in this process, on both stores; PostgreSQL comes from a wheel and listens on a socket in a folder of its own."""

from __future__ import annotations

import json
import secrets
import tempfile
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import uvicorn
from fastapi.testclient import TestClient
from sqlalchemy import create_engine, text

from graphveil.graph import powerlaw_sbm
from graphveil.service.app import create_app
from graphveil.service.running import limits_of
from graphveil.service.settings import Settings
from graphveil.service.store import Store
from graphveil.service.tokens import create_token

CLASSES = 3


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL server without databases of ours.

    For root it runs as another user, who must get to its folder: pytest keeps its own folders shut.
    """
    pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed: no PostgreSQL to test with")
    with tempfile.TemporaryDirectory(prefix="graphveil-postgres-", ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(folder, cleanup_mode="stop")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    """An empty database: None is SQLite in the folder of the service."""
    if request.param == "sqlite":
        return None
    server = request.getfixturevalue("postgres")
    name = f"t{secrets.token_hex(6)}"
    engine = create_engine(server.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?", 1)


@pytest.fixture
def store(tmp_path, url):
    found = Store(tmp_path / "service", url)
    found.upgrade()
    yield found
    found.close()


def unlimited(folder, **others):
    """A service without rates and without training of its own."""
    rates = dict.fromkeys(("rate", "burst", "stranger_rate", "stranger_burst"), 1e6)
    return Settings(folder, **{"trains": False} | rates | others)


@pytest.fixture
def settings(tmp_path):
    return unlimited(tmp_path / "service")


@pytest.fixture
def service(settings):
    """A running application on SQLite."""
    with TestClient(create_app(settings)) as client:
        yield Caller(client)


class Caller:
    """A client with a token of an operator, and of every other role for the collection that was created last."""

    def __init__(self, client):
        self.client, self.store = client, client.app.state.store
        self.tokens = {"operator": create_token(self.store, "operator")}

    def __call__(self, method, path, role=None, **options):
        headers = {} if role is None else {"Authorization": f"Bearer {self.tokens.get(role, role)}"}
        headers |= options.pop("headers", {})
        return self.client.request(method, path, headers=headers, **options)

    def create(self, **fields):
        body = {"name": "demo", "method": "local", "labels": 3, "edges": "raw", "classes": CLASSES, "open": True}
        found = self("POST", "/v1/collections", "operator", json=body | fields)
        assert found.status_code == 201, found.text
        where = {"collection": found.json()["name"]}
        self.tokens["analyst"] = create_token(self.store, "analyst", **where)
        self.tokens |= {name: create_token(self.store, "holder", name, **where) for name in ("east", "west")}
        return found.json()["protocol"]

    def send(self, lines, role="east", kind="application/x-ndjson", **query):
        content = lines if isinstance(lines, (bytes, str)) else "\n".join(json.dumps(line) for line in lines)
        headers = {"Content-Type": kind}
        return self("POST", "/v1/collections/demo/reports", role, content=content, headers=headers, params=query)


@pytest.fixture(scope="session")
def people():
    """300 people with a class and contacts; the last 50 come later."""
    data = powerlaw_sbm(5, nodes=300, features=5, classes=CLASSES, homophily=0.95)
    data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
    sender, receiver = data.edge_index.numpy()
    data.friends = [np.unique(receiver[sender == v]) for v in range(300)]
    return data


@contextmanager
def listening(app):
    """The application on a port of loopback, in a thread."""
    limits = limits_of(app.state.settings) | {"log_level": "error"}
    # no log_config: uvicorn's closes the handlers of others, and absl's then closes the stream that pytest had for stderr
    limits["log_config"] = None
    server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", 0, lifespan="off", **limits))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.state.ready = False
        server.should_exit = True
        thread.join()


def lines_of(people, low, high, label=True):
    """Labels that are sent as they are: a report like any other, as far as a service can tell."""
    found = []
    for v in range(low, high):
        line = {"id": f"p{v}", "contacts": [f"p{u}" for u in people.friends[v] if u < high]}
        found.append(line | ({"label": int(people.y[v])} if label and v % 5 else {}))
    return found
