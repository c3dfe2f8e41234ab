"""The way through a service: a collection is created, reports arrive, a model is trained, people are scored."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from sqlalchemy import update

from graphveil.exchange.wire import stored_record
from graphveil.exchange.wire_reports import Columns
from graphveil.privacy.noise import Noise
from graphveil.service import predict_api
from graphveil.service.intake import Batch
from graphveil.service.jobs import create_job, read_job
from graphveil.service.planning import Wanted, planned
from graphveil.service.schema import jobs
from graphveil.service.tokens import create_token
from graphveil.service.worker import work
from tests.service.conftest import lines_of


def train(service, number=1, **seed):
    """The job of a collection, done in this process."""
    job = create_job(service.store, number, **{"seed": None} | seed)
    with service.store.writing() as connection:
        connection.execute(update(jobs).where(jobs.c.id == job).values(state="running", worker="here"))
    work(service.store, job, "here")
    return read_job(service.store, job)


def test_from_reports_to_scores_of_newcomers_with_their_certificate(service, people):
    protocol = service.create(options={"epochs": 10})
    assert protocol["stages"]["first"]["fields"] == {"label": False, "contacts": True}
    found = service.send(lines_of(people, 0, 125))
    assert found.status_code == 200 and found.json() == {"stored": 125, "repeated": 0, "refused": []}
    service.send(lines_of(people, 0, 250)[125:], "west")
    assert service("GET", "/v1/collections/demo/certificate").status_code == 404
    job = train(service)
    assert job.state == "done", job.message
    figures = json.loads(job.figures)
    assert figures["people"] == 250 and figures["accuracy"] > 0.8
    certificate = service("GET", "/v1/collections/demo/certificate").json()
    assert certificate["epsilon"] == pytest.approx(3.0) and certificate["holds"]
    assert {name: one["vertices"] for name, one in certificate["holders"].items()} == {"east": 125, "west": 125}
    assert not any("reports alone" in line for line in certificate["assumptions"])  # contacts were sent in the clear
    content = "\n".join(json.dumps(line) for line in lines_of(people, 250, 300, label=False))
    headers = {"Content-Type": "application/x-ndjson"}
    asked = service("POST", "/v1/collections/demo/predict", "analyst", content=content, headers=headers)
    assert asked.status_code == 200, asked.text
    told = asked.json()
    assert told["certificate"] == certificate["digest"] and "anybody may see" in told["audience"]
    right = [one["prediction"] == int(people.y[int(one["id"][1:])]) for one in told["predictions"]]
    assert len(right) == 50 and np.mean(right) > 0.8
    assert all(sum(one["probabilities"]) == pytest.approx(1) for one in told["predictions"])
    assert service.send([{"id": "p299", "contacts": []}]).json()["stored"] == 1  # the question was not kept
    known = service("GET", "/v1/collections/demo/predictions", "west", params={"id": ["p3", "p200"]})
    assert [one["id"] for one in known.json()["predictions"]] == ["p3", "p200"]


def test_a_question_about_very_many_numbers_is_asked_in_parts(service, people, monkeypatch):
    wide = {"method": "lpgnn", "features": 1, "attributes": 5}
    service.create(**wide, options={"epochs": 1})
    lines = [line | {"features": {"at": [0], "is": [1.0]}} for line in lines_of(people, 0, 40)]
    assert service.send(lines).json()["stored"] == 40
    assert train(service).state == "done"
    monkeypatch.setattr(predict_api, "MOST_CELLS", 12)
    asked = [{"id": f"n{v}", "features": {"at": [0], "is": [1.0]}, "contacts": []} for v in range(3)]
    codes = []
    for some in (asked, asked[:2]):
        content = "\n".join(map(json.dumps, some))
        headers = {"Content-Type": "application/x-ndjson"}
        codes.append(
            service("POST", "/v1/collections/demo/predict", "east", content=content, headers=headers).status_code
        )
    assert codes == [413, 200]


def test_where_no_promise_holds_everybody_asks_about_their_own_records_only(service, people):
    service.create(options={"epochs": 2})
    service.send(lines_of(people, 0, 100)[:50], seeded=True)
    service.send(lines_of(people, 0, 100)[50:], "west")
    assert train(service).state == "done"
    assert not service("GET", "/v1/collections/demo/certificate").json()["holds"]

    def asked(role, *ids):
        return service("GET", "/v1/collections/demo/predictions", role, params={"id": ids}).status_code

    assert [asked("east", "p1", "p2"), asked("east", "p1", "p80"), asked("analyst", "p1")] == [200, 403, 403]
    device = create_token(service.store, "holder", "east", record="p1", collection="demo")
    assert [asked(device, "p1"), asked(device, "p2")] == [200, 403]
    line, headers = json.dumps({"id": "late", "contacts": ["p1"]}), {"Content-Type": "application/x-ndjson"}
    predict = lambda role: service("POST", "/v1/collections/demo/predict", role, content=line, headers=headers)
    assert [predict("east").status_code, predict("operator").status_code, predict(device).status_code] == [
        200,
        403,
        422,
    ]
    assert "no promise holds" in predict("east").json()["audience"]
    assert predict("west").status_code == 403  # a score of somebody whose one contact is p1 tells about p1


def test_the_same_report_again_is_acknowledged_and_counted_once(service):
    service.create()
    line = {"id": "a", "label": 1, "contacts": ["b"]}
    assert service.send([line]).json()["stored"] == 1
    again = service.send([line | {"contacts": ["b", "b"]}])  # a contact is in a list once
    assert again.status_code == 200 and again.json() == {"stored": 0, "repeated": 1, "refused": []}


def test_a_caller_who_goes_away_does_not_stop_the_writer(service):
    service.create()
    writer, record = service.client.app.state.writer, stored_record("a", {"contacts": [], "label": 1})
    with service.store.writing():  # the writer waits, and its caller does not
        assert not writer.put(Batch(1, "first", "east", False, [record])).cancel()
    assert writer.put(Batch(1, "first", "east", False, [record])).result(30).repeated == 1


def test_a_bad_report_does_not_harm_the_others(service):
    service.create()
    found = service.send([{"id": "a", "label": 1, "contacts": []}, {"id": "b", "label": 7, "contacts": []}, 3])
    assert found.status_code == 200 and found.json()["stored"] == 1
    assert [one["line"] for one in found.json()["refused"]] == [2, 3]


def test_a_canonical_record_reads_as_it_was_written(service):
    service.create()
    _, _, stage = service.client.app.state.registry.stage("demo", "first")
    body = {"contacts": ["x", "y"], "label": 2}
    record = stored_record("a", body)
    assert json.loads(record.body()) == body and Columns.of([record], stage).contacts == ["x y"]


def test_a_second_stage_is_asked_after_the_first_and_closes_it(service, people):
    service.create(edges=8, options={"epochs": 10, "degrees": "noisy"})
    service.send([{"id": f"p{v}", **({"label": int(people.y[v])} if v % 5 else {})} for v in range(250)])
    assert service.send([{"id": "p1", "counts": [1.0] * 4}], stage="histogram").status_code == 409
    job = train(service)
    assert job.state == "waiting" and "histogram" in job.message
    late = service.send([{"id": "p299", "label": 1}])
    assert late.status_code == 409 and "over" in late.json()["refused"][0]["reason"]
    heard = service("GET", "/v1/collections/demo/rounds/histogram/broadcast", "east")
    table = pa.ipc.open_stream(heard.content).read_all()
    slot = {name: at for at, name in enumerate(table["id"].to_pylist())}
    histogram, noise = service.client.app.state.registry.stage("demo", "histogram")[2].rounds[0].randomizer, Noise(1)

    def told(v):
        contacts = np.array([slot[f"p{u}"] for u in people.friends[v] if u < 250], dtype=np.int64)
        return histogram.randomize([contacts], table["bin"].to_numpy(), noise)

    lines = [{"id": f"p{v}", "counts": told(v)[0].tolist()} for v in range(250)]
    found = service.send(lines, stage="histogram")
    assert found.json()["stored"] == 250, found.text[:500]
    job = train(service)
    assert job.state == "done", job.message
    certificate = service("GET", "/v1/collections/demo/certificate").json()
    assert certificate["epsilon"] == pytest.approx(11.0) and certificate["holds"]
    assert "scores are computed from reports alone" in " ".join(certificate["assumptions"])
    newcomers = [{"id": f"p{v}", "counts": told(v)[0].tolist()} for v in range(250, 300)]
    content, headers = "\n".join(map(json.dumps, newcomers)), {"Content-Type": "application/x-ndjson"}
    scored = service("POST", "/v1/collections/demo/predict", "east", content=content, headers=headers)
    right = [one["prediction"] == int(people.y[int(one["id"][1:])]) for one in scored.json()["predictions"]]
    assert np.mean(right) > 0.7


def test_health_readiness_metrics_and_the_description(service):
    assert service("GET", "/healthz").json()["status"] == "alive" and service("GET", "/readyz").status_code == 200
    service.create()
    service.send([{"id": "a", "contacts": []}])
    assert (
        'graphveil_reports_total{collection="demo",outcome="stored"} 1.0' in service("GET", "/metrics", "operator").text
    )
    assert service("GET", "/metrics", "analyst").status_code == 403
    assert "/v1/collections/{name}/reports" in service("GET", "/openapi.json").json()["paths"]


@pytest.mark.parametrize("method", ["rr-edges", "gap", "nothing"])
def test_a_collection_that_cannot_be_is_refused(service, method):
    body = {"name": "demo", "method": method, "labels": 3, "edges": 4, "features": 1, "attributes": 3, "classes": 3}
    assert service("POST", "/v1/collections", "operator", json=body).status_code == 422
    assert service("GET", "/v1/collections").json() == []


def test_one_job_at_a_time_and_a_cancelled_one_leaves_no_model(service):
    service.create()
    service.send([{"id": "a", "contacts": []}])
    first = service("POST", "/v1/collections/demo/jobs", "analyst", json={})
    assert first.status_code == 202
    assert service("POST", "/v1/collections/demo/jobs", "analyst", json={}).status_code == 409
    job = first.json()["id"]
    assert service("POST", f"/v1/collections/demo/jobs/{job}/cancel", "analyst").json()["state"] == "cancelled"
    assert service("POST", f"/v1/collections/demo/jobs/{job}/cancel", "analyst").status_code == 409
    assert service("POST", "/v1/collections/demo/jobs", "analyst", json={}).status_code == 202


def test_a_report_that_turns_out_to_be_seeded_withdraws_what_was_trained_on_it(service, people):
    service.create(options={"epochs": 2})
    lines = lines_of(people, 0, 60)
    service.send(lines)
    assert train(service).state == "done"
    assert service("GET", "/v1/collections/demo/certificate").json()["holds"]
    assert service.send(lines[:1], seeded=True).json()["repeated"] == 1
    gone = service("GET", "/v1/collections/demo/certificate")
    assert (
        gone.status_code == 404
        and service("GET", "/v1/collections/demo/jobs/1", "analyst").json()["state"] == "withdrawn"
    )
    service.send(lines[:1])  # and saying nothing afterwards does not take it back
    assert train(service).state == "done"
    assert not service("GET", "/v1/collections/demo/certificate").json()["holds"]


def test_what_a_broadcast_tells_in_the_clear_is_declared_public_and_said_everywhere(service, people):
    body = {"name": "demo", "method": "local", "labels": "raw", "edges": 4, "classes": 3, "open": True}
    both = body | {"features": "raw", "attributes": 5}
    for wrong in (body, both | {"public": ["labels"]}, body | {"public": ["labels", "features"]}):
        found = service("POST", "/v1/collections", "operator", json=wrong)
        assert found.status_code == 422 and "public" in found.json()["detail"], wrong
    protocol = service.create(**body, public=["labels"], options={"epochs": 2})
    assert protocol["public"] == protocol["tells"] == ["labels"]
    service.send([{"id": f"p{v}", "label": int(people.y[v])} for v in range(60)])
    assert train(service).state == "waiting"
    heard = service("GET", "/v1/collections/demo/rounds/histogram/broadcast", "east")
    table = pa.ipc.open_stream(heard.content).read_all()
    assert set(zip(table["id"].to_pylist(), table["bin"].to_pylist(), strict=True)) == {
        (f"p{v}", int(people.y[v])) for v in range(60)
    }
    assert service("GET", "/v1/collections/demo/rounds/histogram/broadcast", "analyst").status_code == 403
    told = service("GET", "/v1/collections/demo/summary", "analyst").json()
    assert next(one for one in told["budgets"] if one["part"] == "labels")["told"]
    late = service.send([{"id": "p299", "counts": [0.0] * 4, "degree": 1}], stage="histogram")
    assert (
        late.status_code == 409 and "first stage" in late.json()["refused"][0]["reason"]
    )  # the broadcast does not name it
    lines = [{"id": f"p{v}", "counts": [0.0] * 4, "degree": 1} for v in range(60)]
    assert service.send(lines, stage="histogram").json()["stored"] == 60
    assert train(service).state == "done"
    certificate = service("GET", "/v1/collections/demo/certificate").json()
    assert any("told to all who take part" in line for line in certificate["public"])


def test_an_undeclared_broadcast_of_an_older_collection_stays_here(service):
    wanted = Wanted("demo", "local", 3, labels="raw", edges=4.0, public=["labels"])
    service.create(name="else")
    service.store.create_collection(replace(planned(wanted), public=()))
    token = create_token(service.store, "holder", "east", collection="demo")
    found = service("GET", "/v1/collections/demo/rounds/histogram/broadcast", token)
    assert found.status_code == 403 and "declare public" in found.json()["detail"]
