"""Released reports as the attacker's rows: the local randomizers for features by name."""

from __future__ import annotations

from typing import Any

from graphveil.errors import InputError

NAMES = ("multi-bit", "direction", "piecewise", "laplace")


def feature_randomizer(name: str, epsilon: float, width: int) -> Any:
    """The randomizer ``name`` for rows of ``width`` attributes in 0..1 at ``epsilon`` per person."""
    from graphveil.exchange import randomizers

    if name == "multi-bit":
        return randomizers.MultiBit(epsilon, width)
    if name == "direction":
        return randomizers.Direction(epsilon, width, projected=None if width <= 128 else 64)
    if name == "piecewise":
        return randomizers.Piecewise(epsilon, width, lower=0.0, upper=1.0)
    if name == "laplace":
        return randomizers.LaplaceRows(epsilon, width)
    raise InputError(f"unknown reports {name!r}; known are: {', '.join(NAMES)}")
