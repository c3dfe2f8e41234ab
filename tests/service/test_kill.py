"""A service is killed under load, for real: what was acknowledged is there exactly once, and jobs and tokens survive.

``benchmarks/service.py kills`` does the same at twenty moments.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from graphveil.service.app import create_app
from graphveil.service.jobs import create_job, read_job
from graphveil.service.planning import Wanted, planned
from graphveil.service.schema import collections, jobs, reports
from graphveil.service.tokens import create_token
from tests.service.conftest import listening, unlimited

RUN = """
import sys
from pathlib import Path
from graphveil.service.running import run_service
from graphveil.service.settings import Settings
run_service(Settings(Path(sys.argv[1]), sys.argv[2] or None, rate=1e6, burst=1e6, trains=False), "127.0.0.1", 0)
"""


class Service:
    """A service in a process of its own."""

    def __init__(self, folder, url):
        self.words = [sys.executable, "-c", RUN, str(folder), url or ""]

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split()[-1] + "/v1/collections/demo"

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


def send(url, token, lines):
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    request = urllib.request.Request(url + "/reports", "\n".join(map(json.dumps, lines)).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def load(service, token, name, acknowledged, stop):
    """Batches of new records until told to stop; what was not acknowledged is sent again."""
    number, url = 0, None
    while not stop.is_set():
        lines = [{"id": f"{name}-{number}-{n}", "label": n % 3, "contacts": []} for n in range(5)]
        try:
            url = service.url
            told = send(url, token, lines)
            assert told["stored"] + told["repeated"] == 5 and not told["refused"]
            acknowledged.extend(line["id"] for line in lines)
            number += 1
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)


@pytest.mark.parametrize("kills", [1])
def test_after_kill_9_every_acknowledged_report_is_there_once(store, url, kills):
    store.create_collection(planned(Wanted("demo", "local", 3, labels=3, edges="raw")), open_to_all=True)
    token = create_token(store, "holder", "east", collection="demo")
    service, acknowledged, stop = Service(store.folder, url), [[], []], threading.Event()
    service.start()
    others = ExitStack()
    threads = [
        threading.Thread(target=load, args=(service, token, f"t{n}", acknowledged[n], stop))
        for n in range(len(acknowledged))
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(kills):
            before = sum(map(len, acknowledged))
            until = time.monotonic() + 60
            while sum(map(len, acknowledged)) < before + 40 and time.monotonic() < until:
                time.sleep(0.01)
            service.kill()
            if url is None:
                service.start()
            else:  # one process less: whoever comes next finds the same database
                client = others.enter_context(TestClient(create_app(unlimited(store.folder, url=url))))
                service.url = others.enter_context(listening(client.app)) + "/v1/collections/demo"
            before, until = sum(map(len, acknowledged)), time.monotonic() + 60
            while sum(map(len, acknowledged)) < before + 10 and time.monotonic() < until:
                time.sleep(0.01)  # those who were cut off send again
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        others.close()
        if service.process.poll() is None:
            service.process.terminate()  # and this time it is asked to stop
            assert service.process.wait(30) == 0
            service.process.stdout.close()
    names = [name for one in acknowledged for name in one]
    with store.reading() as connection:
        stored = [row.record for row in connection.execute(select(reports.c.record))]
    assert len(names) >= 40 * kills and len(stored) == len(set(stored))
    assert set(names) <= set(stored)
    assert len(stored) <= len(names) + 5 * 2 * (kills + 1)  # no more than what was under way when it died


def test_a_job_whose_process_died_starts_again_and_fails_in_the_end(store, monkeypatch):
    from graphveil.service import jobs as module

    monkeypatch.setattr(module.subprocess, "Popen", lambda *_, **__: Dead())
    number = store.create_collection(planned(Wanted("demo", "local", 3, labels=3, edges="raw")))
    job, runner = create_job(store, number, None), module.Runner(store)
    states = []
    for _ in range(2 * module.MOST_ATTEMPTS):
        runner.look()
        states.append(read_job(store, job).state)
        if states[-1] == "failed":
            break
    assert states[:-1] == ["running"] * module.MOST_ATTEMPTS and states[-1] == "failed"
    again = create_job(store, number, None)  # and another one may follow
    with store.writing() as connection:  # a service that was killed left this; its process has not been heard of
        told = {"state": "running", "worker": "gone", "attempts": 1, "heartbeat": time.time() - 2 * module.STALE}
        connection.execute(update(jobs).where(jobs.c.id == again).values(**told))
    fresh = module.Runner(store)
    fresh.look()
    row = read_job(store, again)
    assert row.state == "running" and row.worker != "gone" and row.attempts == 2


class Dead:
    def poll(self):
        return 1


def test_what_was_collected_before_is_still_open_and_old_tokens_are_made_again(store):
    from alembic import command

    from graphveil.service.migrations import _config
    from graphveil.service.tokens import caller_of

    number = store.create_collection(planned(Wanted("demo", "local", 3, labels=3, edges="raw")))
    tokens = [create_token(store, "operator"), create_token(store, "analyst", collection="demo")]
    for go, where in ((command.downgrade, "v0001"), (command.upgrade, "head")):
        with store.engine.connect() as connection:
            config = _config()
            config.attributes["connection"] = connection
            go(config, where)
            connection.commit()
    with store.reading() as connection:
        assert connection.execute(select(collections.c.open).where(collections.c.id == number)).scalar_one()
    assert [caller_of(store, token) is not None for token in tokens] == [True, False]


def test_a_store_of_another_version_is_upgraded_and_says_so(store):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from graphveil.service.migrations import versions
    from graphveil.service.schema import metadata

    have, newest = versions(store.engine)
    assert have == newest
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert Path(store.folder).stat().st_mode & 0o077 == 0
