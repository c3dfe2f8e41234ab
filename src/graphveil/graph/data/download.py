"""Fetch one file so that it is either complete and right, or not there.

Bytes go to ``NAME.part`` beside the target; a broken or killed transfer continues from there with an HTTP range
request, valid only while the server still has the same version (``If-Range``). The target appears by one atomic
rename, after length and, where known, sha256 were checked.

Pooch is no substitute: it downloads into a temporary file that it removes when the transfer breaks, so nothing is ever
resumed, and two processes fetch the same file twice.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from graphveil.errors import InputError
from graphveil.files import draft, locked, sha256_of
from graphveil.progress import Progress

CHUNK = 1 << 18
ATTEMPTS = 3


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
    attempts: int = ATTEMPTS,
    timeout: float = 30.0,
) -> Path:
    """Download ``url`` to ``target`` unless it is already there; resumes what an earlier call left behind."""
    if target.exists():
        _check(target, target, sha256, url)
        return target
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(part) as handle:
            if not target.exists():
                with draft(target, kept=part):
                    _transfer(url, handle, target, progress, attempts, timeout)
                    _check(part, target, sha256, url)
                _version(target).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def _transfer(
    url: str, handle: IO[bytes], target: Path, progress: Progress | None, attempts: int, timeout: float
) -> None:
    for left in reversed(range(attempts)):
        try:
            _attempt(url, handle, target, progress, timeout)
            return
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or not left:
                raise InputError(
                    f"cannot download {target.name} ({_reason(error)}): get it from {url} and put it into "
                    f"{target.parent}"
                ) from None


def _attempt(url: str, handle: IO[bytes], target: Path, progress: Progress | None, timeout: float) -> None:
    have = handle.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "graphveil", "Accept-Encoding": "identity"})
    with contextlib.suppress(OSError):
        version = _version(target).read_text(encoding="utf-8")
        if have and version:
            request.add_header("Range", f"bytes={have}-")
            request.add_header("If-Range", version)
    with urllib.request.urlopen(request, timeout=timeout) as response:
        if response.status != 206:  # the whole file: the server knows no ranges, or its version has changed
            have = 0
            handle.seek(0)
            handle.truncate()
            strong = response.headers.get("ETag") or ""
            version = strong if not strong.startswith("W/") else response.headers.get("Last-Modified") or ""
            _version(target).write_text(version, encoding="utf-8")
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        while chunk := response.read(CHUNK):
            handle.write(chunk)
            have += len(chunk)
            if progress is not None:
                progress(target.name, have, have if total is None else total)
        handle.flush()
        if total is not None and have != total:
            raise http.client.IncompleteRead(b"", total - have)


def _check(path: Path, target: Path, sha256: str | None, url: str) -> None:
    if sha256 is not None and (digest := sha256_of(path)) != sha256:
        path.unlink()
        raise InputError(f"{target.name} from {url} is not the known file (sha256 {digest[:16]}…): it was deleted")


def _version(target: Path) -> Path:
    return target.with_name(target.name + ".part.version")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection broke off"
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__
