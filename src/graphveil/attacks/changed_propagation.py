"""Exact influence in networks on KProp of reports (LPGNN) without a propagation per node.

KProp is linear and what goes in is affine row by row: with S the propagation and c the columns of a report, a change of v's row
adds S[:, v] (c(x'_v) - c(x_v)) to what the network scores. So unit vectors are propagated once for all probes, and each costs a
pass of the network. Test: ``tests/attacks/test_gnn_api.py`` compares it with one query per node.
"""

from __future__ import annotations

import numpy as np

from graphveil.attacks.target import Perturbation, compared
from graphveil.methods.common.gnn_api import GnnApi
from graphveil.methods.common.network_predictor import PropagatingPredictor
from graphveil.progress import Progress

BLOCK = 64  # probes whose reach is held at once


class ChangedPropagation:
    """The API of such a network on one graph, and how its answers move when single rows change."""

    def __init__(self, api: GnnApi, rows: object, edges: np.ndarray) -> None:
        assert isinstance(api.predictor, PropagatingPredictor)
        self.api, self.network, self.rows, self.edges = api, api.predictor, rows, edges
        self.columns = self.network.columns(rows)
        self.spread = self.network.spread(self.columns, edges)

    def influence(
        self,
        receivers: np.ndarray,
        probes: np.ndarray,
        numbers: np.ndarray,
        change: Perturbation,
        compare: str,
        progress: Progress,
    ) -> np.ndarray:
        """How far the answer for ``receivers[i]`` moves when the row of ``probes[numbers[i]]`` is changed."""
        far, clean = np.zeros(len(receivers)), self._answers(self.spread, compare)
        order = np.argsort(numbers, kind="stable")
        bounds = np.searchsorted(numbers[order], np.arange(len(probes) + 1))
        shifts = self.network.columns(change.changed(self.rows, probes)) - self.columns[probes]
        for start in range(0, len(probes), BLOCK):
            some = np.arange(start, min(start + BLOCK, len(probes)))
            units = np.zeros((len(self.columns), len(some)), dtype=self.columns.dtype)
            units[probes[some], np.arange(len(some))] = 1
            for number, reach in zip(some, self.network.spread(units, self.edges).T, strict=True):
                chosen = order[bounds[number] : bounds[number + 1]]
                moved = self._answers(self.spread + np.outer(reach, shifts[number]), compare) - clean
                far[chosen] = np.linalg.norm(moved[receivers[chosen]], axis=1)
                progress("queries", int(number) + 1, len(probes))
        return far

    def _answers(self, spread: np.ndarray, compare: str) -> np.ndarray:
        return compared(self.api.model.probabilities(self.network.scored(spread, self.edges)).numpy(), compare)
