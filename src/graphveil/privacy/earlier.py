"""Runs on earlier exports of the same people, and what all of them together cost whoever was in every one.

Losses are composed, not epsilons added: exactly for Gaussian noise, as privacy loss distributions otherwise, and for the worst
course of kinds (a training record in one run may be a query record in the next). Each run counts with all that its plan can cost.
Nobody fixed a total beforehand: the sum stands for runs whose epsilon was not chosen by looking at earlier results; a budget book
is a filter and needs no such assumption. Tests: ``tests/privacy/test_earlier.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphveil.errors import InputError
from graphveil.privacy.budget.account import Account
from graphveil.privacy.budget.charge import Charge
from graphveil.privacy.promise import Adjacency, Promise


@dataclass(frozen=True)
class EarlierRun:
    """One of the runs before: the digest of its certificate, its promise, and what it can have cost every kind of record.

    ``taken``: the next run has taken over what it released.
    """

    certificate: str
    method: str
    promise: Promise
    charge: Charge
    seeded: bool = False
    weaker: Mapping[str, Adjacency] = field(default_factory=dict)
    taken: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "certificate": self.certificate,
            "method": self.method,
            "promise": self.promise.to_json(),
            "charge": self.charge.to_json(),
            "seeded": self.seeded,
            "weaker": dict(self.weaker),
            "taken": self.taken,
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> EarlierRun:
        if not any(body["charge"].values()):
            raise InputError("a run before is said to have cost nobody anything: such a run has no certificate")
        return cls(
            str(body["certificate"]),
            str(body["method"]),
            Promise.from_json(body["promise"]),
            Charge.from_json(body["charge"]),
            bool(body["seeded"]),
            {kind: Adjacency(name) for kind, name in body["weaker"].items()},
            bool(body["taken"]),
        )


def together(promise: Promise, charge: Charge, earlier: Iterable[EarlierRun]) -> float:
    """Epsilon, at the delta of this promise, of whoever was in this run and in all earlier ones."""
    return Account(promise, (*(run.charge for run in earlier), charge)).spent
