"""MLP: the papers' features-only network, trained without privacy. A baseline, and the free floor at edge level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.private_training import parameter_count
from graphveil.methods.common.trainer import EDGES, OPEN_RATE, OpenTrainer, Trainer
from graphveil.methods.options import Count, Fraction, NonNegative, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Promise
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import Network


class Mlp(PrivateMethod):
    """Ordinary multi-layer perceptron on a node's own features.

    Args:
        hidden, layers: width and number of layers.
        epochs, learning_rate, weight_decay, dropout: Adam on full batches.
        best_epoch: keep the epoch with the best validation accuracy instead of the last.
    """

    card = card("mlp")
    supports = EDGES

    hidden: Count = 64
    layers: Count = 3
    epochs: Count = 100
    learning_rate: Positive = OPEN_RATE
    weight_decay: NonNegative = 0.0
    dropout: Fraction = 0.5
    best_epoch: bool = True

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        return Plan(promise, facts, ())

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> NetworkPredictor:
        rates = self.learning_rate, self.weight_decay, self.dropout
        trainer = OpenTrainer(curator, coins, progress, self.epochs, *rates, best_epoch=self.best_epoch)
        return train_network("mlp", curator.facts, self.hidden, self.layers, trainer, coins)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> NetworkPredictor:
        return NetworkPredictor.restore(config, arrays)


def network_inputs(graph: Graph) -> Any:
    """Unit rows and a constant, so that graphs without features still have an input."""
    from graphveil.graph.unit import unit_rows
    from graphveil.learn import CentredRows

    return CentredRows(unit_rows(graph.rows), np.zeros(graph.features), bias=1.0)


def raw_inputs(graph: Graph) -> Any:
    """Features as they are, which is what the papers' code feeds to its networks; a graph without any has a column of zeros."""
    from graphveil.graph.rows import DenseRows

    if graph.features:
        return graph.rows
    import torch

    return DenseRows(torch.zeros(graph.nodes, 1, dtype=torch.float64))


class NetworkPredictor:
    """A chain of layers on a node's own features: unit rows, or features as they are (``raw``)."""

    def __init__(self, network: Network, widths: tuple[int, ...], raw: bool = False) -> None:
        self.network, self.widths, self.raw = network, widths, raw

    @classmethod
    def build(cls, features: int, classes: int, hidden: int, layers: int, raw: bool = False) -> NetworkPredictor:
        from graphveil.learn import MLP

        widths = network_widths(features, classes, hidden, layers, raw)
        return cls(MLP(widths), widths, raw)

    def inputs(self, graph: Graph) -> Any:
        return raw_inputs(graph) if self.raw else network_inputs(graph)

    def logits(self, graph: Graph) -> np.ndarray:
        logits: np.ndarray = self.network(self.inputs(graph)).numpy()
        return logits

    def config(self) -> dict[str, Any]:
        return {"kind": "network", "widths": list(self.widths), "raw": self.raw}

    def arrays(self) -> dict[str, np.ndarray]:
        return self.network.state()

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> NetworkPredictor:
        from graphveil.learn import MLP

        widths = tuple(config["widths"])
        return cls(MLP(widths).load(arrays), widths, config.get("raw", False))


def input_width(features: int, raw: bool) -> int:
    """Columns of :func:`raw_inputs`, or of unit rows with their constant."""
    return max(features, 1) if raw else features + 1


def network_widths(features: int, classes: int, hidden: int, layers: int, raw: bool = False) -> tuple[int, ...]:
    """Widths of the papers' network: inputs, hidden layers, classes."""
    return (input_width(features, raw), *[hidden] * (layers - 1), classes)


def network_parameters(facts: PublicFacts, hidden: int, layers: int, raw: bool = False) -> int:
    """How many numbers that network has."""
    return parameter_count(network_widths(facts.features, facts.classes, hidden, layers, raw))


def train_network(
    name: str,
    facts: PublicFacts,
    hidden: int,
    layers: int,
    trainer: Trainer,
    coins: np.random.Generator,
    raw: bool = False,
) -> NetworkPredictor:
    """The papers' network, trained as the stage ``name``."""
    predictor = NetworkPredictor.build(facts.features, facts.classes, hidden, layers, raw)
    trainer.train(name, predictor.network.initialise(coins), predictor.inputs)
    return predictor
