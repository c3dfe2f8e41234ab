"""DPDGC without privacy: the paper's two stages by ordinary training on the raw graph."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from graphveil.graph import Lists
from graphveil.graph.unit import unit_array
from graphveil.methods.common.trainer import open_trainer
from graphveil.methods.dpdgc.bounds import AdjacencyRows
from graphveil.methods.dpdgc.classifier import TEXT, PaperPredictor
from graphveil.methods.dpdgc.codes import CodeNetwork, adjacency_rows
from graphveil.privacy.curator import Curator
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.methods.dpdgc.published import PublishedDpdgc


def decouple_openly(
    curator: Curator,
    predictor: PaperPredictor,
    rows: AdjacencyRows,
    coins: np.random.Generator,
    progress: Progress,
    method: PublishedDpdgc,
) -> PaperPredictor:
    """Codes by Adam on batches of adjacency rows, their sums, the classifier by Adam on batches; the best epoch of each."""
    from graphveil.methods.dpdgc.published import standardised

    facts = curator.facts
    arcs = np.asarray(curator.release("graph", lambda private: private.lists.edge_index()), dtype=np.int64)
    sent = Lists.from_edge_index(arcs[::-1] if rows is AdjacencyRows.OWN_LIST else arcs, facts.nodes)
    normal = predictor.shape.batch_norm
    train = partial(open_trainer, curator, coins, progress, best_epoch=True, batch_size=method.batch_size)
    taken = method.batch_gradients(normal)
    network = CodeNetwork(facts.nodes, method.width, facts.classes, coins, None, batch_norm=normal)
    entries = adjacency_rows(sent, np.ones(facts.nodes), np.arange(facts.nodes))
    train(method.epochs, learning_rate=method.learning_rate, **taken)("codes", network, lambda graph: entries)
    table = sent.aggregate(network.codes) + network.offset
    predictor.tables["centre"] = np.zeros(facts.features)
    predictor.tables["table"] = (
        unit_array(table) if method.reading == TEXT else table if normal else standardised(table)
    )
    classifier = predictor.networks[""].initialise(coins)
    rate, dropout = method.learning_rate, method.dropout
    train(method.open_epochs, learning_rate=rate, dropout=dropout, **taken)("classifier", classifier, predictor.inputs)
    return predictor
