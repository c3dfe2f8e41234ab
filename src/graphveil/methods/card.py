"""What is worth knowing about a method before using it; the texts of our own methods are in ``cards.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@cache
def _cards() -> dict[str, tuple[Card, tuple[Gap, ...]]]:
    text = resources.files("graphveil.methods").joinpath("cards.toml").read_text(encoding="utf-8")
    entries = tomllib.loads(text).items()
    found = {name: tuple(Gap(**gap) for gap in entry.pop("gap", ())) for name, entry in entries}
    return {name: (Card(name=name, **entry), found[name]) for name, entry in entries}


def card(name: str) -> Card:
    return _cards()[name][0]


def gaps(name: str) -> tuple[Gap, ...]:
    """The known gaps in what the paper of this method claims."""
    return _cards()[name][1]
