"""The releases that really happened, written down before they leave the process.

With a path, every entry is appended and flushed to disk *before* the noisy value exists, so a killed run can only
over-count what it spent.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from graphveil.errors import InputError
from graphveil.privacy.accounting.loss import Loss, compose
from graphveil.privacy.plan import Release


class Ledger:
    """An append-only list of releases, in memory and optionally on disk (one JSON object per line)."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.entries: list[Release] = []
        self.path = None if path is None else Path(path)
        if self.path is not None and self.path.exists():
            raise InputError(f"{self.path} already exists; a ledger is never overwritten, choose another folder")

    def append(self, release: Release) -> None:
        if self.path is not None:
            line = json.dumps(release.to_json(), sort_keys=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        self.entries.append(release)

    def spent(self, kind: str) -> tuple[Loss, ...]:
        """What a record of this kind has paid so far."""
        return compose(entry.loss(kind) for entry in self.entries)
