"""Who is in which slot: the ids of the training data as digests under a key, so that later data are aligned by person.

Released tables have a row per slot, and a row is right for one person only. Ids may be private; a run therefore keeps digests
under a random key, both with the curator: they recognise an id that is given, and nothing about ids is published.
Tests: ``tests/methods/test_alignment.py``.
"""

from __future__ import annotations

import hashlib
import secrets
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.errors import FOR_THE_OPERATOR, DataWarning, InputError

IN_ORDER = "these data have no ids: rows are taken in the order of training, which nothing can check"
NEWCOMERS = (
    "{} of {} ids are not in the training data: these people are scored as newcomers, by their own features and list"
)
NOT_ALIGNED = (
    "these data have ids, and the run has none to align them with (it was trained without ids, or its folder 'curator' is "
    "not here): leave out data.ids (predict --in-order) to take rows in the order of training"
)


@dataclass(frozen=True)
class Order:
    """The digest of the id in every slot, and the key under which it was made."""

    digests: tuple[str, ...]
    key: bytes

    @classmethod
    def of(cls, ids: Iterable[str]) -> Order:
        """Digests under a new key."""
        key = secrets.token_bytes(32)
        return cls(tuple(_digest(name, key) for name in ids), key)

    def slots_of(self, ids: Iterable[str], newcomers: bool = False) -> np.ndarray:
        """The slot of everybody in these data, who must be the people of the training data in any order.

        ``newcomers``: others may be among them, and get the slots after those, in their order; and some may have left.
        """
        slots = self.places_of(ids)
        new = np.flatnonzero(slots < 0)
        if newcomers and 0 < len(new) < len(slots):  # if nobody is known these are other people, or other ids
            said = NEWCOMERS.format(len(new), len(slots))
            warnings.warn(f"{said}, first row {new[0]} {FOR_THE_OPERATOR}", DataWarning, stacklevel=6)
            slots[new] = len(self.digests) + np.arange(len(new))
        if (slots < 0).any():
            raise InputError(
                f"the id of row {int((slots < 0).argmax())} is not in the training data: the releases have no row for this person"
            )
        return slots

    def places_of(self, ids: Iterable[str]) -> np.ndarray:
        """The slot of everybody in these data, and -1 of those who were not there."""
        number = {digest: slot for slot, digest in enumerate(self.digests)}
        return np.array([number.get(_digest(name, self.key), -1) for name in ids], dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key.hex(), "digests": list(self.digests)}

    @classmethod
    def from_json(cls, body: Any) -> Order:
        try:
            return cls(tuple(map(str, body["digests"])), bytes.fromhex(body["key"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the ids of the run are damaged: {type(error).__name__}: {error}") from None


def _digest(name: str, key: bytes) -> str:
    return hashlib.blake2b(str(name).encode(), key=key, digest_size=16).hexdigest()
