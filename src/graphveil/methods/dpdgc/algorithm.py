"""The algorithm of DPDGC: codes, one noisy table of neighbours' codes, a classifier beside the own features.

Just before noise is added, the norms of the codes are checked against c: a normalisation that got lost cannot pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from graphveil import learn
from graphveil.errors import PrivacyError
from graphveil.graph import Graph, Lists, SparseRows
from graphveil.graph.unit import unit_array
from graphveil.methods.common.aggregation import aggregate, plain_sum
from graphveil.methods.common.branches import BranchPredictor
from graphveil.methods.common.labels import label_rows
from graphveil.methods.common.own_predictor import release_centre
from graphveil.methods.common.private_training import descend_on_groups
from graphveil.methods.common.trainer import Trainer
from graphveil.methods.dpdgc.bounds import AdjacencyRows, owns_rows
from graphveil.privacy.curator import Curator
from graphveil.privacy.promise import Adjacency
from graphveil.progress import Progress

ListsOf = Callable[[Graph], Lists]
Codes = tuple[np.ndarray | None, np.ndarray | float]  # W (None: everybody's own label) and b
Table = Callable[[Curator, np.ndarray | None, np.ndarray | float, ListsOf, AdjacencyRows], np.ndarray]
P = TypeVar("P", bound=BranchPredictor)


def decouple(
    curator: Curator,
    predictor: P,
    train: Trainer,
    codes: Callable[[ListsOf], Codes],
    coins: np.random.Generator,
    *,
    rows: AdjacencyRows,
    cap: int | None,
    table: Table,
) -> P:
    """Centre, codes, table, classifier; a node is in at most ``cap`` rows of A."""
    predictor.tables["centre"] = release_centre(curator)
    network = predictor.networks[""].initialise(coins)
    key = int(coins.integers(2**32))

    def lists(graph: Graph) -> Lists:
        sent = graph.lists.turned() if rows is AdjacencyRows.OWN_LIST else graph.lists
        return sent if cap is None else sent.capped(cap, np.random.default_rng(key))

    predictor.tables["table"] = table(curator, *codes(lists), lists, rows)
    train("classifier", network, predictor.inputs)
    return predictor


def learned_codes(
    curator: Curator,
    width: int,
    optimizer: learn.Optimizer,
    coins: np.random.Generator,
    progress: Progress,
    rows: AdjacencyRows,
    lists: ListsOf,
    norm: float | None = 1.0,
) -> Codes:
    """Private gradient steps on the weighted adjacency rows of the training records; every step starts at ``norm``.

    Weights under ``record``: those of the sender (Lemma M), or of the own list, which change nothing but the row's length.
    """
    from graphveil.methods.dpdgc.codes import CodeNetwork, adjacency_rows

    promise = curator.plan.promise
    split, own = promise.adjacency is Adjacency.RECORD, owns_rows(promise, rows)
    network = CodeNetwork(curator.facts.nodes, width, curator.facts.classes, coins, norm)

    def rows_of(private: Graph, chosen: np.ndarray) -> SparseRows:
        sent = lists(private)
        if own:
            return adjacency_rows(sent, np.ones(sent.nodes), chosen, 1 / np.sqrt(np.maximum(sent.in_degrees, 1)))
        return adjacency_rows(sent, sent.mass_weights() if split else np.ones(sent.nodes), chosen)

    train = np.flatnonzero(curator.masks["train"])
    descend_on_groups(curator, "codes", network, rows_of, optimizer, train, progress, network.normalise)
    network.normalise()
    return network.codes, network.offset


def noisy_table(
    curator: Curator,
    codes: np.ndarray | None,
    offset: np.ndarray | float,
    lists: ListsOf,
    rows: AdjacencyRows,
    norm: float = 1.0,
) -> np.ndarray:
    """Z; without ``codes`` everybody sends their own label."""
    promise = curator.plan.promise
    plain = codes is not None and (promise.adjacency is not Adjacency.RECORD or owns_rows(promise, rows))

    def query(private: Graph) -> np.ndarray:
        sent = label_rows(private) if codes is None else codes
        longest = float(np.linalg.norm(sent, axis=1).max(initial=0.0))
        if longest > 1 + 1e-9:
            raise PrivacyError(
                f"a code has norm {longest * norm:.3g}, the noise was calibrated for {norm:.3g}; nothing was released"
            )
        return norm * (plain_sum(lists(private), sent) if plain else aggregate(lists(private), sent, promise))

    return unit_array(curator.release("table", query) / norm + offset)
