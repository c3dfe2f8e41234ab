"""What is worth knowing about a method before using it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Card:
    """One page on a method: where it comes from, whom one has to trust, what it hides and what it does not."""

    name: str
    summary: str
    paper: str
    trust: str
    protects: str
    public: str
    formula: str
    when: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
