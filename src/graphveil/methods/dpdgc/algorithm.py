"""The algorithm of DPDGC: codes, one noisy table of neighbours' codes, a classifier beside the own features.

Just before noise is added, the norms of the codes are checked against c: a normalisation that got lost cannot pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphveil import learn
from graphveil.errors import PrivacyError
from graphveil.graph import Graph, Lists, SparseRows
from graphveil.graph.unit import unit_array
from graphveil.methods.common.aggregation import aggregate, plain_sum
from graphveil.methods.common.branches import BranchPredictor, BranchShape
from graphveil.methods.common.labels import label_rows
from graphveil.methods.common.own_predictor import release_centre
from graphveil.methods.common.private_training import descend_on_groups
from graphveil.methods.common.trainer import Trainer
from graphveil.privacy.curator import Curator
from graphveil.privacy.promise import Adjacency
from graphveil.progress import Progress

ListsOf = Callable[[Graph], Lists]
Codes = tuple[np.ndarray | None, np.ndarray | float]  # W (None: everybody's own label) and b


def decouple(
    curator: Curator,
    shape: BranchShape,
    train: Trainer,
    codes: Callable[[ListsOf], Codes],
    coins: np.random.Generator,
    *,
    cap: int | None,
    norm: float,
) -> BranchPredictor:
    """Centre, codes, table, classifier; codes of this norm travel along everybody's own list, cut to ``cap`` entries."""
    predictor = BranchPredictor.build(shape)
    predictor.tables["centre"] = release_centre(curator)
    network = predictor.networks[""].initialise(coins)
    key = int(coins.integers(2**32))

    def lists(graph: Graph) -> Lists:
        return graph.lists if cap is None else graph.lists.capped(cap, np.random.default_rng(key))

    predictor.tables["table"] = noisy_table(curator, *codes(lists), lists, norm)
    train("classifier", network, predictor.inputs)
    return predictor


def learned_codes(
    curator: Curator,
    width: int,
    optimizer: learn.Optimizer,
    coins: np.random.Generator,
    progress: Progress,
    lists: ListsOf,
) -> Codes:
    """Private gradient steps on the weighted adjacency rows of the training records; every step starts at norm 1."""
    from graphveil.methods.dpdgc.codes import CodeNetwork, adjacency_rows

    split = curator.plan.promise.adjacency is Adjacency.RECORD
    network = CodeNetwork(curator.facts.nodes, width, curator.facts.classes, coins)

    def rows_of(private: Graph, rows: np.ndarray) -> SparseRows:
        sent = lists(private)
        return adjacency_rows(sent, sent.mass_weights() if split else np.ones(sent.nodes), rows)

    train = np.flatnonzero(curator.masks["train"])
    descend_on_groups(curator, "codes", network, rows_of, optimizer, train, progress, network.normalise)
    network.normalise()
    return network.codes, network.offset


def noisy_table(
    curator: Curator, codes: np.ndarray | None, offset: np.ndarray | float, lists: ListsOf, norm: float
) -> np.ndarray:
    """Z; without ``codes`` everybody sends their own label."""
    promise = curator.plan.promise
    plain = codes is not None and promise.adjacency is not Adjacency.RECORD

    def query(private: Graph) -> np.ndarray:
        sent = label_rows(private) if codes is None else codes
        longest = float(np.linalg.norm(sent, axis=1).max(initial=0.0))
        if longest > 1 + 1e-9:
            raise PrivacyError(
                f"a code has norm {longest * norm:.3g}, the noise was calibrated for {norm:.3g}; nothing was released"
            )
        return norm * (plain_sum(lists(private), sent) if plain else aggregate(lists(private), sent, promise))

    return unit_array(curator.release("table", query) / norm + offset)
