"""What a service carries, measured: service and senders are separate processes on loopback, for a bounded time.

    python benchmarks/service.py load [--store sqlite|postgres|URL] [--seconds 60] [--batch 100] [--senders 2]
    python benchmarks/service.py kills [--store sqlite|postgres|URL] [--moments 20]
    python benchmarks/service.py train [--store sqlite|postgres|URL] [--reports 1000000]

``load`` prints reports per second, p50 and p99 of a request, errors, the memory of the service over time and its CPU time;
``kills`` kills it with SIGKILL at random moments under load, while it trains, every second time with the process of the job,
and counts what was acknowledged and what is there, what became of the jobs, and which tokens are good; ``train`` stores reports
and loads them as a training job does. ``--store postgres`` starts a server of its own from the wheel ``pgserver``.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

RUN = """
import sys
from pathlib import Path
from graphveil.service.running import run_service
from graphveil.service.settings import Settings
from graphveil.service.watch import log
import logging
log.setLevel(logging.ERROR)
run_service(Settings(Path(sys.argv[1]), sys.argv[2] or None, rate=1e9, burst=1e9, trains=sys.argv[3] == "trains"), "127.0.0.1", 0)
"""
PATH = "/v1/collections/demo/reports"
WIDTH, CLASSES = 16, 4


class Service:
    """A service in a process of its own."""

    def __init__(self, folder: Path, url: str | None, *, trains: bool = False) -> None:
        self.words = [sys.executable, "-c", RUN, str(folder), url or "", "trains" if trains else ""]

    def start(self) -> str:
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return self.process.stdout.readline().split()[-1]

    def memory(self) -> float:
        """MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, how: int = signal.SIGTERM) -> None:
        os.kill(self.process.pid, how)
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def stored(asked: argparse.Namespace):
    """A store with one collection, and a token."""
    from graphveil.service.planning import Wanted, planned
    from graphveil.service.store import Store
    from graphveil.service.tokens import create_token

    with tempfile.TemporaryDirectory() as temporary:
        url, server = None if asked.store == "sqlite" else asked.store, None
        if url == "postgres":
            import pgserver

            server = pgserver.get_server(Path(temporary) / "postgres")
            url = server.get_uri()
        store = Store(Path(temporary) / "service", url)
        store.upgrade()
        wanted = Wanted("demo", "lpgnn", CLASSES, WIDTH, 2.0, 1.0, "raw", options={"compress": 64, "epochs": 5})
        number = store.create_collection(planned(wanted), open_to_all=True)
        try:
            yield store, url, number, create_token(store, "holder", "east", collection="demo")
        finally:
            store.close()
            if server is not None:
                server.cleanup()


def reports(name: str, numbers: range, coins: random.Random) -> list[dict]:
    """Reports as a client makes them: multi-bit with one attribute, a class, three contacts."""
    found = []
    for number in numbers:
        features = {"at": [coins.randrange(WIDTH)], "is": [coins.choice((-1.0, 1.0))]}
        friends = [f"{name}-{max(0, number - step)}" for step in (1, 2, 3) if number]
        line = {"id": f"{name}-{number}", "features": features, "contacts": sorted({*friends} - {f"{name}-{number}"})}
        found.append(line | {"label": coins.randrange(CLASSES)})
    return found


def send(connection: http.client.HTTPConnection, token: str, lines: list[dict]) -> tuple[int, dict]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    connection.request("POST", PATH, "\n".join(map(json.dumps, lines)).encode(), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def sender(url: str, token: str, name: str, batch: int, until: float, found: multiprocessing.Queue) -> None:
    """Send new reports until the time is over; how long every request took, and how many went wrong."""
    coins, number, errors, times = random.Random(name), 0, 0, []
    connection = http.client.HTTPConnection(urlsplit(url).hostname, urlsplit(url).port, timeout=60)
    while time.time() < until:
        lines = reports(name, range(number, number + batch), coins)
        start = time.perf_counter()
        status, told = send(connection, token, lines)
        times.append(time.perf_counter() - start)
        errors += status != 200 or told["stored"] != batch
        number += batch
    found.put((times, errors))


def load(asked: argparse.Namespace) -> dict:
    from sqlalchemy import func, select

    from graphveil.service.schema import reports as table

    with stored(asked) as (store, url, number, token):
        service = Service(store.folder, url)
        address = service.start()
        found: multiprocessing.Queue = multiprocessing.Queue()
        until, memory = time.time() + asked.seconds, []
        start, spent = time.perf_counter(), service.cpu_seconds()
        told = [(address, token, f"s{n}", asked.batch, until, found) for n in range(asked.senders)]
        senders = [multiprocessing.Process(target=sender, args=one) for one in told]
        for one in senders:
            one.start()
        while time.time() < until:
            time.sleep(min(1.0, asked.seconds / 20))
            memory.append(service.memory())
        answers = [found.get() for _ in senders]
        took = time.perf_counter() - start
        for one in senders:
            one.join()
        spent = service.cpu_seconds() - spent
        service.stop()
        with store.reading() as connection:
            there = connection.execute(select(func.count()).where(table.c.collection == number)).scalar_one()
    times = np.concatenate([one for one, _ in answers])
    late = memory[len(memory) // 5 :]  # after the first fifth, in which everything is imported and cached
    return {
        "reports_per_second": round(asked.batch * len(times) / took, 1),
        "reports": int(asked.batch * len(times)),
        "stored": int(there),
        "errors": sum(errors for _, errors in answers),
        "p50_ms": round(1000 * float(np.percentile(times, 50)), 2),
        "p99_ms": round(1000 * float(np.percentile(times, 99)), 2),
        "service_cpu_ms_per_request": round(1000 * spent / len(times), 3),
        "share_of_a_core": round(spent / took, 3),
        "memory_mib": [round(late[0], 1), round(max(late), 1), round(late[-1], 1)],
        "memory_change": round(late[-1] / late[0] - 1, 4),
        "load_average": round(os.getloadavg()[0], 1),
    }


def call(address: str, token: str, path: str, body: dict | None = None) -> tuple[int, dict]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(urlsplit(address).hostname, urlsplit(address).port, timeout=30)
    content = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", f"/v1/collections/demo/{path}", content, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def workers(folder: Path) -> list[int]:
    """The processes of this service's training jobs."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words, told = (path / "cmdline").read_bytes().split(b"\0"), (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"graphveil.service.worker" in words and f"GRAPHVEIL_FOLDER={folder}".encode() in told:
            found.append(int(path.name))
    return found


def until_killed(address: str, token: str, acknowledged: list[str]) -> None:
    """Batches of new records until the line breaks; what was not acknowledged is sent again next time."""
    connection = http.client.HTTPConnection(urlsplit(address).hostname, urlsplit(address).port, timeout=30)
    while True:
        at = len(acknowledged)
        lines = reports("k", range(at, at + 20), random.Random(at))
        try:
            status, told = send(connection, token, lines)
        except (OSError, http.client.HTTPException):
            return
        assert status == 200 and told["stored"] + told["repeated"] == 20, told
        acknowledged += [line["id"] for line in lines]


def settled(address: str, token: str, seconds: float = 300) -> dict[str, int]:
    """The states of all jobs when none of them is unfinished, or when nobody waits any longer."""
    until, found = time.time() + seconds, []
    while time.time() < until:
        found = [job["state"] for job in call(address, token, "jobs")[1]]
        if not {*found} & {"queued", "running"}:
            break
        time.sleep(0.5)
    return {state: found.count(state) for state in sorted({*found})}


def kills(asked: argparse.Namespace) -> dict:
    """Kill the service at random moments under load and training; what was acknowledged, the jobs and the tokens remain."""
    from sqlalchemy import select

    from graphveil.service.schema import reports as table
    from graphveil.service.tokens import create_token, revoke_token

    coins, acknowledged, started, with_job = random.Random(1), [], 0, 0
    with stored(asked) as (store, url, number, token):
        analyst, revoked = (create_token(store, "analyst", collection="demo") for _ in range(2))
        revoke_token(store, revoked)
        fill(store, number, 2_000)
        service = Service(store.folder, url, trains=True)
        for moment in range(asked.moments):
            address = service.start()
            started += call(address, analyst, "jobs", {})[0] == 202  # 409: the last one is still there
            seconds, both = coins.uniform(0.05, 3.0), moment % 2 == 1
            sender = threading.Thread(target=until_killed, args=(address, token, acknowledged))
            sender.start()
            time.sleep(seconds)
            jobs = workers(store.folder) if both else []
            for pid in (service.process.pid, *jobs):
                os.kill(pid, signal.SIGKILL)
            with_job += bool(jobs)
            sender.join()
            service.process.wait()
            service.process.stdout.close()
        address = service.start()
        states = settled(address, analyst)
        codes = [call(address, one, "jobs")[0] for one in (analyst, revoked)]
        connection = http.client.HTTPConnection(urlsplit(address).hostname, urlsplit(address).port, timeout=30)
        codes.append(send(connection, token, reports("z", range(20), random.Random(0)))[0])
        service.stop()
        with store.reading() as connection:
            there = [row.record for row in connection.execute(select(table.c.record))]
    return {
        "kills": asked.moments,
        "of_them_with_the_job": with_job,
        "acknowledged": len(acknowledged),
        "lost": len(set(acknowledged) - set(there)),
        "twice": len(there) - len(set(there)),
        "jobs_accepted": started,
        "jobs": states,
        "analyst_revoked_holder": codes,
        "load_average": round(os.getloadavg()[0], 1),
    }


def fill(store, number: int, count: int) -> None:
    from graphveil.exchange.wire import stored_record
    from graphveil.service.intake import Batch, write_batches

    coins = random.Random(0)
    for start in range(0, count, 5000):
        lines = reports("t", range(start, min(start + 5000, count)), coins)
        records = [stored_record(line["id"], {key: line[key] for key in line if key != "id"}) for line in lines]
        write_batches(store, [Batch(number, "first", f"h{start // 200_000}", False, records)])


def train(asked: argparse.Namespace) -> dict:
    with stored(asked) as (store, url, number, _):
        start = time.perf_counter()
        fill(store, number, asked.reports)
        filled = time.perf_counter() - start
        words = [sys.executable, __file__, "read", "--folder", str(store.folder), "--reports", str(number)]
        done = subprocess.run([*words, *(["--store", url] if url else [])], capture_output=True, text=True, check=True)
        return {"stored_in_s": round(filled, 1), **json.loads(done.stdout)}


def read(asked: argparse.Namespace) -> dict:
    """What a training job does before it learns, in a process of its own."""
    from graphveil.exchange.server import Server
    from graphveil.methods.local_method import public_coins, split_of_labelled
    from graphveil.methods.registry import build
    from graphveil.privacy.facts import PublicFacts
    from graphveil.service.store import Store
    from graphveil.service.stored import stored_files

    store = Store(asked.folder, None if asked.store == "sqlite" else asked.store)
    _, protocol, _ = store.collections()[0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    files = stored_files(store, asked.reports, protocol)
    method = build(protocol.method, dict(protocol.options))
    masks = split_of_labelled(files.labelled)
    kinds = {kind: int(mask.sum()) for kind, mask in masks.items()}
    facts = PublicFacts(len(files.ids), files.attributes, files.classes or 2, False, {**kinds, "other": 0})
    server = Server(method.plan(facts, files.promise), masks, files, public_coins(None))
    rows, labels, edges = server.ask("features"), server.ask("labels"), server.raw_edges
    took = time.perf_counter() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    store.close()
    return {
        "rows": list(rows.shape),
        "labelled": int((labels >= 0).sum()),
        "arcs": int(edges.shape[1]),
        "seconds": round(took, 1),
        "cpu_seconds": round(time.process_time(), 1),
        "before_mib": round(before),
        "most_mib": round(most),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["load", "kills", "train", "read"])
    parser.add_argument("--store", default="sqlite", help="sqlite, postgres (a server of its own) or a URL.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--senders", type=int, default=2)
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--reports", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    print(json.dumps({"load": load, "kills": kills, "train": train, "read": read}[asked.what](asked)))


if __name__ == "__main__":
    main()
