"""What the attacker holds before the attack: whose rows, clean or released, and which edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.attacks.target import dense, rows_of
from graphveil.errors import InputError
from graphveil.graph import Graph


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The attacker's side of the game.

    Args:
        rows: one row of attributes per node as the attacker holds them (dense or SciPy sparse); clean unless ``released``
            says how they were randomised.
        nodes: whose rows those are: a Boolean mask; the attacker queries and guesses only about these nodes.
        edge_share: the share of the game's answers the attacker knows and may learn from (link stealing).
        released: in words, how the rows were randomised, or None for clean rows.
    """

    rows: Any
    nodes: np.ndarray
    edge_share: float = 0.0
    released: str | None = None

    def __post_init__(self) -> None:
        if self.nodes.dtype != bool or self.nodes.shape != (self.rows.shape[0],):
            raise InputError(f"the attacker's nodes must be a boolean mask of length {self.rows.shape[0]}")
        if not 0 <= self.edge_share < 1:
            raise InputError(f"the share of answers the attacker knows must lie in [0, 1), got {self.edge_share:g}")

    @classmethod
    def of(cls, graph: Graph, edge_share: float = 0.0) -> Knowledge:
        """Everybody's clean rows."""
        return cls(rows_of(graph), np.ones(graph.nodes, dtype=bool), edge_share)

    @classmethod
    def released_by(cls, graph: Graph, randomizer: Any, seed: int | None, edge_share: float = 0.0) -> Knowledge:
        """Everybody's report of a local randomizer for features: one stored report each, seen by the attacker as estimates."""
        reports, words = released(rows_of(graph), randomizer, seed)
        return cls(reports, np.ones(graph.nodes, dtype=bool), edge_share, words)

    def check(self, nodes: np.ndarray) -> None:
        """Refuse cases about nodes the attacker knows nothing of."""
        strangers = nodes[~self.nodes[nodes]]
        if len(strangers):
            raise InputError(
                f"the attacker does not know node {strangers[0]} ({len(strangers)} in all): draw pairs with among=knowledge.nodes"
            )

    def dense(self, nodes: np.ndarray) -> np.ndarray:
        """The rows of these nodes."""
        return dense(self.rows[nodes])

    def __str__(self) -> str:
        whose = "everybody's" if self.nodes.all() else f"{int(self.nodes.sum())} nodes'"
        what = f"{whose} attributes ({self.released or 'clean'})"
        return what + (f", {100 * self.edge_share:.0f} % of the answers" if self.edge_share else ", no edges")


def released(rows: Any, randomizer: Any, seed: int | None) -> tuple[Any, str]:
    """Everybody's report of a local randomizer for features, and in words what it is."""
    from graphveil.privacy.noise import Noise

    words = f"{type(randomizer).__name__} reports, epsilon {randomizer.epsilon:.3g} per person"
    return randomizer.randomize(rows, None, Noise(seed)), words


def feature_randomizer(name: str, epsilon: float, width: int) -> Any:
    """The randomizer ``name`` for rows of ``width`` attributes in 0..1 at ``epsilon`` per person."""
    from graphveil.exchange import randomizers

    known: dict[str, Callable[[], Any]] = {
        "multi-bit": lambda: randomizers.MultiBit(epsilon, width),
        "direction": lambda: randomizers.Direction(epsilon, width, projected=None if width <= 128 else 64),
        "piecewise": lambda: randomizers.Piecewise(epsilon, width, lower=0.0, upper=1.0),
        "laplace": lambda: randomizers.LaplaceRows(epsilon, width),
    }
    if name not in known:
        raise InputError(f"unknown reports {name!r}; known are: {', '.join(known)}")
    return known[name]()
