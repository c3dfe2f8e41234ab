"""The algorithm of GAP, for any way of training its stages and of summing over neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from graphveil.methods.common.own_predictor import release_centre
from graphveil.methods.common.trainer import Trainer
from graphveil.methods.gap.predictor import GapPredictor, Shape
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.graph import Graph, Lists

Sum = Callable[["Lists", np.ndarray, int], np.ndarray]  # lists, rows and public coins -> a row per node


def perturb_aggregations(
    curator: Curator,
    shape: Shape,
    trainer: Trainer,
    neighbour_sum: Sum,
    coins: np.random.Generator,
    progress: Progress | None,
) -> GapPredictor:
    """Centre, encoder, hops, classifier."""
    predictor = GapPredictor.build(shape, release_centre(curator))
    predictor.encoder.initialise(coins)
    predictor.classifier.initialise(coins)
    trainer.train("encoder", predictor.encoder, predictor.own_inputs)
    for hop in range(1, shape.hops + 1):
        predictor.hops.append(_noisy_hop(curator, hop, predictor, neighbour_sum, int(coins.integers(2**32))))
        if progress is not None:
            progress("hops", hop, shape.hops)
    trainer.train("classifier", predictor.classifier, predictor.all_inputs)
    return predictor


def _noisy_hop(curator: Curator, hop: int, predictor: GapPredictor, neighbour_sum: Sum, key: int) -> np.ndarray:
    """H_l; absent slots send nothing at hop 1, later hops send released rows."""
    from graphveil.graph.unit import unit_array

    def query(private: Graph) -> np.ndarray:
        rows = predictor.hops[-1] if predictor.hops else predictor.embedding(private) * private.present[:, None]
        return neighbour_sum(private.lists, rows, key)

    return unit_array(curator.release(f"hop {hop}", query))
