"""What Roster leaves behind: released numbers, and how a node is scored with them, its own features and its own list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.graph.lists import mass_weights
from graphveil.learn import engine
from graphveil.learn.centred_sums import CentredSums
from graphveil.privacy.noise import Array

# labelled nodes see their own part in the codes of their lists, others do not: theirs come out too small
TEMPERATURE = 1.5

ARRAYS = ("centre", "features", "bias", "codes", "asked", "rows", "prior")
NUMBERS = ("floor", "heard", "row_weight", "push")


@dataclass
class RosterPredictor:
    """Weights of the features, a code per slot, the noisy rows of query and other slots, and what these add to the codes.

    A prediction reads the node's own list: it is for that node alone. ``public_logits`` are computed from releases. People who
    came later have slots behind those of the training data: entries of lists that name them have no code and say nothing.
    """

    centre: Array
    features: Array
    bias: Array
    codes: Array
    asked: np.ndarray
    rows: Array
    floor: int
    prior: Array
    heard: float = 1.0
    row_weight: float = 0.0
    push: float = 0.0
    reads_lists = True
    takes_newcomers = True

    def logits(self, graph: Graph) -> Array:
        everybody, own = np.ones(graph.nodes, dtype=bool), CentredSums(self.centre, self._weights())
        learned = np.zeros((graph.nodes, self.codes.shape[1]))
        learned[: len(self.codes)] = self.codes
        codes = learned.copy()
        codes[self.asked] += self.row_weight * self.rows
        floor, push = self.floor, self.push

        def scores(block: Block) -> Array:
            heard = mass_weights(block.lists.degrees, floor)[:, None] * block.lists.read(codes)
            return np.asarray(own.scores(block.rows) + TEMPERATURE * heard + push * learned[block.slots])

        found = engine.gathered(graph, scores, everybody)
        found *= self.heard
        found += (1 - self.heard) * np.log(self.prior)
        return found

    def _weights(self) -> Array:
        return np.ascontiguousarray(np.concatenate([self.features, self.bias]).T)

    def public_logits(self, nodes: int) -> Array | None:
        """Scores that may be given to anybody, where rows were released: from rows and codes alone."""
        if not len(self.asked):
            return None
        logits = self.push * self.codes
        logits[self.asked] += self.rows
        return logits

    @property
    def slot_arrays(self) -> tuple[str, ...]:
        return ("codes", "asked", "rows")

    def config(self) -> dict[str, Any]:
        return {"kind": "roster", **{name: getattr(self, name) for name in NUMBERS}}

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> RosterPredictor:
        released: dict[str, Any] = {**arrays, **{name: config[name] for name in NUMBERS}}
        return cls(**released)
