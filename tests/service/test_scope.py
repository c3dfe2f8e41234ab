"""A token opens what it is for and nothing else, and nobody takes the place of a record that is another's."""

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

import graphveil as gv
from graphveil.errors import InputError
from graphveil.graph import powerlaw_sbm, random_split, write_npz
from graphveil.service.app import create_app
from graphveil.service.enrolment import enrol
from graphveil.service.schema import tokens
from graphveil.service.tokens import all_tokens, caller_of, create_token
from tests.service.conftest import Caller, unlimited

OURS = ["a", "b"]


def line(name, **more):
    return {"id": name, "label": 1, "contacts": []} | more


@pytest.fixture
def two(service):
    """Two collections with a token of every role for the first of them."""
    service.create(name="other")
    others = dict(service.tokens)
    service.create()
    service.others = others
    return service


def test_a_token_of_one_collection_opens_no_other(two):
    assert two.send([line("a")]).status_code == 200
    assert two.send([line("a")], two.others["east"]).status_code == 403
    asked = [("GET", "summary"), ("GET", "jobs"), ("POST", "jobs"), ("GET", "events"), ("GET", "predictions?id=a")]
    for method, path in asked:
        role = two.others["analyst"]
        found = two(method, f"/v1/collections/demo/{path}", role, json={} if method == "POST" else None)
        assert found.status_code == 403 and "another collection" in found.json()["detail"], path
    told = two("GET", "/v1/token", "analyst").json()
    assert told == {"role": "analyst", "collection": "demo", "run": False}


def test_an_operator_may_be_for_one_collection_and_then_runs_nothing_else(two):
    mine = create_token(two.store, "operator", collection="demo")
    body = {"name": "third", "method": "local", "labels": 3, "edges": "raw", "classes": 3}
    assert two("POST", "/v1/collections", mine, json=body).status_code == 403
    assert two("GET", "/metrics", mine).status_code == 403
    assert two("POST", "/v1/collections/other/close", mine).status_code == 403
    assert two("POST", "/v1/collections/demo/close", mine).status_code == 200


def test_tokens_from_before_open_nothing_unless_they_are_an_operators(two):
    with two.store.writing() as connection:
        connection.execute(update(tokens).values(scope=None))
    known = {role: caller_of(two.store, token) is not None for role, token in two.tokens.items()}
    assert known == {"operator": True, "analyst": False, "east": False, "west": False}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two runs on the same graph."""
    folder = tmp_path_factory.mktemp("runs")
    data = random_split(powerlaw_sbm(1, nodes=60, features=3, classes=2, homophily=0.9), 0)
    path = write_npz(data, folder / "graph.npz")
    for name in ("one", "two"):
        gv.DpMlp(steps=2).fit(gv.load_dataset(str(path)), gv.NodeLevel(4)).save(folder / name)
    return folder


def test_a_device_is_no_person_of_a_run_and_a_person_of_one_run_is_nobody_in_another(runs, tmp_path):
    settings = unlimited(tmp_path / "service", run=runs / "one", data=str(runs / "graph.npz"))
    with TestClient(create_app(settings)) as client:
        service = Caller(client)
        service.create()
        device = create_token(service.store, "holder", "people", record="17", collection="demo")
        person, other = (create_token(service.store, "person", record="17", run=runs / name) for name in ("one", "two"))
        codes = [service("GET", "/v1/run/prediction", token).status_code for token in (device, person, other)]
        assert codes == [403, 200, 403]
        assert service.send([line("17")], person).status_code == 403
        assert service("GET", "/v1/collections/demo/predictions?id=17", person).status_code == 403
        assert service("GET", "/v1/run/predictions", "analyst").status_code == 403  # that of a collection
        assert not any(mask.any() for mask in client.app.state.central.graph.masks.values())  # nobody is sorted anew


def test_a_record_of_a_device_cannot_be_taken_by_another_holder(service):
    service.create()
    phone = create_token(service.store, "holder", "phones", record="phone-1", collection="demo")
    squatted = service.send([line("phone-1", label=2)])
    assert squatted.status_code == 403 and squatted.json()["refused"][0]["reason"] == "a record of another holder"
    assert service.send([line("phone-1")], phone).json()["stored"] == 1
    before = len(all_tokens(service.store))
    with pytest.raises(InputError, match="another holder"):
        create_token(service.store, "holder", "east", record="phone-1", collection="demo")
    assert len(all_tokens(service.store)) == before


def test_unless_it_is_open_a_collection_takes_only_who_is_enrolled(service):
    service.create(open=False)
    assert enrol(service.store, 1, "east", OURS) == 2 and enrol(service.store, 1, "east", ["b", "c"]) == 1
    with pytest.raises(InputError, match="another holder"):
        enrol(service.store, 1, "west", ["d", "a"])
    found = service.send([line("a"), line("d")]).json()
    assert found["stored"] == 1 and found["refused"][0]["status"] == 403
    assert "not enrolled" in found["refused"][0]["reason"]
    west = service.send([line("b"), line("d")], "west").json()
    assert (
        west["stored"] == 0 and len(west["refused"]) == 2
    )  # neither another's nor nobody's, and which of them is not said
    assert len({one["reason"] for one in west["refused"]}) == 1
    summary = service("GET", "/v1/collections/demo/summary", "analyst").json()
    assert summary["people"] == 1  # who is enrolled has not taken part


def test_everybody_is_told_what_their_own_records_have_paid(service):
    service.create()
    service.send([line("a"), {"id": "b", "contacts": []}])
    found = service("GET", "/v1/collections/demo/spent", "east", params={"id": ["a", "b", "c"]}).json()
    assert [one["epsilon"] for one in found] == [pytest.approx(3.0), 0.0, 0.0]  # b has told no label, c nothing at all
    assert [one["in_the_clear"] for one in found] == [["edges"], ["edges"], []]
    west = service("GET", "/v1/collections/demo/spent", "west", params={"id": ["a"]}).json()
    assert west[0]["stages"] == {}
    device = create_token(service.store, "holder", "east", record="b", collection="demo")
    assert service("GET", "/v1/collections/demo/spent", device, params={"id": ["a"]}).status_code == 403
