"""Whatever the description allows, and much that it does not, is answered: no request makes the service stumble."""

import os
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

from graphveil.service.app import create_app
from tests.service.conftest import Caller, unlimited

EXAMPLES = int(os.environ.get("GRAPHVEIL_FUZZ", "2"))
schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_it_is(_, value):
    """A body of any kind as bytes."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with TestClient(create_app(unlimited(tmp_path_factory.mktemp("service"))), raise_server_exceptions=False) as client:
        found = Caller(client)
        found.create()
        found.send([{"id": "a", "label": 1, "contacts": []}])
        yield found


def operations():
    """Every operation of the description; where the store is does not matter to it."""
    app = create_app(unlimited(Path("nowhere")))
    return [found.ok() for found in schemathesis.openapi.from_dict(app.openapi()).get_all_operations()]


@pytest.mark.parametrize("operation", operations(), ids=lambda one: f"{one.method} {one.path}")
@pytest.mark.parametrize("mode", [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE], ids=str)
def test_no_request_is_a_server_error(operation, mode, service):
    try:
        cases = operation.as_strategy(generation_mode=mode)
    except Exception:  # nothing can be wrong with a request that has no parameters
        pytest.skip("every request of this operation is a good one")
    asked = 0

    @given(case=cases)
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=[*HealthCheck]
    )
    def check(case):
        nonlocal asked
        for role in ("east", "operator"):
            asked += 1
            assert answer(service, case, role).status_code < 500

    try:
        check()
    except Unsatisfiable:
        pytest.skip("no such request can be made")
    assert asked


def answer(service, case, role):
    if role == "operator" and "name" in (case.path_parameters or {}):
        case.path_parameters["name"] = "demo"  # a name drawn at random is never that of a collection
    told = case.as_transport_kwargs(base_url="http://testserver")
    headers = {**(told.pop("headers", None) or {}), "Authorization": f"Bearer {service.tokens[role]}"}
    body = {key: told[key] for key in ("json", "data") if told.get(key) is not None}
    content = {"content" if isinstance(value, (bytes, str)) else key: value for key, value in body.items()}
    plain = {key: value for key, value in headers.items() if _sendable(key) and _sendable(value)}
    return service.client.request(told["method"], told["url"], headers=plain, params=told.get("params"), **content)


def _sendable(text):
    return text.isascii() and text.isprintable()
