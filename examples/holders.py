"""Five holders, a service nobody has to trust, and a model: the local model as a running system, on this machine alone.

    python examples/holders.py [--records 2000] [--folder DIR] [--store URL] [--small] [--method lpgnn] [--epochs N]

It starts ``graphveil serve`` on loopback, lets two processes privatise and upload Cora's records (through a line that drops
answers, so that many are sent again), trains ``lpgnn`` and ``local``, compares classes, accuracy and certificate with the same
clients in one process without any service, and scores people who were not there before.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet

HOLDERS, SEED = 5, 7
ASKED = {"lpgnn": ("1", "2", "raw"), "local": ("withheld", "2", "raw")}


def graphveil(*words: object) -> str:
    """A command, in this process; what it prints."""
    from graphveil.cli.app import main

    out = io.StringIO()
    with redirect_stdout(out):
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            if stop.code:
                raise RuntimeError(f"graphveil {words[0]} ended with {stop.code}") from None
    return out.getvalue().strip()


@contextmanager
def serving(where: list[object]):
    """A service on a free port of loopback."""
    words = [sys.executable, "-m", "graphveil", "serve", *map(str, where), "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    if not line.startswith("listening on "):
        sys.exit(f"the service did not start; it ended with {process.wait()}")
    try:
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextmanager
def dropping(target: str, every: int = 3):
    """A line to the service that loses every third answer to a POST after the service has taken it."""
    host, port = urlsplit(target).hostname, urlsplit(target).port
    lost = [0, 0]

    class Line(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            onward = http.client.HTTPConnection(host, port, timeout=60)
            onward.request(self.command, self.path, body, {k: v for k, v in self.headers.items() if k != "Host"})
            answer = onward.getresponse()
            content = answer.read()
            onward.close()
            lost[0] += self.command == "POST"
            if self.command == "POST" and lost[0] % every == 0:
                lost[1] += 1
                self.connection.close()
                return
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type", ""))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = forward

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Line)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", lost
    finally:
        server.shutdown()


def write_tables(folder: Path, count: int, small: bool):
    """The records of five holders, and of people who come later."""
    from graphveil.graph import load_dataset, powerlaw_sbm, random_split

    if small:
        data = powerlaw_sbm(3, nodes=count + count // 5, features=8, classes=3, homophily=0.95)
        data.x = (data.x - data.x.min()) / (data.x.max() - data.x.min())
        data = random_split(data, 0)
    else:
        data = load_dataset("cora", seed=0)
    count = min(count, data.num_nodes)
    rows = data.x.to_dense().numpy()
    sender, receiver = data.edge_index.numpy()
    labelled = (data.train_mask | data.val_mask).numpy()
    for name in [*range(HOLDERS), "late"]:
        late = name == "late"
        ids = np.arange(count, min(data.num_nodes, count + 200)) if late else np.arange(name, count, HOLDERS)
        end = int(ids.max()) + 1 if late else count
        known = [np.unique(receiver[sender == v]) for v in ids]
        if late:  # noise has a seed here, so no promise holds: the first holder may ask about contacts of its own only
            known = [one[(one >= count) | (one % HOLDERS == 0)] for one in known]
        friends = [" ".join(map(str, one[one < end])) for one in known]
        table = {"id": ids.astype(str)} | {f"w{i}": rows[ids, i] for i in range(rows.shape[1])}
        table |= {"label": pa.array(data.y.numpy()[ids], mask=~labelled[ids]), "friends": friends}
        pa.parquet.write_table(pa.table(table), folder / f"{name}.parquet")
    return data, count


def flags(method: str, label: bool = True) -> list[object]:
    """What the holders allow."""
    features, labels, edges = ASKED[method]
    found: list[object] = ["--features", "w*", "--features-epsilon", features, "--edges-epsilon", edges]
    return [*found, "--contacts", "friends", *(["--labels-epsilon", labels, "--label", "label"] if label else [])]


def upload(folder: Path, url: str, method: str, holder: int, token: str) -> dict:
    """One holder, in another process."""
    words = ["privatize", folder / f"{holder}.parquet", "--to", f"{url}/v1/collections/{method}", "--token", token]
    words += [*flags(method), "--memory", folder / f"memory-{holder}-{method}", "--seed", SEED + holder, "--json"]
    return json.loads(graphveil(*words))


def in_one_process(folder: Path, method: str, classes: int, epochs: int | None):
    """The same clients with the same seeds, files instead of a service."""
    from graphveil.exchange.files import Files
    from graphveil.methods.registry import build

    paths = []
    for holder in range(HOLDERS):
        paths.append(folder / f"{holder}-{method}.parquet")
        words = ["privatize", folder / f"{holder}.parquet", "--out", paths[-1], *flags(method), "--classes", classes]
        words += ["--holder", f"holder-{holder}", "--memory", folder / f"again-{holder}-{method}"]
        graphveil(*words, "--seed", SEED + holder)
    return build(method, {} if epochs is None else {"epochs": epochs}).fit_reports(Files(paths))


def call(url: str, token: str, path: str, body: dict | None = None):
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url + path, content, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--store")
    parser.add_argument("--small", action="store_true", help="A generated graph instead of Cora.")
    parser.add_argument("--method", action="append", choices=list(ASKED), help="Default: both.")
    parser.add_argument("--epochs", type=int, help="Default: the method's own.")
    asked = parser.parse_args(words)
    asked.method = asked.method or list(ASKED)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        run(folder, asked)
    print(f"{time.perf_counter() - start:.0f} s")


def run(folder: Path, asked: argparse.Namespace) -> None:
    data, count = write_tables(folder, asked.records, asked.small)
    classes, width = int(data.y.max()) + 1, data.x.shape[1]
    where = ["--folder", folder / "service", *(["--store", asked.store] if asked.store else [])]
    for method in asked.method:
        features, labels, edges = ASKED[method]
        words = ["serve", "collection", "create", method, method, "--classes", classes, *where]
        words += ["--attributes", 0 if features == "withheld" else width, "--features-epsilon", features]
        graphveil(*words, "--labels-epsilon", labels, "--edges-epsilon", edges, *chosen(asked))
        for number in range(HOLDERS):
            ids = folder / f"{number}.ids"
            ids.write_text("\n".join(map(str, range(number, count, HOLDERS))))
            graphveil("serve", "collection", "enrol", method, ids, "--holder", f"holder-{number}", *where)
    new = ["serve", "token", "create", *where, "--role"]
    tokens = {
        method: [
            graphveil(*new, "holder", "--collection", method, "--holder", f"holder-{number}")
            for number in range(HOLDERS)
        ]
        for method in asked.method
    }
    operator = graphveil(*new, "operator")
    with serving(where) as url:
        send_all(folder, url, asked.method, tokens)
        equal = [check(folder, url, asked, method, tokens[method], operator, data, count) for method in asked.method]
    if not all(equal):
        sys.exit(1)


def chosen(asked: argparse.Namespace) -> list[object]:
    """Options of the method, as flags."""
    return [] if asked.epochs is None else ["--set", f"epochs={asked.epochs}"]


def send_all(folder: Path, url: str, methods: list[str], tokens: dict[str, list[str]]) -> None:
    with dropping(url) as (line, lost), ProcessPoolExecutor(2, get_context("spawn")) as pool:
        pairs = [(method, holder) for method in methods for holder in range(HOLDERS)]
        done = [pool.submit(upload, folder, line, method, holder, tokens[method][holder]) for method, holder in pairs]
        told = [one.result() for one in done]
    total = {key: sum(one[key] for one in told) for key in ("records", "stored", "repeated")}
    print(
        f"{total['records']} records of {HOLDERS} holders sent from 2 processes; {lost[1]} of {lost[0]} answers were lost"
    )
    print(
        f"acknowledged: {total['stored']} at first sight, {total['repeated']} that had arrived before; refused: "
        f"{sum(sum(one['refused'].values()) for one in told)}"
    )


def trained(url: str, operator: str, method: str) -> dict:
    number = call(url, operator, f"/v1/collections/{method}/jobs", {})["id"]
    while True:
        job = call(url, operator, f"/v1/collections/{method}/jobs/{number}")
        if job["state"] not in ("queued", "running"):
            return job if job["state"] == "done" else sys.exit(f"{method}: {job}")
        time.sleep(0.3)


def asked_for(url: str, method: str, tokens: list[str], count: int) -> np.ndarray:
    """Everybody's class, asked for by their own holder: seeded reports carry no promise that others may see it."""
    found: dict[str, int] = {}
    for holder, token in enumerate(tokens):
        own = [f"id={v}" for v in range(holder, count, HOLDERS)]
        for at in range(0, len(own), 400):
            told = call(url, token, f"/v1/collections/{method}/predictions?{'&'.join(own[at : at + 400])}")
            found |= {one["id"]: one["prediction"] for one in told["predictions"]}
    return np.array([found[str(v)] for v in range(count)])


def check(
    folder: Path, url: str, asked: argparse.Namespace, method: str, tokens: list[str], operator: str, data, count: int
) -> bool:
    """Train by the service and in one process; whether classes, accuracy and certificate are the same."""
    job = trained(url, operator, method)
    certificate = call(url, operator, f"/v1/collections/{method}/certificate")
    guess = asked_for(url, method, tokens, count)
    model = in_one_process(folder, method, int(data.y.max()) + 1, asked.epochs)
    alone = dict(zip(model.ids, model.predict().tolist(), strict=True))
    other = np.array([alone[str(v)] for v in range(count)])
    test, truth = data.test_mask.numpy()[:count], data.y.numpy()[:count]
    accuracies = [float(np.mean(one[test] == truth[test])) for one in (guess, other)]
    same = bool((guess == other).all()), certificate == json.loads(json.dumps(model.certificate.to_json()))
    words = ["privatize", folder / "late.parquet", "--to", f"{url}/v1/collections/{method}", "--token", tokens[0]]
    words += ["--newcomers", *flags(method, label=False), "--memory", folder / f"late-{method}"]
    late = [one["prediction"] == int(data.y[int(one["id"])]) for one in json.loads(graphveil(*words))["predictions"]]
    figures = job["figures"]
    words = ["equal" if one else "NOT EQUAL" for one in same]
    print(f"{method}: epsilon {certificate['epsilon']:.3g}, trained by the service and in one process:")
    print(f"  test accuracy {accuracies[0]:.4f} and {accuracies[1]:.4f}; classes {words[0]}, certificate {words[1]}")
    print(f"  released labels say {figures['accuracy']:.3f} +- {figures['standard_error']:.3f}")
    print(f"  {len(late)} newcomers scored, {np.mean(late):.3f} right")
    return all(same)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
