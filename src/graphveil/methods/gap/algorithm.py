"""The algorithm of GAP, for any way of training its stages and of summing over neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.graph.unit import unit_array
from graphveil.methods.common.own_predictor import release_centre
from graphveil.methods.gap.predictor import GapPredictor
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress

Stage = Callable[[str], None]  # trains the network of this name
Sum = Callable[[Graph, Callable[[Block], np.ndarray], int], np.ndarray]
"""Of the private graph, what the records of a block send, and public coins: a row per node."""


def perturb_aggregations(
    curator: Curator,
    predictor: GapPredictor,
    train: Stage,
    neighbour_sum: Sum,
    coins: np.random.Generator,
    progress: Progress,
) -> GapPredictor:
    """Centre, encoder, hops, classifier; absent slots send nothing at hop 1, later hops send released rows."""
    predictor.tables["centre"] = release_centre(curator)
    for network in predictor.networks.values():
        network.initialise(coins)
    train("encoder")
    for hop in range(1, predictor.shape.hops + 1):
        key = int(coins.integers(2**32))

        def query(private: Graph, key: int = key) -> np.ndarray:
            return neighbour_sum(private, predictor.sent, key)

        predictor.tables[f"hop{hop}"] = unit_array(curator.release(f"hop {hop}", query))
        progress("hops", hop, predictor.shape.hops)
    train("classifier")
    return predictor
