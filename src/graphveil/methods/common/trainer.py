"""How a stage of a method is trained: openly where records are public, else by spending the gradient release of its name.

A method chooses one trainer for its promise and gives it every stage: ``train(name, network, inputs)`` trains the network in
place; ``inputs(graph)`` are its inputs, one row per node.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.methods.base import PrivateMethod
from graphveil.methods.common.own_predictor import own_optimizer
from graphveil.methods.common.private_training import descend_privately, poisson_batches
from graphveil.methods.options import Count, Fraction, NonNegative, Options, Positive
from graphveil.privacy.curator import Curator, PaperCurator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import Level, Promise
from graphveil.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

InputsOf = Callable[[Graph], "learn.Inputs"]
Trainer = Callable[[str, "learn.Network", InputsOf], None]
Look = Callable[[Callable[[Graph], float]], float]

OPEN_RATE = 3e-3  # Adam's step size in ordinary training


class FullBatch(Options):
    """Private gradient steps on all records, and the share of the budget for a private mean of the features."""

    steps: Count = 100
    learning_rate: Positive = 0.1
    clip: Positive = 0.5
    centring: Fraction = 0.03


class OpenTraining(Options):
    """Ordinary training where records are public."""

    epochs: Count = 100
    open_learning_rate: Positive = OPEN_RATE
    weight_decay: NonNegative = 0.0
    dropout: Fraction = 0.5


class PublishedMethod(PrivateMethod):
    """What a paper does, including reads it does not account for."""

    curator: ClassVar[type[Curator]] = PaperCurator
    mode: Literal["published"] = "published"


class PaperBatches(PublishedMethod):
    """DP-Adam on Poisson batches; at edge level Adam on batches."""

    epochs: Count = 100
    batch_size: Count = 64
    learning_rate: Positive = 1e-3
    clip: Positive = 1.0

    def batches(self, facts: PublicFacts) -> tuple[int, float]:
        """Steps and sampling rate."""
        return poisson_batches(facts, self.epochs, self.batch_size)

    def trainer(
        self, curator: Curator, coins: np.random.Generator, progress: Progress, peeks: bool = True, **others: Any
    ) -> Trainer:
        """DP-Adam; at edge level Adam on batches with the best epoch, and without privacy what sound modes do.

        ``peeks``: the epoch with the best accuracy on private validation labels is kept, as the papers' code does (D8).
        """
        opened: dict[str, Any] = {"epochs": self.epochs, "dropout": 0.5, **others}
        match curator.plan.promise.level:
            case Level.NONE:
                return open_trainer(curator, coins, progress, **opened)
            case Level.EDGE:
                opened |= {"batch_size": self.batch_size, "learning_rate": self.learning_rate, "best_epoch": True}
                return open_trainer(curator, coins, progress, **opened)
        look = partial(cast(PaperCurator, curator).peek, "selection") if peeks else None
        return private_trainer(curator, lambda: learn.Adam(self.learning_rate), progress, look)


def records_are_public(promise: Promise) -> bool:
    """Whether features and labels may simply be read: at edge level, and without privacy."""
    return promise.level in (Level.EDGE, Level.NONE)


def sound_trainer(
    curator: Curator, coins: np.random.Generator, progress: Progress, learning_rate: float, opened: OpenTraining
) -> Trainer:
    """Full-batch private steps of ``learning_rate``, or ordinary training where records are public."""
    if not records_are_public(curator.plan.promise):
        return private_trainer(curator, lambda: own_optimizer(curator.facts, learning_rate), progress)
    rate, others = opened.open_learning_rate, {"weight_decay": opened.weight_decay, "dropout": opened.dropout}
    return open_trainer(curator, coins, progress, opened.epochs, learning_rate=rate, best_epoch=False, **others)


def open_trainer(
    curator: Curator,
    coins: np.random.Generator,
    progress: Progress,
    epochs: int,
    *,
    learning_rate: float = OPEN_RATE,
    best_epoch: bool = False,
    **others: Any,
) -> Trainer:
    """Adam on public records; ``best_epoch`` keeps the epoch with the best accuracy on public validation labels."""

    def train(name: str, network: learn.Network, inputs: InputsOf) -> None:
        records = curator.open_records()
        best = BestEpoch(validation_accuracy(lambda question: question(records), inputs)) if best_epoch else None
        learn.train_plainly(
            network,
            inputs(records),
            np.where(curator.masks["train"], records.labels, -1),
            epochs=epochs,
            coins=coins,
            optimizer=learn.Adam(learning_rate),
            after_epoch=best,
            progress=partial(progress, name),
            **others,
        )
        if best is not None:
            best.restore(network)

    return train


def private_trainer(
    curator: Curator, optimizer: Callable[[], learn.Optimizer], progress: Progress, look: Look | None = None
) -> Trainer:
    """Private gradient steps, with a fresh optimiser for every stage; ``look``: by which the best epoch is chosen."""

    def train(name: str, network: learn.Network, inputs: InputsOf) -> None:
        best = None if look is None else BestEpoch(validation_accuracy(look, inputs))
        descend_privately(curator, name, network, inputs, optimizer(), progress, after_epoch=best)
        if best is not None:
            best.restore(network)

    return train


class BestEpoch:
    """The papers' choice of epoch: keep the parameters with the best accuracy on validation labels; without any, the last."""

    def __init__(self, accuracy: Callable[[learn.Network], float]) -> None:
        self._accuracy = accuracy
        self._best = -1.0
        self._parameters: Tensor | None = None

    def __call__(self, network: learn.Network) -> None:
        reached = self._accuracy(network)
        if reached > self._best:
            self._best, self._parameters = reached, network.parameters.clone()

    def restore(self, network: learn.Network) -> None:
        if self._parameters is not None:
            network.parameters.copy_(self._parameters)


def validation_accuracy(look: Look, inputs: InputsOf) -> Callable[[learn.Network], float]:
    """Of a network, on validation labels; ``look`` answers a question about the records.

    Where records are open it reads them; elsewhere it is the peek that published modes allow themselves and declare (D8).
    """
    held: list[tuple[learn.Inputs, np.ndarray]] = []

    def accuracy(network: learn.Network) -> float:
        def right(private: Graph) -> float:
            if not held:
                chosen = np.flatnonzero(private.masks["calibration"] & (private.labels >= 0))
                held.append((learn.take(inputs(private), chosen), private.labels[chosen]))
            examples, labels = held[0]
            return float(np.mean(network(examples).argmax(dim=1).numpy() == labels)) if labels.size else math.nan

        return look(right)

    return accuracy
