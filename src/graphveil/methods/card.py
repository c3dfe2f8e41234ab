"""What is worth knowing about a method before using it; the texts of our own methods are in ``cards.toml``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any

from graphveil.methods.registry import ENTRIES
from graphveil.privacy.plan import Gap


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
    readings: str = ""  # of published mode: where it departs from its paper, and the measured effect

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@cache
def card(name: str) -> Card:
    entry = ENTRIES[name]
    return Card(name, **{field.name: entry[field.name] for field in fields(Card)[1:] if field.name in entry})


@cache
def gaps(name: str) -> tuple[Gap, ...]:
    """The known gaps in what the paper of this method claims."""
    return tuple(Gap(**entry) for entry in ENTRIES[name]["gap"])
