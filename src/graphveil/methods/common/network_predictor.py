"""LPGNN's network as it was learned: weights, the scale of its inputs, and the reports and public edges it is asked over.

    logits = GNN((KProp(x' M) - mean)/deviation), M the public random matrix of wide reports, if there is one

Newcomers are added to the graph with their own reports and edges; everybody's reports, and the mean and deviation of training,
stay as they are. Tests: ``tests/cli/test_newcomers.py``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from graphveil.exchange.files import Files
from graphveil.exchange.report import pack, unpack
from graphveil.methods.common.asked import ReportsPredictor, joined_edges, sent_rows
from graphveil.methods.common.reporting import PropagationOptions
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Array

KIND = "network"
RANDOM = 0x2D0  # stream of the public random numbers that newcomers have where features are random


class NetworkPredictor(ReportsPredictor):
    """``rows`` and ``edges`` are what was heard; ``random``: rows are public random numbers, nobody sends any."""

    def __init__(
        self,
        facts: dict[str, Any],
        *,
        options: PropagationOptions,
        weights: dict[str, np.ndarray],
        rows: Any,
        edges: np.ndarray,
        mixing: Array | None,
        mean: Array,
        deviation: Array,
        clear: tuple[str, ...],
        random: bool = False,
    ) -> None:
        super().__init__(facts)
        self.options, self.weights, self.rows, self.edges = options, weights, rows, edges
        self.mixing, self.mean, self.deviation, self.random = mixing, mean, deviation, random
        self.clear = clear  # the parts that were sent in the clear

    @property
    def slot_arrays(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"rows.{name}" for name in pack(self.rows))

    @property
    def clear_arrays(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*(self.slot_arrays if Part.FEATURES in self.clear else ()), "edges")

    def slot_scores(self) -> np.ndarray:
        return self._forward(self.rows, self.edges)

    def newcomers(self, files: Files, directed: bool) -> np.ndarray:
        count = len(files.ids) - files.known
        if self.random:
            own: Any = np.random.default_rng(RANDOM).standard_normal((count, self.rows.shape[1]))
        else:
            own = sent_rows(files)
        if sp.issparse(self.rows):
            rows: Any = sp.vstack([self.rows, sp.csr_matrix(own)], format="csr")
        else:
            rows = np.concatenate([self.rows, own.toarray() if sp.issparse(own) else own])
        return self._forward(rows, joined_edges(self.edges, files, directed))[files.known :]

    def _forward(self, rows: Any, edges: np.ndarray) -> np.ndarray:
        import torch

        from graphveil.learn.backbones import build_backbone
        from graphveil.learn.graph_training import edges_for
        from graphveil.methods.common.backbone_training import mixed, scaled
        from graphveil.methods.common.denoise import propagated

        told, classes = self.options, int(self.facts["classes"])
        network = build_backbone(told.backbone, len(self.mean), told.hidden, classes, told.dropout)
        network.load_state_dict({name: torch.from_numpy(value) for name, value in self.weights.items()})
        network.eval()
        columns = propagated(mixed(rows, self.mixing), edges, told.feature_steps)
        x = torch.as_tensor(scaled(columns, self.mean, self.deviation), dtype=torch.float32)
        with torch.no_grad():
            logits: np.ndarray = network(x, edges_for(told.backbone, edges, len(x))).double().numpy()
        return logits

    def config(self) -> dict[str, Any]:
        told = {"random": self.random, "clear": list(self.clear)}
        return {"kind": KIND, **self.facts, **told}

    def arrays(self) -> dict[str, np.ndarray]:
        found = {f"network.{name}": value for name, value in self.weights.items()}
        found |= {f"rows.{name}": value for name, value in pack(self.rows).items()}
        found |= {"mean": self.mean, "deviation": self.deviation, "edges": self.edges}
        return found | ({} if self.mixing is None else {"mixing": self.mixing})

    @classmethod
    def restore(cls, options: PropagationOptions, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        def below(prefix: str) -> dict[str, np.ndarray]:
            start = f"{prefix}."
            return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}

        told = ("kind", "random", "clear")
        return cls(
            {key: value for key, value in config.items() if key not in told},
            options=options,
            weights=below("network"),
            rows=unpack(below("rows")),
            edges=arrays["edges"],
            mixing=arrays.get("mixing"),
            mean=arrays["mean"],
            deviation=arrays["deviation"],
            clear=tuple(config["clear"]),
            random=bool(config["random"]),
        )


def parts_in_the_clear(promise: Local) -> tuple[str, ...]:
    """The parts that were sent raw, by name."""
    return tuple(part.value for part in promise.raw)
