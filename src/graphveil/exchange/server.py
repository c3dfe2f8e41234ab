"""The side nobody trusts: it asks rounds, hears reports and what is declared raw, and learns from nothing else.

Where answers come from is one small interface with several implementations: ``in_process`` (a simulation that owns the
clients), ``files`` (what ``graphveil privatize`` wrote), and whatever a service puts behind the same three methods. A server
never holds a client or a clean record; everything it computes is post-processing of reports.
Tests: ``tests/exchange/test_server.py``, ``tests/audit/test_local_replay.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from graphveil.errors import PrivacyError
from graphveil.exchange.collector import Collector
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.report import Report
from graphveil.exchange.round import Round
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.ledger import Ledger
from graphveil.privacy.local import Local, Part
from graphveil.privacy.plan import Plan
from graphveil.progress import Progress


class Answers(Protocol):
    """Where the answers to a round come from."""

    @property
    def holders(self) -> Mapping[str, int]:
        """How many vertices each holder speaks for."""

    def answer(self, round: Round, broadcast: Any) -> Iterable[Report]:
        """Everybody's reports in this round."""

    def in_the_clear(self, part: Part) -> Any:
        """What was sent of a part that the promise declares raw: rows, labels (-1: none) or an edge index."""

    def lengths(self) -> np.ndarray | None:
        """How many contacts every slot has, where that is public."""

    @property
    def reads_everybody(self) -> bool:
        """Whether a published round may read the lists of several people at once; only a simulation can."""

    def answer_with_everybody(self, round: Round, broadcast: Any) -> Contacts:
        """The result of such a round."""


@dataclass
class Server:
    """Public facts, a promise, answers and public coins: all that a local method may learn from."""

    plan: Plan
    masks: Mapping[str, np.ndarray]
    answers: Answers
    coins: np.random.Generator
    ledger: Ledger = field(default_factory=Ledger)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.rounds = {step.name: Round.of(self.plan.release(step.name)) for step in self.plan.steps}
        self.collector = Collector(self.rounds.values(), self.facts.nodes)

    @property
    def facts(self) -> PublicFacts:
        return self.plan.facts

    @property
    def promise(self) -> Local:
        promise = self.plan.promise
        if not isinstance(promise, Local):
            raise PrivacyError(f"a server works under a local promise, not at level {promise.level}")
        return promise

    def ask(self, name: str, broadcast: Any = None) -> Any:
        """One round: the ledger is written, everybody answers, the values come back in the order of the slots."""
        round = self._admit(name)
        for report in self.answers.answer(round, broadcast):
            self.collector.accept(report)
        return self.collector.values(name)

    def ask_everybody(self, name: str, broadcast: Any = None) -> Contacts:
        """A published round that no client could answer, because it reads the lists of several people at once."""
        if not self.answers.reads_everybody:
            raise PrivacyError(f"round {name!r} reads everybody's lists: it runs in published mode only")
        return self.answers.answer_with_everybody(self._admit(name), broadcast)

    def _admit(self, name: str) -> Round:
        if name not in self.rounds:
            raise PrivacyError(f"the plan has no round {name!r}; it has: {', '.join(self.rounds) or 'none'}")
        if any(entry.name == name for entry in self.ledger.entries):
            raise PrivacyError(f"round {name!r} has been asked already; a second one is not in the plan")
        self.ledger.append(self.plan.release(name))
        return self.rounds[name]

    @property
    def raw_rows(self) -> Any:
        return self._clear(Part.FEATURES)

    @property
    def raw_labels(self) -> np.ndarray | None:
        found: np.ndarray | None = self._clear(Part.LABELS)
        return found

    @property
    def raw_edges(self) -> np.ndarray | None:
        found: np.ndarray | None = self._clear(Part.EDGES)
        return found

    @property
    def degrees(self) -> np.ndarray | None:
        return self.answers.lengths()

    def tell(self, stage: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, total)

    def _clear(self, part: Part) -> Any:
        return self.answers.in_the_clear(part) if part in self.promise.raw else None
