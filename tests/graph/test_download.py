"""Downloads: resumed, atomic, checked; every failure says which file goes where."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import graphveil.graph.data.download as module
from graphveil.errors import InputError
from graphveil.graph.data.download import fetch

BODY = os.urandom(300_000)
SHA256 = hashlib.sha256(BODY).hexdigest()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_fetched_once_and_reported(serve, tmp_path: Path) -> None:
    server, seen = serve({"a.bin": BODY}), []
    target = tmp_path / "raw" / "a.bin"
    fetch(f"{server.url}/a.bin", target, sha256=SHA256, progress=lambda *told: seen.append(told))
    assert target.read_bytes() == BODY and names(target.parent) == ["a.bin"]
    assert seen[-1] == ("a.bin", len(BODY), len(BODY))
    fetch(f"{server.url}/a.bin", target, sha256=SHA256)
    assert len(server.requests) == 1


def test_a_broken_transfer_continues_where_it_stopped(serve, tmp_path: Path) -> None:
    server = serve({"a.bin": BODY})
    server.break_after = [100_000]
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", sha256=SHA256)
    assert server.requests == [("a.bin", None), ("a.bin", "bytes=100000-")]
    assert (tmp_path / "a.bin").read_bytes() == BODY and names(tmp_path) == ["a.bin"]


def test_a_transfer_given_up_leaves_no_target_and_is_resumed_by_the_next_call(serve, tmp_path: Path) -> None:
    server = serve({"a.bin": BODY})
    server.break_after = [100_000, 50_000]
    with pytest.raises(
        InputError, match=r"cannot download a\.bin \(the connection broke off\): get it from .* put it into"
    ):
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", attempts=2)
    assert names(tmp_path) == ["a.bin.part", "a.bin.part.version"]
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", sha256=SHA256)
    assert server.requests[-1] == ("a.bin", "bytes=150000-") and names(tmp_path) == ["a.bin"]


def test_a_killed_process_leaves_no_target_and_the_retry_completes(serve, tmp_path: Path) -> None:
    server = serve({"a.bin": BODY})
    server.pause = 0.02
    target = tmp_path / "a.bin"
    script = (
        "import pathlib, sys; import graphveil.graph.data.download as module; module.CHUNK = 4096;"
        "module.fetch(sys.argv[1], pathlib.Path(sys.argv[2]))"
    )
    arguments = [sys.executable, "-c", script, f"{server.url}/a.bin", str(target)]
    source = Path(module.__file__).parents[3]
    process = subprocess.Popen(arguments, env={**os.environ, "PYTHONPATH": str(source)})
    part = tmp_path / "a.bin.part"
    deadline = time.monotonic() + 20
    while not (part.exists() and part.stat().st_size > 20_000):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    have = part.stat().st_size
    assert not target.exists() and 0 < have < len(BODY)
    server.pause = 0.0
    fetch(f"{server.url}/a.bin", target, sha256=SHA256)
    assert server.requests[-1] == ("a.bin", f"bytes={have}-") and names(tmp_path) == ["a.bin"]


def test_a_changed_file_is_not_glued_to_the_old_half(serve, tmp_path: Path) -> None:
    server = serve({"a.bin": BODY})
    server.break_after = [100_000]
    with pytest.raises(InputError):
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", attempts=1)
    server.files["a.bin"] = other = os.urandom(300_000)
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == other


def test_a_server_without_ranges_starts_over(serve, tmp_path: Path) -> None:
    server = serve({"a.bin": BODY})
    server.ranges, server.break_after = False, [100_000]
    fetch(f"{server.url}/a.bin", tmp_path / "a.bin", sha256=SHA256)
    assert len(server.requests) == 2


def test_a_wrong_checksum_is_refused_and_nothing_stays(serve, tmp_path: Path) -> None:
    server = serve({"a.bin": BODY[:-1] + b"x"})
    with pytest.raises(InputError, match=r"a\.bin from .* is not the known file"):
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", sha256=SHA256)
    assert not (tmp_path / "a.bin").exists() and not (tmp_path / "a.bin.part").exists()
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(InputError, match="is not the known file"):
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin", sha256=SHA256)


def test_a_missing_file_is_not_tried_again(serve, tmp_path: Path) -> None:
    server = serve({})
    with pytest.raises(InputError, match=r"cannot download a\.bin \(HTTP 404\)"):
        fetch(f"{server.url}/a.bin", tmp_path / "a.bin")
    assert len(server.requests) == 1


def test_without_network_the_message_names_file_and_folder(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(InputError) as caught:
        fetch(f"http://127.0.0.1:{port}/a.bin", tmp_path / "raw" / "a.bin", attempts=1)
    assert "a.bin" in str(caught.value) and str(tmp_path / "raw") in str(caught.value) and "\n" not in str(caught.value)


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        fetch("http://127.0.0.1:9/a.bin", tmp_path / "file" / "a.bin", attempts=1)
