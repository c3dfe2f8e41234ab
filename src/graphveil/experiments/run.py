"""One run: everything that decides its outcome, and an identifier made from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from graphveil import __version__
from graphveil.errors import InputError
from graphveil.privacy.promise import Promise

TRAINING, AUDIT, CHECKS, REPORTS, FORECAST = "training", "audit", "cross-checks", "reports", "forecast"

FIT_MODELS = frozenset({"lsa2", "membership"})  # attacks that train models of their own on the private graph


@dataclass(frozen=True)
class Run:
    """A method under a promise on a data set with one seed.

    ``seed`` draws split, noise and coins; without one the noise comes from the operating system and ``repeat`` tells runs
    apart. ``delta_rule`` says how delta was asked for; ``label`` is for tables and does not belong to what is run. ``kind``:
    a training unless something else is done (an audit, a forecast, an attack on reports), with ``settings`` of its own.
    ``budget``: the book that pays, which does not belong to what is run either.
    """

    method: str
    mode: str
    options: Mapping[str, Any]
    data: Mapping[str, Any]
    preparation: str | None
    promise: Mapping[str, Any]
    seed: int | None
    repeat: int = 0
    candidates: tuple[Mapping[str, Any], ...] = ()
    selection: str = "none"
    selection_mean: float | None = None
    attacks: tuple[Mapping[str, Any], ...] = ()
    metrics: tuple[str, ...] = ("accuracy",)
    delta_rule: str = "default"
    version: str = __version__
    kind: str = TRAINING
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = field(default="", compare=False)
    budget: str | None = field(default=None, compare=False)

    def charged_to(self, book: str) -> Run:
        """The same run, paid for by this budget book; refused where a book cannot count it."""
        if self.kind != TRAINING or self.candidates or self.promise["level"] in ("local", "none"):
            raise InputError(f"--budget counts single trainings of a curator, and {self.label or self.method} is none")
        if further := sorted({entry["name"] for entry in self.attacks} & FIT_MODELS):
            raise InputError(
                f"--budget counts one training per run, and attack {', '.join(further)} fits further models on the same people: "
                "run it in a sweep of its own, without --budget, and keep its figures to yourself"
            )
        return replace(self, budget=book)

    @property
    def split_seed(self) -> int:
        """The split is public, so that it has a seed even where the noise has none."""
        return self.repeat if self.seed is None else self.seed

    @property
    def secret_length(self) -> bool:
        """Whether nobody may learn how long it takes: the secret number of repetitions of a charged selection shows in it."""
        return self.selection == "charged" and self.seed is None

    def moment(self) -> str:
        """Now, as it may be written down; of a secret length the day alone."""
        now = datetime.now(UTC)
        return now.date().isoformat() if self.secret_length else now.isoformat(timespec="seconds")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Run:
        listed = {name: tuple(body[name]) for name in ("candidates", "attacks", "metrics")}
        return cls(**{**body, **listed})

    @cached_property
    def id(self) -> str:
        """Hash of the specification and the package's version: equal runs have equal names wherever they are asked for."""
        unsaid = ("label", "budget", "kind", "settings") if self.kind == TRAINING else ("label", "budget")
        body = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in unsaid}
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def described(self) -> dict[str, Any]:
        """The fields of a row that are known before anything is run."""
        promise = self.promise
        local = promise["level"] == "local"
        epsilon = None if local or promise["epsilon"] == "inf" else promise["epsilon"]
        return {
            "id": self.id,
            "kind": self.kind,
            "method": self.method,
            "mode": self.mode,
            "options": dict(self.options) | ({"candidates": list(self.candidates)} if self.candidates else {}),
            "label": self.label,
            "dataset": self.data["name"],
            "preparation": self.preparation,
            "split": self.data["split"],
            **{key: promise[key] for key in ("level", "adjacency", "relation")},
            "k": promise.get("k"),
            "max_degree": promise.get("max_degree"),
            "epsilon_target": epsilon,
            "parts": {part: promise[part] for part in ("features", "labels", "edges")} if local else None,
            "delta": promise.get("delta"),
            "delta_rule": self.delta_rule,
            "seed": self.seed,
            "selection": self.selection,
            "version": self.version,
        }


def promise_fields(promise: Promise) -> dict[str, Any]:
    """A promise as a run keeps it: plain text and numbers."""
    return {key: str(value) if isinstance(value, str) else value for key, value in promise.to_json().items()}
