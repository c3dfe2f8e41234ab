"""Full-batch training block by block: exact gradient sums, so that a network is the same for any cut into blocks.

A method that reads blocks gives every stage to one trainer, ``train(name, network, inputs)``: privately by spending the gradient
release of that name, openly where records are public. ``inputs(block, chosen, bits)`` are the network's inputs for the records of
a block at the positions ``chosen``, on the grid 2^-bits; they depend on these records and on released numbers alone.

Ordinary training has no clipping norm, and exact sums need a bound: gradients longer than ``LONGEST`` are shortened to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.learn import engine
from graphveil.learn.engine.kept import Kept
from graphveil.learn.exact_rows import ExactRows
from graphveil.learn.grids import MOST_BITS, SumGrid
from graphveil.methods.common.own_predictor import own_optimizer
from graphveil.methods.common.trainer import OPEN_RATE, BestEpoch, OpenTraining, records_are_public
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress

if TYPE_CHECKING:
    from torch import Tensor

BlockInputs = Callable[[Block, np.ndarray, int], tuple[ExactRows, ...]]
BlockTrainer = Callable[[str, "learn.Network", BlockInputs], None]

LONGEST = 256.0
COPIES = 4  # rows, and at most three copies of them that wide layers make


@dataclass(frozen=True)
class Examples:
    """The inputs and labels of some records of a block; ``first`` is the number of such records in earlier blocks."""

    inputs: tuple[ExactRows, ...]
    labels: np.ndarray
    first: int

    @property
    def nbytes(self) -> int:
        return COPIES * sum(rows.nbytes for rows in self.inputs) + self.labels.nbytes


@dataclass(frozen=True)
class Chosen:
    """Makes examples of the records under the mask ``wanted``."""

    inputs: BlockInputs
    wanted: np.ndarray
    bits: int

    def __call__(self, block: Block) -> Examples:
        positions = np.flatnonzero(self.wanted[block.slots])
        first = int(np.count_nonzero(self.wanted[: block.slots.start]))
        return Examples(self.inputs(block, positions, self.bits), block.labels[positions], first)


def sound_block_trainer(
    curator: Curator, coins: np.random.Generator, progress: Progress, learning_rate: float, opened: OpenTraining
) -> BlockTrainer:
    """Full-batch private steps of ``learning_rate``, or ordinary training where records are public."""
    if records_are_public(curator.plan.promise):
        return open_block_trainer(
            curator,
            coins,
            progress,
            opened.epochs,
            learning_rate=opened.open_learning_rate,
            weight_decay=opened.weight_decay,
            dropout=opened.dropout,
        )

    def train(name: str, network: learn.Network, inputs: BlockInputs) -> None:
        descend_in_blocks(curator, name, network, inputs, own_optimizer(curator.facts, learning_rate), progress)

    return train


def descend_in_blocks(
    curator: Curator,
    name: str,
    network: learn.Network,
    inputs: BlockInputs,
    optimizer: learn.Optimizer,
    progress: Progress,
    after_step: Callable[[learn.Network], None] | None = None,
) -> None:
    """Spend the full-batch gradient release ``name`` on all training records; absent and unlabelled ones contribute nothing."""
    import torch

    train, records = curator.masks["train"], max(1, curator.facts.count("train"))

    def prepare(private: Graph, rows: np.ndarray) -> Graph:
        return private

    session = curator.gradients(name, prepare)
    clip = LONGEST if session.clip is None else session.clip
    grid = SumGrid.of(records, clip)
    ready = Kept(Chosen(inputs, train, grid.bits))

    def query(private: Graph, batch: np.ndarray | None) -> np.ndarray:
        return gradient_sum(private, network, ready, clip, grid)

    def passed(done: int, total: int) -> None:
        if after_step is not None:
            after_step(network)
        progress(name, done, total)

    gradient = lambda step: torch.from_numpy(session.step(query))
    learn.descend(network, gradient, optimizer, session.total, records, progress=passed)


def open_block_trainer(
    curator: Curator,
    coins: np.random.Generator,
    progress: Progress,
    epochs: int,
    *,
    learning_rate: float = OPEN_RATE,
    best_epoch: bool = False,
    weight_decay: float = 0.0,
    dropout: float = 0.0,
) -> BlockTrainer:
    """Full-batch Adam on public records: mean cross-entropy plus ``weight_decay / 2 ||theta||^2``.

    Dropout is on the inputs of all but first layers. ``best_epoch`` keeps the epoch with the best accuracy on public validation
    labels.
    """
    import torch

    def train(name: str, network: learn.Network, inputs: BlockInputs) -> None:
        records = curator.open_records()
        labelled = (records.labels >= 0) & (records.labels < records.classes)
        wanted = curator.masks["train"] & labelled
        count = max(1, int(np.count_nonzero(wanted)))
        grid = SumGrid.of(count, LONGEST)
        ready = Kept(Chosen(inputs, wanted, grid.bits))
        best = None
        if best_epoch:
            held = Kept(Chosen(inputs, curator.masks["calibration"] & labelled, MOST_BITS))
            best = BestEpoch(lambda network: accuracy(records, network, held))

        def gradient(step: int) -> Tensor:
            key = int(coins.integers(2**63)) if dropout else 0
            total = gradient_sum(records, network, ready, LONGEST, grid, (dropout, key))
            return torch.from_numpy(total).div_(count).add_(network.parameters, alpha=weight_decay)

        def passed(done: int, total: int) -> None:
            if best is not None:
                best(network)
            progress(name, done, total)

        learn.descend(network, gradient, learn.Adam(learning_rate), epochs, 1.0, progress=passed)
        if best is not None:
            best.restore(network)

    return train


def gradient_sum(
    private: Graph,
    network: learn.Network,
    ready: Kept[Examples],
    clip: float,
    grid: SumGrid,
    dropout: tuple[float, int] = (0.0, 0),
) -> np.ndarray:
    """The sum of clipped gradients over all examples; ``dropout``: its rate, and the key of its coins."""
    rate, key = dropout

    def part(block: Block) -> np.ndarray:
        examples = ready(block)
        coins = learn.Dropout(rate, key, examples.first) if rate else None
        return learn.exact_gradient_sum(network, examples.inputs, examples.labels, clip, grid, coins)

    return engine.total(private, part)


def accuracy(records: Graph, network: learn.Network, held: Kept[Examples]) -> float:
    """The share of these examples that the network gets right; NaN without any."""

    def part(block: Block) -> np.ndarray:
        examples = held(block)
        guess = learn.exact_scores(network, examples.inputs).argmax(axis=1)
        return np.array([np.count_nonzero(guess == examples.labels), len(guess)])

    right, asked = engine.total(records, part)
    return float(right / asked) if asked else math.nan
