"""The folder of a run: what may be published, and beside it the folder ``curator`` with what must not leave the curator.

Rows of a table whose noise leaves out the row's own node (``own_row_excluded``) are for that node alone. They are saved apart,
with a manifest of their own, so that copying all files but that folder publishes nothing that the promise does not cover. The
digests of ids (``alignment.py``) and their key are kept there, too.
Tests: ``tests/methods/test_own_rows.py``, ``tests/methods/test_alignment.py``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphveil.errors import InputError
from graphveil.files import write_json

CURATOR = "curator"
OWN_ROWS = "own_rows.safetensors"
IDS = "ids.json"
PUBLISHED_FILES = ("certificate.json", "ledger.jsonl", "model.json", "model.safetensors", "ids.json")
KEPT_FILES = (OWN_ROWS, IDS)


def open_run_folder(folder: Path) -> None:
    """Create the folder of a run; refuse one that already holds a finished run."""
    if (folder / "certificate.json").exists():
        raise InputError(f"{folder} already holds a run; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be created: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"the folder {folder} is not writable")


def file_digests(folder: Path, names: Iterable[str] = PUBLISHED_FILES) -> dict[str, str]:
    """SHA-256 of those of these files that are there; all of them hold released values only."""
    found = (name for name in names if (folder / name).is_file())
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in found}


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, path)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    try:
        return dict(load_file(path))
    except Exception as error:  # safetensors raises its own, undocumented types
        raise InputError(f"{path} cannot be read: {error}") from None


def keep_with_curator(run: Path, own_rows: Mapping[str, np.ndarray], ids: Any) -> None:
    """Write what must not be published, if there is anything, into a folder that only its owner may open."""
    if not own_rows and ids is None:
        return
    folder = run / CURATOR
    folder.mkdir(mode=0o700, exist_ok=True)
    if own_rows:
        write_arrays(folder / OWN_ROWS, own_rows)
    if ids is not None:
        write_json(folder / IDS, ids)
    write_json(folder / "manifest.json", file_digests(folder, KEPT_FILES))
