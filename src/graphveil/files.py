"""Files that are complete or absent: written beside their place, flushed, then renamed."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from graphveil.errors import InputError


@contextmanager
def draft(path: Path, kept: Path | None = None) -> Iterator[Path]:
    """A path to write to; if nothing goes wrong it becomes ``path``, durably, else it is removed.

    ``kept``: a draft of the caller's, which stays when something goes wrong, to be continued later. Other drafts have
    names of their own, so that two processes never write to the same one.
    """
    beside = kept or path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield beside
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        if kept is None:
            beside.unlink(missing_ok=True)


@contextmanager
def locked(path: Path) -> Iterator[IO[bytes]]:
    """Open ``path`` for appending; a second process that wants the same file waits."""
    with path.open("ab") as handle:
        try:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        except ImportError:  # pragma: no cover - no advisory locks on this system
            pass
        yield handle


def write_text(path: Path, text: str) -> None:
    with draft(path) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path, body: Any) -> None:
    write_text(path, json.dumps(body, indent=1, sort_keys=True) + "\n")


def read_json(path: Path) -> Any:
    """The JSON in a file, or one clear line."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; is {path.parent} a folder written by 'train --out'?") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from None


def read_json_lines(path: Path) -> list[Any]:
    """The objects of a file with one JSON object a line."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; without its ledger a run cannot be verified") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} cannot be read as JSON lines: {error}") from None


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
