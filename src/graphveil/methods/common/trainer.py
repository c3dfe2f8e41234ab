"""How a stage of a method is trained: openly where records are public, else by spending the gradient release of its name.

A method chooses one trainer for its promise and gives it every stage: ``trainer.train(name, network, inputs)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from graphveil.methods.common.own_predictor import own_optimizer
from graphveil.methods.common.private_training import descend_privately
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation
from graphveil.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

    from graphveil.graph import Graph
    from graphveil.learn import Inputs, Network, Optimizer

OPEN_RATE = 3e-3  # Adam's step size in ordinary training
EDGES = frozenset(
    Guarantee(Level.EDGE, adjacency, Relation.ZERO_OUT)
    for adjacency in (Adjacency.EDGE_UNDIRECTED, Adjacency.EDGE_DIRECTED)
)


def records_are_public(promise: Promise) -> bool:
    """Whether features and labels may simply be read: at edge level, and without privacy."""
    return promise.level in (Level.EDGE, Level.NONE)


class Trainer(Protocol):
    """Trains ``network`` in place as the stage ``name``; ``inputs(graph)`` are its inputs, one row per node."""

    def train(self, name: str, network: Network, inputs: Callable[[Graph], Inputs]) -> None: ...


@dataclass(frozen=True)
class OpenTrainer:
    """Adam on public records; ``best_epoch`` keeps the epoch with the best accuracy on public validation labels."""

    curator: Curator
    coins: np.random.Generator
    progress: Progress | None
    epochs: int
    learning_rate: float = OPEN_RATE
    weight_decay: float = 0.0
    dropout: float = 0.0
    batch_size: int | None = None
    best_epoch: bool = False

    def train(self, name: str, network: Network, inputs: Callable[[Graph], Inputs]) -> None:
        from graphveil.learn import Adam, train_plainly

        records, progress = self.curator.open_records(), self.progress
        best = BestEpoch(lambda question: question(records), inputs) if self.best_epoch else None
        train_plainly(
            network,
            inputs(records),
            np.where(self.curator.masks["train"], records.labels, -1),
            epochs=self.epochs,
            coins=self.coins,
            optimizer=Adam(self.learning_rate),
            weight_decay=self.weight_decay,
            dropout=self.dropout,
            batch_size=self.batch_size,
            after_epoch=best,
            progress=None if progress is None else lambda done, total: progress(name, done, total),
        )
        if best is not None:
            best.restore(network)


@dataclass(frozen=True)
class PrivateTrainer:
    """Private gradient steps, with a fresh optimiser for every stage."""

    curator: Curator
    optimizer: Callable[[], Optimizer]
    progress: Progress | None

    def train(self, name: str, network: Network, inputs: Callable[[Graph], Inputs]) -> None:
        descend_privately(self.curator, name, network, inputs, self.optimizer(), self.progress)


@dataclass(frozen=True)
class PaperTrainer:
    """DP-Adam that keeps the epoch with the best accuracy on private validation labels, as the papers' code does (D8)."""

    curator: PaperCurator
    learning_rate: float
    progress: Progress | None

    def train(self, name: str, network: Network, inputs: Callable[[Graph], Inputs]) -> None:
        from graphveil.learn import Adam

        best = BestEpoch(lambda question: self.curator.peek("selection", question), inputs)
        descend_privately(self.curator, name, network, inputs, Adam(self.learning_rate), self.progress, best)
        best.restore(network)


def sound_trainer(
    curator: Curator,
    coins: np.random.Generator,
    progress: Progress | None,
    *,
    learning_rate: float,
    epochs: int,
    open_learning_rate: float,
    weight_decay: float = 0.0,
    dropout: float,
) -> Trainer:
    """Full-batch private steps of ``learning_rate``; the other values are for ordinary training where records are public."""
    if records_are_public(curator.plan.promise):
        return OpenTrainer(curator, coins, progress, epochs, open_learning_rate, weight_decay, dropout)
    return PrivateTrainer(curator, lambda: own_optimizer(curator.facts, learning_rate), progress)


def published_trainer(
    curator: Curator,
    coins: np.random.Generator,
    progress: Progress | None,
    private: Trainer,
    *,
    epochs: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    dropout: float,
    batch_size: int,
) -> Trainer:
    """``private``; at edge level Adam on batches with the best epoch, and without privacy what sound modes do."""
    match curator.plan.promise.level:
        case Level.NONE:
            return OpenTrainer(curator, coins, progress, epochs, OPEN_RATE, weight_decay, dropout)
        case Level.EDGE:
            return OpenTrainer(
                curator, coins, progress, epochs, learning_rate, weight_decay, dropout, batch_size, best_epoch=True
            )
    return private


class BestEpoch:
    """The papers' choice of epoch: keep the parameters with the best accuracy on validation labels; without any, the last.

    ``look`` answers a question about the records: where they are open, by reading them; elsewhere by the peek that published
    modes allow themselves and declare (D8).
    """

    def __init__(self, look: Callable[[Callable[[Graph], float]], float], inputs: Callable[[Graph], Inputs]) -> None:
        self._look, self._inputs = look, inputs
        self._best = -1.0
        self._parameters: Tensor | None = None
        self._held: tuple[Inputs, np.ndarray] | None = None

    def __call__(self, network: Network) -> None:
        from graphveil.learn import take

        def accuracy(private: Graph) -> float:
            if self._held is None:
                chosen = np.flatnonzero(private.masks["calibration"] & (private.labels >= 0))
                self._held = take(self._inputs(private), chosen), private.labels[chosen]
            inputs, labels = self._held
            return float(np.mean(network(inputs).argmax(dim=1).numpy() == labels)) if labels.size else math.nan

        reached = self._look(accuracy)
        if reached > self._best:
            self._best, self._parameters = reached, network.parameters.clone()

    def restore(self, network: Network) -> None:
        if self._parameters is not None:
            network.parameters.copy_(self._parameters)
