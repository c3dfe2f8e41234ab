"""What Ballot leaves behind at node level: released numbers, and how a node is scored with them and its own features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax

from graphveil.graph import Graph
from graphveil.methods.ballot.combiner import Combiner
from graphveil.methods.common.own_predictor import OwnPredictor
from graphveil.privacy.noise import Array


@dataclass
class BallotPredictor:
    """Own predictor, a released row per receiver, and the combiner; nodes without a row get the own prediction.

    ``published`` holds noisy logits of the query nodes that may be given to anybody, ``accuracy`` a released noisy accuracy,
    ``note`` what the user should know, from released values.
    """

    mode: str
    own: OwnPredictor
    receivers: np.ndarray
    table: Array
    combiner: Combiner
    published: Array | None = None
    query: np.ndarray | None = None
    accuracy: float | None = None
    note: str = ""
    takes_newcomers = True

    @classmethod
    def of_own(cls, own: OwnPredictor, note: str) -> BallotPredictor:
        """No graph: everybody gets the own prediction."""
        classes = len(own.weights)
        nobody = np.zeros(0, dtype=np.int64)
        nothing = np.zeros((0, classes)), Combiner.structural(classes, classes)
        return cls("features", own, nobody, *nothing, note=note)

    @property
    def heard_agreement(self) -> bool:
        """Whether the table says what contacts are, in the order of the classes."""
        return self.combiner.scalar

    def logits(self, graph: Graph) -> Array:
        logits: Array = log_softmax(self.own.logits(graph), axis=1)
        if len(self.receivers):
            logits[self.receivers] = self.combiner.logits(logits[self.receivers], self.table)
        return logits

    def public_logits(self, nodes: int) -> np.ndarray | None:
        """Scores that may be given to anybody, if they were paid for: noisy for query nodes, evidence alone for others."""
        if self.published is None or self.query is None:
            return None
        logits = np.zeros((nodes, len(self.combiner.offset)))
        if len(self.receivers):
            logits[self.receivers] = self.table @ self.combiner.mixing + self.combiner.offset
        logits[self.query] += self.published
        return logits

    @property
    def slot_arrays(self) -> tuple[str, ...]:
        """What is stored slot by slot; nothing where everybody gets the own prediction."""
        tables = ("receivers", "table") if len(self.receivers) else ()
        return tables if self.published is None else (*tables, "published", "query")

    def config(self) -> dict[str, Any]:
        told = {"kind": "ballot", "mode": self.mode, "scalar": self.combiner.scalar, "accuracy": self.accuracy}
        return told | ({"note": self.note} if self.note else {})

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {
            **self.own.arrays(),
            "receivers": self.receivers,
            "table": self.table,
            "scale": np.array([self.combiner.log_scale]),
            "mixing": self.combiner.mixing,
            "offset": self.combiner.offset,
        }
        if self.published is not None and self.query is not None:
            arrays |= {"published": self.published, "query": self.query}
        return arrays

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> BallotPredictor:
        combiner = Combiner(float(arrays["scale"][0]), arrays["mixing"], arrays["offset"], config["scalar"])
        own, published = OwnPredictor.restore({}, arrays), (arrays.get("published"), arrays.get("query"))
        released = own, arrays["receivers"], arrays["table"], combiner
        return cls(config["mode"], *released, *published, config["accuracy"], config.get("note", ""))
