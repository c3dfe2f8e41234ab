"""The baselines of LGA-PGNN that it does not share its mechanism with: Laplace features, random inputs, degrees.

Tests: ``tests/methods/test_baselines.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphveil.exchange.randomizers import LaplaceRows
from graphveil.exchange.server import Server
from graphveil.methods.card import card
from graphveil.methods.common.reporting import RangeOptions
from graphveil.methods.lga_pgnn.report_gnn import ReportGnn
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from graphveil.methods.common.backbone_training import Build

SMALL = 0.01  # standard deviation of RANGNN's inputs


class LapGnn(RangeOptions, ReportGnn):
    """Laplace noise on every attribute, then the backbone.

    The paper does not state the scale; here it is the one that costs epsilon for the whole row, d (upper - lower)/epsilon.

    Args:
        lower, upper: the public range of every attribute.
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        width: more columns than these are multiplied by a public random matrix (post-processing: speed).
        loss: ``forward`` (knows the noise of the labels) or ``plain``.
        hidden, epochs, learning_rate, weight_decay, dropout: of training.
    """

    card = card("lap-gnn")

    def randomizer(self, facts: PublicFacts, budget: float) -> LaplaceRows:
        return LaplaceRows(budget, facts.features, self.lower, self.upper)

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        return (*super().public_statements(promise), self.range_statement)

    def inputs(self, server: Server, edges: np.ndarray) -> Array:
        return self.reported_columns(server)


class RandGnn(ReportGnn):
    """RANGNN: four graph layers on Gaussian numbers of standard deviation 0.01; no feature is read.

    Adam trains it as it does all others, where the paper uses plain gradient descent.

    Args:
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        width: columns of random numbers.
        loss: ``forward`` (knows the noise of the labels) or ``plain``.
        hidden, epochs, learning_rate, weight_decay, dropout: of training.
    """

    card = card("rand-gnn")
    reads_features = False

    def inputs(self, server: Server, edges: np.ndarray) -> Array:
        return SMALL * _random(server, self.width)

    def network(self) -> Build:
        from graphveil.learn.networks import twice_as_deep

        return twice_as_deep


class RandomFeaturesGnn(ReportGnn):
    """RFGNN: the backbone on standard normal numbers; no feature is read, so whatever it reaches comes from edges and labels.

    Args:
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        width: columns of random numbers.
        loss: ``forward`` (knows the noise of the labels) or ``plain``.
        hidden, epochs, learning_rate, weight_decay, dropout: of training.
    """

    card = card("random-features-gnn")
    reads_features = False

    def inputs(self, server: Server, edges: np.ndarray) -> Array:
        return _random(server, self.width)


class DegreeGnn(ReportGnn):
    """OHTGNN: the backbone on the degree of every vertex, one-hot; degrees are read from public edges.

    Args:
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        width: columns; all degrees from ``width`` - 1 on share the last one.
        loss: ``forward`` (knows the noise of the labels) or ``plain``.
        hidden, epochs, learning_rate, weight_decay, dropout: of training.
    """

    card = card("degree-gnn")
    reads_features = False

    def inputs(self, server: Server, edges: np.ndarray) -> Array:
        degrees = np.bincount(edges[0], minlength=server.facts.nodes)
        column = np.minimum(degrees, self.width - 1)
        return np.asarray(column[:, None] == np.arange(self.width), dtype=np.float32)


def _random(server: Server, width: int) -> Array:
    return np.asarray(server.coins.standard_normal((server.facts.nodes, width), dtype=np.float32))
