"""MLP: the papers' features-only network, trained without privacy. A baseline, and the free floor at edge level.

Every step is a sum over all training records, block by block and exact (``common/block_training.py``); so is the accuracy on
validation labels by which the epoch is chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.graph.rows import DenseRows
from graphveil.graph.unit import unit_rows
from graphveil.learn import engine
from graphveil.learn.exact_rows import ConstantRows
from graphveil.learn.grid_rows import grid_rows
from graphveil.learn.grids import MOST_BITS
from graphveil.methods.base import EDGES, PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.block_training import open_block_trainer
from graphveil.methods.common.private_training import parameter_count
from graphveil.methods.common.trainer import OPEN_RATE, Trainer
from graphveil.methods.options import Count, Fraction, NonNegative, Options, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Promise
from graphveil.progress import Progress


class PaperNetwork(Options):
    """The papers' network: so many layers of this width."""

    hidden: Count = 64
    layers: Count = 3

    def widths(self, facts: PublicFacts, raw: bool = False) -> tuple[int, ...]:
        """Inputs, hidden layers, classes."""
        return input_width(facts.features, raw), *[self.hidden] * (self.layers - 1), facts.classes

    def network_size(self, facts: PublicFacts, raw: bool = False) -> int:
        return parameter_count(self.widths(facts, raw))

    def first_network(self, facts: PublicFacts, coins: np.random.Generator, raw: bool = False) -> NetworkPredictor:
        """The network before it is trained."""
        widths = self.widths(facts, raw)
        return NetworkPredictor(learn.MLP(widths).initialise(coins), widths, raw)

    def train_network(
        self, name: str, facts: PublicFacts, train: Trainer, coins: np.random.Generator, raw: bool = False
    ) -> NetworkPredictor:
        """The network, trained as the stage ``name``."""
        predictor = self.first_network(facts, coins, raw)
        train(name, predictor.network, predictor.inputs)
        return predictor


def input_width(features: int, raw: bool) -> int:
    """Columns of :func:`raw_inputs`, or of unit rows with their constant."""
    return max(features, 1) if raw else features + 1


def raw_inputs(records: Graph | Block) -> Any:
    """Features as they are, which is what the papers' code feeds to its networks; where there are none, a column of zeros."""
    import torch

    rows: Any = records.rows
    nodes, features = rows.shape
    return rows if features else DenseRows(torch.zeros(nodes, 1, dtype=torch.float64))


class NetworkPredictor:
    """A chain of layers on a node's own features: unit rows and a constant, or features as they are (``raw``)."""

    slot_arrays = ()

    def __init__(self, network: learn.Network, widths: tuple[int, ...], raw: bool = False) -> None:
        self.network, self.widths, self.raw = network, widths, raw

    def inputs(self, graph: Graph) -> Any:
        if self.raw:
            return raw_inputs(graph)
        return learn.CentredRows(unit_rows(graph.rows), np.zeros(graph.features), bias=1.0)

    def block_inputs(self, block: Block, chosen: np.ndarray, bits: int) -> tuple[ConstantRows]:
        """Unit rows and a constant on the grid 2^-bits."""
        rows = grid_rows(block, chosen, np.zeros(block.rows.shape[1]), bits)
        return (ConstantRows.of(rows, 1.0, bits),)

    def logits(self, graph: Graph) -> np.ndarray:
        return engine.gathered(graph, self.scores, np.ones(graph.nodes, dtype=bool))

    def scores(self, block: Block) -> np.ndarray:
        """Logits of the records of a block, by their own features alone."""
        if self.raw:
            return np.asarray(self.network(raw_inputs(block)).numpy())
        return learn.exact_scores(self.network, self.block_inputs(block, np.arange(len(block)), MOST_BITS))

    def config(self) -> dict[str, Any]:
        return {"kind": "network", "widths": list(self.widths), "raw": self.raw}

    def arrays(self) -> dict[str, np.ndarray]:
        return self.network.state()

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> NetworkPredictor:
        widths = tuple(config["widths"])
        return cls(learn.MLP(widths).load(arrays), widths, config.get("raw", False))


class Mlp(PaperNetwork, PrivateMethod):
    """Ordinary network on own features, full-batch Adam; ``best_epoch`` keeps the epoch with the best validation accuracy."""

    card = card("mlp")
    reads_blocks = True
    supports = EDGES
    predictor = NetworkPredictor

    epochs: Count = 100
    learning_rate: Positive = OPEN_RATE
    weight_decay: NonNegative = 0.0
    dropout: Fraction = 0.5
    best_epoch: bool = True

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        return Plan(promise, facts, ())

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> NetworkPredictor:
        names = ("epochs", "learning_rate", "weight_decay", "dropout", "best_epoch")
        train = open_block_trainer(curator, coins, progress, **{name: getattr(self, name) for name in names})
        predictor = self.first_network(curator.facts, coins)
        train("mlp", predictor.network, predictor.block_inputs)
        return predictor
