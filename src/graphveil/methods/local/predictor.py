"""The recommended recipe as it was learned: a small head, and the source of its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.exchange.files import Files
from graphveil.methods.common.asked import ReportsPredictor
from graphveil.methods.local.sources import Histograms, PublicEdges

if TYPE_CHECKING:
    from graphveil.methods.local.heads import Head

KIND = "head"
SOURCES: dict[str, type[Any]] = {"public-edges": PublicEdges, "histograms": Histograms}


class HeadPredictor(ReportsPredictor):
    """``clear``: the arrays of the source that were sent in the clear."""

    def __init__(
        self, facts: dict[str, Any], head: Head, source: PublicEdges | Histograms, clear: tuple[str, ...]
    ) -> None:
        super().__init__(facts)
        self.head, self.source = head, source
        self.clear_arrays = tuple(f"source.{name}" for name in clear if name in source.arrays())

    @property
    def slot_arrays(self) -> tuple[str, ...]:  # type: ignore[override]
        names = ("reports", "counts0", "counts1", "degrees")
        return tuple(f"source.{name}" for name in self.source.arrays() if name in names)

    def slot_scores(self) -> np.ndarray:
        return self.head.logits(*self.source.slots())

    def blind_scores(self, slots: np.ndarray) -> np.ndarray:
        return self.head.logits(*self.source.blind(slots))

    def newcomers(self, files: Files, directed: bool) -> np.ndarray:
        return self.head.logits(*self.source.newcomers(files, directed))

    def config(self) -> dict[str, Any]:
        kind = next(name for name, cls in SOURCES.items() if isinstance(self.source, cls))
        clear = [name.removeprefix("source.") for name in self.clear_arrays]
        return {"kind": KIND, **self.facts, "head": self.head.name, "source": kind, "clear": clear}

    def arrays(self) -> dict[str, np.ndarray]:
        found = {f"head.{name}": value for name, value in self.head.weights.items()}
        found |= {f"source.{name}": value for name, value in self.source.arrays().items()}
        return found | {"mean": self.head.mean, "deviation": self.head.deviation}

    @classmethod
    def restore(cls, options: Any, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> HeadPredictor:
        """``options``: those of the source that the method has (of belief propagation, or the dispersion)."""
        from graphveil.methods.local.heads import Head

        parts: dict[str, dict[str, np.ndarray]] = {"head": {}, "source": {}}
        for name, value in arrays.items():
            prefix, _, rest = name.partition(".")
            if prefix in parts:
                parts[prefix][rest] = value
        head = Head(config["head"], parts["head"], arrays["mean"], arrays["deviation"])
        source = SOURCES[config["source"]].restore(options, parts["source"])
        return cls({"losses": config["losses"]}, head, source, tuple(config["clear"]))
