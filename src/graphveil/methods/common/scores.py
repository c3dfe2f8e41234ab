"""A predictor that is a table of scores: everything was computed when it was made, nothing is read at prediction."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from graphveil.graph import Graph

KIND = "scores"


class ScoresPredictor:
    """Scores (logits) of every slot, computed from releases, reports or public records.

    Args:
        facts: what else is worth keeping about how they came about (for JSON).
        public: whether they may be shown to anybody (``access="charge"``) because they are computed from releases alone.
    """

    slot_arrays = ("scores",)

    def __init__(self, scores: np.ndarray, facts: dict[str, Any] | None = None, *, public: bool = False) -> None:
        self.scores, self.facts, self.public = np.asarray(scores, dtype=np.float64), facts or {}, public

    def logits(self, graph: Graph) -> np.ndarray:
        return self.scores

    def public_logits(self, nodes: int) -> np.ndarray | None:
        """The scores if anybody may see them."""
        return self.scores if self.public else None

    def config(self) -> dict[str, Any]:
        return {"kind": KIND, **self.facts}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"scores": self.scores}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray], *, public: bool = False) -> Self:
        return cls(arrays["scores"], {key: value for key, value in config.items() if key != "kind"}, public=public)
