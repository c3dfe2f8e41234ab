"""A holder's command line and a device send to a service that listens; whoever sends again sends the same."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from fastapi.testclient import TestClient

from graphveil.cli.app import main
from graphveil.exchange import upload
from graphveil.service.app import create_app
from tests.service.conftest import Caller, listening
from tests.service.test_service import train

DEVICE = Path(__file__).parents[2] / "examples" / "device.py"


@pytest.fixture
def running(settings, request):
    """A service that is soon tired of a caller, so that clients have to wait."""
    rate, burst = getattr(request, "param", (50.0, 50.0))
    with TestClient(create_app(replace(settings, rate=rate, burst=burst))) as client, listening(client.app) as url:
        service = Caller(client)
        service.create()
        yield service, f"{url}/v1/collections/demo"


@pytest.mark.parametrize("running", [(1.0, 1.0)], indirect=True)
def test_the_command_line_sends_what_it_remembers_and_waits_when_it_is_told_to(running, tmp_path, capsys, monkeypatch):
    service, url = running
    pauses, sleep = [], upload.time.sleep
    monkeypatch.setattr(upload.time, "sleep", lambda seconds: pauses.append(seconds) or sleep(min(seconds, 0.5)))
    table = {"id": [f"p{n}" for n in range(30)], "group": [n % 3 for n in range(30)], "friends": ["p1"] + ["p0"] * 29}
    pa.parquet.write_table(pa.table(table), tmp_path / "records.parquet")

    def send(*more):
        words = [
            "privatize",
            tmp_path / "records.parquet",
            "--to",
            url,
            "--token",
            service.tokens["east"],
            "--json",
            *more,
        ]
        words += ["--labels-epsilon", "3", "--label", "group", "--edges-epsilon", "raw", "--contacts", "friends"]
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        said = capsys.readouterr()
        return stop.value.code or 0, said.out, said.err

    code, out, err = send()
    assert code == 0, err
    told = json.loads(out)
    assert (told["records"], told["drawn"], told["stored"], told["repeated"]) == (30, 30, 30, 0)
    (tmp_path / "records.parquet").rename(tmp_path / "other.parquet")
    pa.parquet.write_table(pa.table(table), tmp_path / "records.parquet")
    told = json.loads(send()[1])
    assert (told["drawn"], told["stored"], told["repeated"], told["refused"]) == (0, 0, 30, {})
    code, out, err = send("--memory", tmp_path / "forgotten")  # a lost memory would draw again: the service refuses
    assert code == 0 and "budget" in next(iter(json.loads(out)["refused"])), err
    assert pauses and max(pauses) >= 0.5  # it was told to wait a second
    code, _, err = send("--token", "gv_x_y")
    assert code == 2 and "401" in err and len(err.splitlines()) == 1


def test_a_round_that_hears_something_is_answered_after_it_was_asked(running, tmp_path, people, capsys):
    service, url = running
    url = url.replace("demo", "rounds")
    service.create(name="rounds", edges=6, options={"epochs": 2})
    friends = [" ".join(f"p{u}" for u in people.friends[v] if u < 100) for v in range(100)]
    table = {"id": [f"p{v}" for v in range(100)], "group": people.y.numpy()[:100], "friends": friends}
    pa.parquet.write_table(pa.table(table), tmp_path / "records.parquet")

    def send(*flags):
        with pytest.raises(SystemExit) as stop:
            words = ["privatize", tmp_path / "records.parquet", "--to", url, "--token", service.tokens["east"], *flags]
            main([str(word) for word in [*words, "--contacts", "friends", "--json"]])
        said = capsys.readouterr()
        return (stop.value.code or 0), said.out or said.err

    edges = ("--round", "histogram", "--edges-epsilon", "6")
    code, said = send(*edges)
    assert code == 2 and "404" in said  # nobody has been asked yet
    assert json.loads(send("--labels-epsilon", "3", "--label", "group")[1])["stored"] == 100
    assert train(service, 2).state == "waiting"
    code, said = send("--round", "histogram", "--edges-epsilon", "5")
    assert code == 2 and "allowed" in said  # the owner decides what a round may cost
    first = json.loads(send(*edges)[1])
    assert (first["drawn"], first["stored"]) == (100, 100)
    assert json.loads(send(*edges)[1])["repeated"] == 100
    job = train(service, 2)
    assert job.state == "done", job.message
    assert json.loads(job.certificate)["epsilon"] == pytest.approx(9.0)


def test_nobody_tells_others_their_label_without_having_said_so(running, tmp_path, capsys):
    service, url = running
    service.create(name="told", labels="raw", edges=4, public=["labels"])
    (tmp_path / "records.csv").write_text("id,group,friends\na,1,b\nb,2,a\n")

    def send(*more):
        words = ["privatize", tmp_path / "records.csv", "--to", url.replace("demo", "told"), *more, "--json"]
        words += ["--token", service.tokens["east"], "--labels-epsilon", "raw", "--label", "group"]
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        return stop.value.code or 0, capsys.readouterr()

    code, said = send()
    assert code == 2 and "--public labels" in said.err and "all who take part" in said.err
    code, said = send("--public", "labels")
    assert code == 0 and json.loads(said.out)["stored"] == 2


def test_a_device_needs_nothing_but_python(running, tmp_path):
    service, url = running
    words = [sys.executable, "-S", str(DEVICE), url, service.tokens["west"], "phone-1", "2", "p0", "p1"]
    for expected in ({"stored": 1, "repeated": 0}, {"stored": 0, "repeated": 1}):
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == expected | {"refused": []}
    assert len(DEVICE.read_text().split('"""')[2].strip().splitlines()) <= 42
