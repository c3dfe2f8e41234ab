"""What an audit found: claimed, provable and observed epsilon side by side, and the evidence for the last one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphveil.privacy.plan import finite

GREEN, RED = "no violation found", "violation found"
UNEXPLAINED = "unexplained"  # before the name of a failed check that no known gap of the plan explains
ROUNDING = 1e-9


@dataclass(frozen=True)
class Failure:
    """One check that did not hold, where, and how it showed."""

    check: str
    release: str
    detail: str

    def __str__(self) -> str:
        return f"{self.check} {self.release}: {self.detail}".replace(" :", ":")


@dataclass(frozen=True)
class Share:
    """One release: the largest change that any neighbour made to its clean value, and the one declared."""

    name: str
    measured: float
    declared: float

    @property
    def part(self) -> float:
        """The change in units of the declared one."""
        return self.measured / self.declared if self.declared else math.inf if self.measured > ROUNDING else 0.0

    @property
    def kept(self) -> bool:
        return self.measured <= self.declared * (1 + ROUNDING) + ROUNDING

    def to_json(self) -> dict[str, Any]:
        numbers = {"measured": finite(self.measured), "declared": finite(self.declared)}
        return {"release": self.name, **numbers, "share": finite(self.part) if self.declared else None}


@dataclass(frozen=True)
class Evidence:
    """One lower bound on epsilon (infinite: no bound can hold) and how it was reached.

    ``confidence`` 1 means exact: an enumeration or a closed form. ``code`` names the known gap that it exhibits. ``claim``: what
    the paper's accounting says for this very instance; default the claim of the audit.
    """

    name: str
    epsilon: float
    how: str
    confidence: float = 1.0
    code: str = ""
    claim: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "epsilon": finite(self.epsilon),
            "claimed": None if self.claim is None else finite(self.claim),
            "how": self.how,
            "confidence": self.confidence,
            "code": self.code or None,
            **self.details,
        }


@dataclass(frozen=True)
class Audit:
    """The outcome for one method, mode and promise.

    ``evidence`` is about the audited graph, ``accounting`` about the worst pair of the declared sensitivities (which this graph
    need not contain), ``witnesses`` are instances of their own that show known gaps. ``known_gaps``: those of the plan.
    """

    method: str
    mode: str
    promise: Mapping[str, Any]
    data: str
    settings: Mapping[str, Any]
    claimed: float
    provable: float
    shares: tuple[Share, ...] = ()
    failures: tuple[Failure, ...] = ()
    codes: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    accounting: tuple[Evidence, ...] = ()
    witnesses: tuple[Evidence, ...] = ()
    checks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    known_gaps: tuple[str, ...] = ()
    seed: int | None = None
    seconds: float = 0.0

    @property
    def observed(self) -> float:
        """The largest lower bound on the audited graph."""
        return max((entry.epsilon for entry in self.evidence), default=0.0)

    @property
    def false_alarm(self) -> float:
        """The probability that all is well and the verdict is red: the errors of the sampled bounds and of the law checks."""
        return sum(1 - entry.confidence for entry in (*self.evidence, *self.accounting)) + 4e-8 * (1 + len(self.shares))

    @property
    def violated(self) -> bool:
        beyond = self.observed > self.claimed * (1 + ROUNDING) + ROUNDING
        refuted = [w for w in self.witnesses if w.claim is not None and w.epsilon > w.claim * (1 + ROUNDING)]
        return bool(self.failures) or beyond or bool(refuted) or not all(share.kept for share in self.shares)

    @property
    def unexpected(self) -> bool:
        """Whether it is violated in a way that no known gap of a published mode explains."""
        unexplained = [code for code in self.codes if code.startswith(UNEXPLAINED)]
        return self.violated and (bool(unexplained) or not self.known_gaps)

    @property
    def verdict(self) -> str:
        return RED if self.violated else GREEN

    def to_json(self) -> dict[str, Any]:
        grouped: dict[tuple[str, str], dict[str, Any]] = {}
        for failure in self.failures:
            entry = grouped.setdefault((failure.check, failure.release), {"count": 0, "first": failure.detail})
            entry["count"] += 1
        return {
            "method": self.method,
            "mode": self.mode,
            **self.promise,
            "data": self.data,
            "settings": dict(self.settings),
            "epsilon_claimed": finite(self.claimed),
            "epsilon_provable": finite(self.provable),
            "epsilon_observed": finite(self.observed),
            "observed_unbounded": math.isinf(self.observed),
            "verdict": self.verdict,
            "false_alarm_rate": self.false_alarm,
            "releases": [share.to_json() for share in self.shares],
            **{
                name: [entry.to_json() for entry in getattr(self, name)]
                for name in ("evidence", "accounting", "witnesses")
            },
            "failures": [{"check": c, "release": r, **entry} for (c, r), entry in grouped.items()],
            "codes": list(self.codes),
            "checks": list(self.checks),
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": round(self.seconds, 2),
        }
