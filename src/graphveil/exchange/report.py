"""What a client sends: the reports of some vertices in one round, as bytes without pickles."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Contacts


@dataclass(frozen=True)
class Refusal:
    """A report that was not taken: where it came from (a file or a holder), whose it was, in which round, and why."""

    source: str
    vertex: str
    round: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.round} of {self.vertex!r}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Report:
    """The reports of the vertices ``ids`` of one holder in the round ``round``: one row, or one list, per vertex."""

    round: str
    ids: np.ndarray
    values: Any  # an array, a sparse matrix or Contacts
    holder: str = "all"

    def __post_init__(self) -> None:
        rows = len(self.values) if isinstance(self.values, Contacts) else self.values.shape[0]
        if rows != len(self.ids):
            raise InputError(f"round {self.round!r}: {rows} reports for {len(self.ids)} vertices")

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, numbers: np.ndarray) -> Report:
        """The reports of some of these vertices."""
        lists = isinstance(self.values, Contacts)
        return replace(self, ids=self.ids[numbers], values=self.values.take(numbers) if lists else self.values[numbers])

    def row(self, number: int) -> Any:
        """One vertex's report."""
        return self.values[number].toarray()[0] if sp.issparse(self.values) else self.values[number]

    def to_bytes(self) -> bytes:
        """The same report always gives the same bytes."""
        from safetensors.numpy import save

        arrays = {"ids": np.ascontiguousarray(self.ids, dtype=np.int64)} | pack(self.values)
        about = json.dumps({"holder": self.holder, "round": self.round})  # one entry: the order of several is not fixed
        return bytes(save(arrays, {"report": about}))

    @classmethod
    def from_bytes(cls, content: bytes) -> Report:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            arrays: Any = load(content)
            size = int.from_bytes(content[:8], "little")
            about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["report"])
            ids = arrays.pop("ids")
            if ids.ndim != 1 or ids.dtype.kind not in "iu":
                raise ValueError("ids are whole numbers")
            return cls(str(about["round"]), ids, unpack(arrays), str(about["holder"]))
        except (SafetensorError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"these bytes are no report: {error}") from None


def pack(values: Any) -> dict[str, np.ndarray]:
    """Values as named plain arrays."""
    if isinstance(values, Contacts):
        return {"starts": values.starts.astype(np.int64), "targets": values.targets.astype(np.int64)}
    if sp.issparse(values):
        shape = np.array(values.shape, dtype=np.int64)
        parts = {"data": values.data, "indices": values.indices, "indptr": values.indptr}
        return {name: np.ascontiguousarray(part) for name, part in parts.items()} | {"shape": shape}
    return {"values": np.ascontiguousarray(values)}


def unpack(arrays: dict[str, np.ndarray]) -> Any:
    """The inverse of :func:`pack`."""
    if "targets" in arrays:
        return Contacts(arrays["starts"], arrays["targets"])
    if "indptr" in arrays:
        shape = (int(arrays["shape"][0]), int(arrays["shape"][1]))
        found = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        found.check_format(full_check=True)
        return found
    return arrays["values"]


def digest_of(broadcast: Any) -> str:
    """SHA-256 of a (public) broadcast; empty if there is none."""
    if broadcast is None:
        return ""
    arrays, state = pack(broadcast), hashlib.sha256()
    for name in sorted(arrays):
        state.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        state.update(arrays[name].tobytes())
    return state.hexdigest()
