"""LPGNN's network as it was learned: weights, the scale of its inputs, and the reports and edges it is asked over.

    logits = GNN((KProp(x' M) - mean)/deviation), M the public random matrix of wide reports, if there is one

Newcomers are added to the graph with their own reports and edges; everybody's reports, and the mean and deviation of training,
stay as they are. Tests: ``tests/cli/test_newcomers.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.files import Files
from graphveil.exchange.report import pack, unpack
from graphveil.methods.common.asked import ReportsPredictor, joined_edges, sent_rows
from graphveil.methods.common.reporting import PropagationOptions
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Array

KIND = "network"
RANDOM = 0x2D0  # stream of the public random numbers that newcomers have where features are random


class GraphPredictor(ReportsPredictor):
    """A network over public edges, or in published modes reported lists; subclasses say how it sees rows and edges (``forward``).

    ``rows`` and ``edges`` are what was heard, ``kept`` what training fixed about its inputs (means, deviations, random matrices);
    ``random``: rows are public random numbers, or none at all, and nobody sends any.
    """

    kind: ClassVar[str]
    hops: int | None = None  # how far from a vertex its score reads, if that is near

    def __init__(
        self,
        facts: dict[str, Any],
        *,
        options: Any,
        weights: Mapping[str, np.ndarray],
        rows: Any,
        edges: np.ndarray,
        kept: Mapping[str, np.ndarray],
        clear: tuple[str, ...],
        random: bool = False,
    ) -> None:
        super().__init__(facts)
        self.options, self.weights, self.rows, self.edges, self.kept = options, weights, rows, edges, kept
        self.clear, self.random = clear, random  # clear: the parts that were sent in the clear

    @abstractmethod
    def forward(self, rows: Any, edges: np.ndarray) -> np.ndarray:
        """Logits of everybody on this graph."""

    @property
    def slot_arrays(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"rows.{name}" for name in pack(self.rows))

    @property
    def clear_arrays(self) -> tuple[str, ...]:  # type: ignore[override]
        """Edges always: they are raw, or lists of published modes, which no epsilon bounds."""
        return (*(self.slot_arrays if Part.FEATURES in self.clear else ()), "edges")

    def slot_scores(self) -> np.ndarray:
        return self.forward(self.rows, self.edges)

    def newcomers(self, files: Files, directed: bool) -> np.ndarray:
        if Part.EDGES not in self.clear:
            raise InputError(
                "this model learned from private lists: newcomers cannot be scored by contacts in the clear"
            )
        count = len(files.ids) - files.known
        if self.random:
            own: Any = np.random.default_rng(RANDOM).standard_normal((count, self.rows.shape[1]))
        else:
            own = sent_rows(files)
        if sp.issparse(self.rows):
            rows: Any = sp.vstack([self.rows, sp.csr_matrix(own)], format="csr")
        else:
            rows = np.concatenate([self.rows, own.toarray() if sp.issparse(own) else own])
        return self.forward(rows, joined_edges(self.edges, files, directed))[files.known :]

    def config(self) -> dict[str, Any]:
        told = {"random": self.random, "clear": list(self.clear)}
        return {"kind": self.kind, **self.facts, **told}

    def arrays(self) -> dict[str, np.ndarray]:
        found = {f"network.{name}": value for name, value in self.weights.items()}
        found |= {f"rows.{name}": value for name, value in pack(self.rows).items()}
        return found | {"edges": self.edges} | dict(self.kept)

    @classmethod
    def restore(cls, options: Any, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        def below(prefix: str) -> dict[str, np.ndarray]:
            start = f"{prefix}."
            return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}

        told, own = ("kind", "random", "clear"), ("network.", "rows.", "edges")
        return cls(
            {key: value for key, value in config.items() if key not in told},
            options=options,
            weights=below("network"),
            rows=unpack(below("rows")),
            edges=arrays["edges"],
            kept={name: value for name, value in arrays.items() if not name.startswith(own)},
            clear=tuple(config["clear"]),
            random=bool(config["random"]),
        )


class PropagatingPredictor(GraphPredictor):
    """A network on KProp of reports: forward(rows, edges) = scored(spread(columns(rows), edges), edges).

    ``columns`` is affine and works row by row, ``spread`` is linear: who changes one row adds one product to what is scored.
    """

    options: PropagationOptions

    @abstractmethod
    def columns(self, rows: Any) -> Array:
        """What is propagated of these reports."""

    @abstractmethod
    def spread(self, columns: Array, edges: np.ndarray) -> Array:
        """KProp."""

    @abstractmethod
    def scored(self, columns: Array, edges: np.ndarray) -> np.ndarray:
        """Logits from propagated columns."""

    def forward(self, rows: Any, edges: np.ndarray) -> np.ndarray:
        return self.scored(self.spread(self.columns(rows), edges), edges)


class NetworkPredictor(PropagatingPredictor):
    """LPGNN's network; ``options`` are those of its propagation."""

    kind = KIND

    def columns(self, rows: Any) -> Array:
        from graphveil.methods.common.backbone_training import mixed

        return mixed(rows, self.kept.get("mixing"))

    def spread(self, columns: Array, edges: np.ndarray) -> Array:
        from graphveil.methods.common.denoise import propagated

        return propagated(columns, edges, self.options.feature_steps)

    def scored(self, columns: Array, edges: np.ndarray) -> np.ndarray:
        from graphveil.learn.backbones import build_backbone
        from graphveil.learn.graph_training import edges_for
        from graphveil.methods.common.backbone_training import scaled

        told, mean = self.options, self.kept["mean"]
        network = build_backbone(told.backbone, len(mean), told.hidden, int(self.facts["classes"]), told.dropout)
        heard = edges_for(told.backbone, edges, len(columns))
        return logits_of(network, self.weights, scaled(columns, mean, self.kept["deviation"]), heard)


def logits_of(network: Any, weights: Mapping[str, np.ndarray], inputs: Array, edges: Any) -> Array:
    """What a network with these weights says of everybody; ``edges`` in the form it takes."""
    import torch

    network.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    network.eval()
    with torch.no_grad():
        logits: np.ndarray = network(torch.as_tensor(inputs, dtype=torch.float32), edges).double().numpy()
    return logits


def parts_in_the_clear(promise: Local) -> tuple[str, ...]:
    """The parts that were sent raw, by name."""
    return tuple(part.value for part in promise.raw)
