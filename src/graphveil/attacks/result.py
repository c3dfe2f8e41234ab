"""What an attack hands back: one finding per variant, the controls beside it, and the game in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphveil.attacks.metrics import Figures, measure

BOUND_NOTE = (
    "the epsilon lower bound is valid (95 %) only where every case is decided by its own coin, as in an audit; in one graph "
    "cases depend on each other and on degrees and labels, so scores without any model reach one, too: compare with the controls"
)


@dataclass(frozen=True, eq=False)
class Finding:
    """The figures of one variant of the attack, and the scores they come from."""

    name: str
    truth: np.ndarray
    score: np.ndarray
    figures: Figures

    @classmethod
    def of(cls, name: str, truth: np.ndarray, score: np.ndarray, **options: Any) -> Finding:
        return cls(name, np.asarray(truth, dtype=bool), np.asarray(score), measure(truth, score, **options))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, **self.figures.to_json()}


@dataclass(frozen=True, eq=False)
class AttackResult:
    """One attack: the first finding is the headline, fixed in advance and not the best one found.

    Args:
        attack: name of the attack.
        findings: one per variant.
        controls: scores that need no model, on the same cases.
        game: what was guessed.
        knowledge: what the attacker had.
        facts: further figures, such as the number of queries.
        notes: what has to be read with the figures.
    """

    attack: str
    findings: tuple[Finding, ...]
    controls: tuple[Finding, ...]
    game: str
    knowledge: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = (BOUND_NOTE,)

    @property
    def headline(self) -> Finding:
        return self.findings[0]

    @property
    def auc(self) -> float:
        """Of the headline."""
        return self.headline.figures["auc"]

    def __getitem__(self, name: str) -> Finding:
        return next(finding for finding in (*self.findings, *self.controls) if finding.name == name)

    def to_json(self) -> dict[str, Any]:
        return {
            "attack": self.attack,
            "game": self.game,
            "knowledge": self.knowledge,
            "findings": [finding.to_json() for finding in self.findings],
            "controls": [finding.to_json() for finding in self.controls],
            **self.facts,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        head = (
            "variant", "AUC (95 %)", "avg. precision", "accuracy", "precision", "recall", "F1", "TPR at 1 %", "at 0.1 %",
            "epsilon >=",
        )  # fmt: skip
        rows = [_row(finding, "") for finding in self.findings] + [_row(found, "control: ") for found in self.controls]
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        ]
        told = [f"{self.attack}: {self.game}", f"attacker knows: {self.knowledge}", ""]
        return "\n".join([*told, *lines, "", *(f"note: {note}" for note in self.notes)])


def _row(finding: Finding, prefix: str) -> tuple[str, ...]:
    values = finding.figures.values
    auc = values["auc"]
    rest = [f"{values[name].value:.3f}" for name in list(values)[1:]]
    return (
        prefix + finding.name, f"{auc.value:.3f} ({auc.low:.3f}-{auc.high:.3f})", *rest, f"{finding.figures.epsilon:.2f}"
    )  # fmt: skip
