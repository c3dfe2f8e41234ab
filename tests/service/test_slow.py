"""Whoever is slow is let go, whoever is large holds up nobody, and whoever is no longer welcome hears nothing more."""

import http.client
import json
import socket
import threading
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from graphveil.cli.app import main
from graphveil.service import reports_api
from graphveil.service.app import create_app
from graphveil.service.tokens import revoke_token
from tests.service.conftest import Caller, listening, unlimited

WAIT = 20  # seconds after which a test gives up


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A service on a port that has little patience and few lines."""
    settings = replace(unlimited(tmp_path_factory.mktemp("service")), slowest_head=0.3, slowest_body=0.3)
    app = create_app(replace(settings, most_connections=6))
    with TestClient(app) as client, listening(app) as url:
        service = Caller(client)
        service.create()
        service.where = (urlsplit(url).hostname, urlsplit(url).port)
        yield service


def said(line):
    """Everything until the line is closed."""
    found = b""
    while part := line.recv(1 << 16):
        found += part
    return found


def ask(service, path, role="analyst"):
    line = http.client.HTTPConnection(*service.where, timeout=WAIT)
    line.request("GET", path, headers={"Authorization": f"Bearer {service.tokens[role]}"})
    return line.getresponse()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: here\r\nX-Slow: "], ids=["nothing", "half"])
def test_a_request_that_never_ends_is_let_go(here, sent):
    with socket.create_connection(here.where, timeout=WAIT) as line:
        line.sendall(sent)
        assert said(line) == b""


def test_a_line_that_is_kept_alive_is_let_go_as_well(here):
    with socket.create_connection(here.where, timeout=WAIT) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
        assert line.recv(1 << 16).startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        assert b"HTTP" not in said(line)


def test_a_body_that_never_ends_is_answered_and_let_go(here):
    head = (
        f"POST /v1/collections/demo/reports HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {here.tokens['east']}\r\n"
    )
    with socket.create_connection(here.where, timeout=WAIT) as line:
        line.sendall(f'{head}Content-Type: application/x-ndjson\r\nContent-Length: 900\r\n\r\n{{"id": '.encode())
        assert said(line).startswith(b"HTTP/1.1 408")
    assert ask(here, "/v1/collections/demo/summary").status == 200


def test_beyond_so_many_lines_a_caller_is_told_to_come_back(here):
    lines = [socket.create_connection(here.where, timeout=WAIT) for _ in range(6)]
    assert ask(here, "/healthz").status == 503
    for line in lines:  # they are let go
        assert said(line) == b""
        line.close()
    assert ask(here, "/healthz").status == 200


def test_the_number_of_lines_is_a_flag_and_reaches_the_server(tmp_path, monkeypatch):
    from graphveil.service import running

    told = []
    monkeypatch.setattr(running.uvicorn, "Config", lambda app, host, port, **limits: told.append(limits) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["serve", "--folder", str(tmp_path), "--connections", "7", "--proxy", "10.0.0.1"])
    (limits,) = told
    assert limits["limit_concurrency"] == 7 and limits["forwarded_allow_ips"] == "10.0.0.1" and limits["proxy_headers"]


def test_others_are_answered_while_a_large_body_is_read(here, monkeypatch):
    reading, go_on, read = threading.Event(), threading.Event(), reports_api.received

    def slowly(*words):
        reading.set()
        assert go_on.wait(WAIT)
        return read(*words)

    monkeypatch.setattr(reports_api, "received", slowly)
    answers = []
    lines = [{"id": "a", "label": 1, "contacts": []}]
    sender = threading.Thread(target=lambda: answers.append(post(here, lines)))
    sender.start()
    assert reading.wait(WAIT)
    assert ask(here, "/healthz").status == 200
    go_on.set()
    sender.join()
    assert answers == [200]


def post(service, lines):
    line = http.client.HTTPConnection(*service.where, timeout=WAIT)
    headers = {"Authorization": f"Bearer {service.tokens['east']}", "Content-Type": "application/x-ndjson"}
    line.request("POST", "/v1/collections/demo/reports", "\n".join(map(json.dumps, lines)), headers)
    return line.getresponse().status


def test_a_stream_of_events_ends_when_its_token_is_revoked(here):
    answer = ask(here, "/v1/collections/demo/events")
    assert answer.status == 200 and answer.readline().startswith(b"data: ")
    revoke_token(here.store, here.tokens["analyst"])
    until, ended = time.monotonic() + WAIT, False
    while not ended and time.monotonic() < until:
        ended = answer.readline() == b""  # signs of life come in between
    assert ended
    assert ask(here, "/v1/collections/demo/events").status == 401
