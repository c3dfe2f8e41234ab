"""LGA-PGNN's network, or that of a baseline, as it was learned; newcomers are seen by it as everybody was (``kept.py``).

Tests: ``tests/cli/test_newcomers.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.common.network_predictor import GraphPredictor, logits_of
from graphveil.methods.lga_pgnn.kept import Kept

if TYPE_CHECKING:
    from graphveil.methods.lga_pgnn.report_gnn import ReportGnn

KIND = "report-gnn"


class ReportGnnPredictor(GraphPredictor):
    """``options`` is the method itself, which knows how its inputs are made."""

    kind = KIND
    options: ReportGnn

    @property
    def hops(self) -> int:  # type: ignore[override]
        return self.options.hops

    def forward(self, rows: Any, edges: np.ndarray) -> np.ndarray:
        from graphveil.learn.graph_training import edges_for

        told = self.options
        inputs, build = told.prepared(rows, edges, Kept(self.kept))
        network = build(told.backbone, inputs.shape[1], told.hidden, int(self.facts["classes"]), told.dropout, 0)
        return logits_of(network, self.weights, inputs, edges_for(told.backbone, edges, len(inputs)))
