"""What a service writes down has ids of requests and keys of tokens, and nothing that anybody sent."""

import io
import json
import logging

import pytest

from graphveil.service.watch import JsonLines, log


@pytest.fixture
def lines():
    """What is logged."""
    sink = io.StringIO()
    handler = logging.StreamHandler(sink)
    handler.setFormatter(JsonLines())
    before, level = log.handlers, log.level
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in sink.getvalue().splitlines()]
    log.handlers, log.propagate = before, True
    log.setLevel(level)


def test_a_request_is_one_line_without_what_was_sent(service, lines):
    service.create()
    private = {"id": "miss-marple", "label": 2, "contacts": ["mister-stringer"]}
    found = service.send([private, private | {"label": 1}])
    service("GET", "/v1/collections/demo/predictions", "east", params={"id": "miss-marple"})
    told = lines()
    one = next(line for line in told if line["route"].endswith("/reports"))
    assert one["status"] == 200 and one["request"] == found.headers["X-Request-ID"] and one["role"] == "holder"
    assert one["token"] == service.tokens["east"].split("_")[1]
    text = json.dumps(told) + service("GET", "/metrics", "operator").text
    secrets = [token.split("_", 2)[2] for token in service.tokens.values()]
    assert not any(word in text for word in ("marple", "stringer", *secrets))


def test_an_id_for_the_request_may_be_given_if_it_is_one(service, lines):
    assert service("GET", "/healthz", headers={"X-Request-ID": "abc-12345"}).headers["X-Request-ID"] == "abc-12345"
    evil = '{"x": 1} \\n'
    assert service("GET", "/healthz", headers={"X-Request-ID": evil}).headers["X-Request-ID"] != evil
    assert lines()[0]["request"] == "abc-12345"


def test_an_error_of_the_service_is_said_without_its_words(service, lines, monkeypatch):
    service.create()

    def broken(*_):
        raise RuntimeError("miss-marple")

    monkeypatch.setattr(service.client.app.state.writer, "put", broken)
    found = service.send([{"id": "a", "contacts": []}])
    assert found.status_code == 500 and "marple" not in found.text and "marple" not in json.dumps(lines())
    assert any(line["event"] == "error" and line["error"] == "RuntimeError" for line in lines())
