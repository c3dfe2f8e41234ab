"""How long work reports where it is: the stage, what is done, what there is to do."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Tells nobody."""
