"""A central model behind a service: one's own prediction for oneself, and for analysts what was paid for as public."""

import numpy as np
import pytest
from fastapi.testclient import TestClient

import graphveil as gv
from graphveil.graph import powerlaw_sbm, random_split, write_npz
from graphveil.service.app import create_app
from graphveil.service.tokens import create_token
from tests.service.conftest import Caller, unlimited


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    graph = random_split(powerlaw_sbm(1, nodes=200, features=5, classes=3, homophily=0.9), 0)
    return write_npz(graph, tmp_path_factory.mktemp("data") / "graph.npz")


def served(folder, method, promise, data, shown=True):
    loaded = gv.load_dataset(str(data), seed=0)
    model = method.fit(loaded, promise)
    model.save(folder / "run")
    settings = unlimited(folder / "service", run=folder / "run", data=str(data) if shown else None)
    return TestClient(create_app(settings)), model, loaded


def test_a_person_gets_their_own_prediction_and_an_analyst_none_that_was_not_paid_for(tmp_path, data):
    client, model, loaded = served(tmp_path, gv.DpMlp(steps=5), gv.NodeLevel(4), data)
    with client:
        service = Caller(client)
        run = tmp_path / "run"
        me = create_token(service.store, "person", record="17", run=run)
        analyst = create_token(service.store, "analyst", run=run)
        found = service("GET", "/v1/run/prediction", me)
        assert found.status_code == 200, found.text
        (own,) = found.json()["predictions"]
        assert own["id"] == "17" and own["probabilities"] == pytest.approx(model.predict_proba(loaded)[17].tolist())
        assert "that node" in found.json()["audience"]
        nobody = create_token(service.store, "person", record="1700", run=run)
        assert service("GET", "/v1/run/prediction", nobody).status_code == 404
        refused = service("GET", "/v1/run/predictions", analyst)
        assert refused.status_code == 403 and "own prediction" in refused.json()["detail"]
        assert service("GET", "/v1/run/predictions", me).status_code == 403
        assert service("GET", "/v1/run/prediction").status_code == 401
        assert service("GET", "/v1/run").json()["certificate"]["epsilon"] <= 4


def test_where_only_edges_are_protected_an_analyst_sees_everybody(tmp_path, data):
    client, model, loaded = served(tmp_path, gv.EdgeRand(epochs=2), gv.EdgeLevel(4), data)
    with client:
        service = Caller(client)
        found = service("GET", "/v1/run/predictions", "operator")
        assert found.status_code == 200, found.text
        told = np.array([one["prediction"] for one in found.json()["predictions"]])
        assert np.array_equal(told, model.predict(loaded, access="charge").numpy())
        assert "anybody may see" in found.json()["audience"]


def test_without_a_run_there_is_nothing_to_ask(service):
    assert service("GET", "/v1/run").status_code == 404
    assert service("GET", "/v1/run/predictions", "operator").status_code == 404
