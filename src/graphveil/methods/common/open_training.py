"""Ordinary training where features and labels are public: at edge level, and without privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from graphveil.methods.base import Progress
from graphveil.methods.common.private_training import BestEpoch
from graphveil.privacy.curator import Curator

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn import Inputs, Network


def train_openly(
    curator: Curator,
    name: str,
    network: Network,
    inputs: Callable[[Graph], Inputs],
    coins: np.random.Generator,
    progress: Progress | None,
    *,
    epochs: int,
    learning_rate: float,
    weight_decay: float = 0.0,
    dropout: float = 0.0,
    batch_size: int | None = None,
    best_epoch: bool = False,
) -> None:
    """Adam on the public records; ``best_epoch`` keeps the epoch with the best accuracy on public validation labels."""
    from graphveil.learn import Adam, train_plainly

    records = curator.open_records()
    best = BestEpoch(lambda question: question(records), inputs) if best_epoch else None
    train_plainly(
        network,
        inputs(records),
        np.where(curator.masks["train"], records.labels, -1),
        epochs=epochs,
        coins=coins,
        optimizer=Adam(learning_rate),
        weight_decay=weight_decay,
        dropout=dropout,
        batch_size=batch_size,
        after_epoch=best,
        progress=None if progress is None else lambda done, total: progress(name, done, total),
    )
    if best is not None:
        best.restore(network)
