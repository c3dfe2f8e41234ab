"""The algorithm of GAP, for any way of training its stages and of summing over neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphveil.graph import Graph, Lists
from graphveil.graph.unit import unit_array
from graphveil.methods.common.own_predictor import release_centre
from graphveil.methods.common.trainer import Trainer
from graphveil.methods.gap.predictor import GapPredictor, Shape
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress

Sum = Callable[[Lists, np.ndarray, int], np.ndarray]  # lists, rows and public coins -> a row per node


def perturb_aggregations(
    curator: Curator,
    shape: Shape,
    train: Trainer,
    neighbour_sum: Sum,
    coins: np.random.Generator,
    progress: Progress,
) -> GapPredictor:
    """Centre, encoder, hops, classifier; absent slots send nothing at hop 1, later hops send released rows."""
    predictor = GapPredictor.build(shape)
    predictor.tables["centre"] = release_centre(curator)
    for network in predictor.networks.values():
        network.initialise(coins)
    train("encoder", predictor.encoder, predictor.own_inputs)
    for hop in range(1, shape.hops + 1):
        key = int(coins.integers(2**32))

        def query(private: Graph, key: int = key) -> np.ndarray:
            rows = predictor.hops[-1] if predictor.hops else predictor.embedding(private) * private.present[:, None]
            return neighbour_sum(private.lists, rows, key)

        predictor.tables[f"hop{hop}"] = unit_array(curator.release(f"hop {hop}", query))
        progress("hops", hop, shape.hops)
    train("classifier", predictor.networks["classifier."], predictor.all_inputs)
    return predictor
