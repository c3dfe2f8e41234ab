"""What has been randomised, kept where the records are: a record is drawn once per round, whatever the files are called.

Two draws of one record cost twice epsilon. A folder therefore remembers, for every reports file, which records it answers for: a
keyed digest of each id, so that the folder without its ``key`` says nothing about who takes part (64 bits: two people whose
digests meet would be refused, never drawn twice). Features and labels are drawn once for good, contacts once per round that is
asked. What was drawn is written down, durably, before the reports file appears under its name: a killed process can only
over-count. Tests: ``tests/cli/test_memory.py``.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np

from graphveil.errors import InputError, PrivacyError
from graphveil.exchange.drawn import OWNER_ONLY, Drawn
from graphveil.exchange.round import Round
from graphveil.files import draft, locked
from graphveil.privacy.local import Part

FOLDER = "graphveil-memory"
SENT = "reports.sqlite"


class Memory:
    """The folder ``path``, made when it is first used."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def _key(self) -> bytes:
        """Drawn once, readable by the owner only."""
        path = self.path / "key"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with locked(self.path / "lock"):
                if not path.exists():
                    with draft(path) as beside:
                        beside.touch(OWNER_ONLY)
                        beside.write_bytes(secrets.token_bytes(32))
                key = path.read_bytes()
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be used as a memory ({error.strerror}): give --memory FOLDER"
            ) from None
        if len(key) != 32:
            raise InputError(f"{path} is damaged: without it nobody knows which records have been randomised")
        return key

    def digests(self, ids: Iterable[str]) -> np.ndarray:
        """A keyed digest of each id."""
        key = self._key
        found = b"".join(blake2b(name.encode(), key=key, digest_size=8).digest() for name in ids)
        return np.frombuffer(found, dtype="<u8")

    def keep(self, rounds: Iterable[Round], digests: np.ndarray, out: Path) -> None:
        """Remember that these records are in ``out``; an error, and nothing is kept, if one of them was drawn before."""
        names = [what_is_drawn(round) for round in rounds]
        with locked(self.path / "lock"):
            for name in names:
                self.refuse_again(name, digests)
                self._refuse_sent(name, digests)
            for name in names:
                with draft(self.path / f"{name}.{secrets.token_hex(8)}.drawn") as beside:
                    beside.touch(OWNER_ONLY)
                    beside.write_bytes(json.dumps(out.name).encode() + b"\n" + digests.tobytes())

    def _refuse_sent(self, name: str, digests: np.ndarray) -> None:
        """An error if one of these records was drawn for a service."""
        sent = self.path / SENT
        again = len(Drawn(sent).read(name, digests)) if sent.exists() else 0
        if again:
            raise PrivacyError(
                f"{again} of {len(digests)} records have been randomised already ({name}, for a service): send them there again "
                f"(--to), a second draw would spend the budget again. {self.path} remembers"
            )

    def refuse_again(self, name: str, digests: np.ndarray) -> None:
        """An error if one of these records was drawn for a file."""
        for path in sorted(self.path.glob(f"{name}.*.drawn")):
            where, _, before = path.read_bytes().partition(b"\n")
            again = int(np.isin(digests, np.frombuffer(before, dtype="<u8", count=len(before) // 8)).sum())
            if again:
                raise PrivacyError(
                    f"{again} of {len(digests)} records have been randomised already ({name}, in {where.decode()}): send "
                    f"that file again, a second draw would spend the budget again. {self.path} remembers; other people with "
                    "the same ids need another (--memory FOLDER)"
                )


def what_is_drawn(round: Round) -> str:
    """What is drawn once: a part of the record, or one round on contacts."""
    return f"{Part.EDGES}-{round.name}" if round.part is Part.EDGES else round.part.value
