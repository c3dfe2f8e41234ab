"""The baselines of LGA-PGNN that it does not share its mechanism with: Laplace features, random inputs, degrees.

Tests: ``tests/methods/test_baselines.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphveil.exchange.randomizers import LaplaceRows
from graphveil.exchange.server import Server
from graphveil.methods.card import card
from graphveil.methods.lga_pgnn.kept import Kept
from graphveil.methods.lga_pgnn.report_gnn import ReportGnn
from graphveil.methods.local_method import RangedMethod
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.noise import Array

SMALL = 0.01  # standard deviation of RANGNN's inputs


class LapGnn(RangedMethod, ReportGnn):
    """Laplace noise on every attribute, then the backbone.

    The paper does not state the scale; here it is the one that costs epsilon for the whole row, d (upper - lower)/epsilon.
    """

    card = card("lap-gnn")

    def randomizer(self, facts: PublicFacts, budget: float) -> LaplaceRows:
        return LaplaceRows(budget, facts.features, self.lower, self.upper)

    def inputs(self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
        return self.reported_columns(rows, kept, coins)


class RandomFeaturesGnn(ReportGnn):
    """RFGNN: the backbone on ``width`` standard normal numbers; whatever it reaches comes from edges and labels."""

    card = card("random-features-gnn")
    reads_features = False

    def heard_rows(self, server: Server) -> Any:
        return server.coins.standard_normal((server.facts.nodes, self.width), dtype=np.float32)

    def inputs(self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
        return np.asarray(rows, dtype=np.float32)


class RandGnn(RandomFeaturesGnn):
    """RANGNN: four graph layers on Gaussian numbers of standard deviation 0.01; no feature is read.

    Adam trains it as it does all others, where the paper uses plain gradient descent.
    """

    card = card("rand-gnn")
    network = "twice_as_deep"

    def inputs(self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
        return SMALL * super().inputs(rows, edges, kept, coins)


class DegreeGnn(ReportGnn):
    """OHTGNN: the backbone on the degree of every vertex, one-hot; degrees are read from public edges.

    All degrees from ``width`` - 1 on share the last column.
    """

    card = card("degree-gnn")
    reads_features = False

    def heard_rows(self, server: Server) -> Any:
        return np.zeros((server.facts.nodes, 0), dtype=np.float32)

    def inputs(self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
        degrees = np.bincount(edges[0], minlength=len(rows))
        column = np.minimum(degrees, self.width - 1)
        return np.asarray(column[:, None] == np.arange(self.width), dtype=np.float32)
