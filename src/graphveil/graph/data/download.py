"""Fetch one file so that it is either complete and right, or not there.

Bytes go to ``NAME.part`` beside the target; a broken or killed transfer continues from there with an HTTP range
request, valid only while the server still has the same version (``If-Range``). The target appears by one atomic
rename, after length and, where known, sha256 were checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from graphveil.errors import InputError

Progress = Callable[[int, int | None], None]
"""Called with bytes so far and bytes in all (None if the server does not say)."""

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
        return _checked(target, target, sha256, url)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        with _locked(part) as handle:
            if not target.exists():
                _transfer(url, handle, part, progress, attempts, timeout)
                _checked(part, target, sha256, url)
                os.replace(part, target)
                _version(part).unlink(missing_ok=True)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise InputError(
            f"cannot download {target.name} ({_reason(error)}): get it from {url} and put it into {target.parent}"
        ) from None
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None
    return target


def _transfer(
    url: str, handle: IO[bytes], part: Path, progress: Progress | None, attempts: int, timeout: float
) -> None:
    for attempt in range(attempts):
        try:
            _attempt(url, handle, part, progress, timeout)
            return
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == attempts - 1:
                raise
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError):
            if attempt == attempts - 1:
                raise


def _attempt(url: str, handle: IO[bytes], part: Path, progress: Progress | None, timeout: float) -> None:
    have = handle.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"User-Agent": "graphveil", "Accept-Encoding": "identity"})
    with contextlib.suppress(OSError):
        version = _version(part).read_text(encoding="utf-8")
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
            _version(part).write_text(version, encoding="utf-8")
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        while chunk := response.read(CHUNK):
            handle.write(chunk)
            have += len(chunk)
            if progress is not None:
                progress(have, total)
        handle.flush()
        if total is not None and have != total:
            raise http.client.IncompleteRead(b"", total - have)


def _checked(path: Path, target: Path, sha256: str | None, url: str) -> Path:
    if sha256 is not None:
        with path.open("rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
        if digest != sha256:
            path.unlink()
            raise InputError(f"{target.name} from {url} is not the known file (sha256 {digest[:16]}…): it was deleted")
    return target


@contextlib.contextmanager
def _locked(part: Path) -> Iterator[IO[bytes]]:
    """Open ``part`` for appending; a second process that wants the same file waits."""
    with part.open("ab") as handle:
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        except ImportError:  # pragma: no cover - no advisory locks on this system
            pass
        yield handle


def _version(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    if isinstance(error, http.client.IncompleteRead):
        return "the connection broke off"
    reason = getattr(error, "reason", error)
    return getattr(reason, "strerror", None) or str(reason) or type(error).__name__
