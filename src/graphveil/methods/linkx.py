"""LINKX without any privacy (Lim et al., NeurIPS 2021): DPDGC's line where nothing is protected, trained as one network.

Features and adjacency rows are embedded apart and mixed (``learn/linkx.py``); row i of the adjacency is i's own list or those who
list i. The embedding of the adjacency is a table of one row per slot, so it predicts for the nodes it was trained with.
Tests: ``tests/methods/test_linkx.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from graphveil.graph import Graph, Lists
from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.trainer import open_trainer
from graphveil.methods.mlp import input_width, raw_inputs
from graphveil.methods.options import Count, Fraction, NonNegative, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Guarantee, Promise
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.learn.linkx import Linkx as Network


class LinkxPredictor:
    """The network, which reads features and lists of the graph it is given; its nodes must be those of the training."""

    slot_arrays = ()

    def __init__(self, network: Network, config: dict[str, Any]) -> None:
        self.network, self._config = network, config

    def inputs(self, graph: Graph) -> tuple[Any, Any]:
        return self.on(raw_inputs(graph), graph.lists)

    def on(self, rows: Any, lists: Lists) -> tuple[Any, Any]:
        """Features, and the adjacency rows of these lists."""
        from graphveil.methods.dpdgc.codes import adjacency_rows

        sent = lists.turned() if self._config["rows"] == "own-list" else lists
        return rows, adjacency_rows(sent, np.ones(sent.nodes), np.arange(sent.nodes))

    def logits(self, graph: Graph) -> np.ndarray:
        return np.asarray(self.network(self.inputs(graph)).numpy())

    def config(self) -> dict[str, Any]:
        return {"kind": "linkx", **self._config}

    def arrays(self) -> dict[str, np.ndarray]:
        return self.network.state()

    @classmethod
    def build(cls, config: dict[str, Any]) -> Self:
        from graphveil.learn.linkx import Linkx as Network

        sizes = (config[name] for name in ("features", "nodes", "hidden", "classes"))
        return cls(Network(*sizes), config)

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        predictor = cls.build({key: value for key, value in config.items() if key != "kind"})
        predictor.network.load(arrays)
        return predictor


class Linkx(PrivateMethod):
    """Ordinary training on batches; the epoch with the best accuracy on validation labels is kept.

    Args:
        rows: what row i of the adjacency holds: those whom i lists, or those who list i.
    """

    card = card("linkx")
    predictor = LinkxPredictor
    supports = frozenset[Guarantee]()

    rows: Literal["own-list", "listed-by"] = "own-list"
    hidden: Count = 64
    epochs: Count = 100
    batch_size: Count = 64
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.0
    dropout: Fraction = 0.5

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        raw = Release("graph", Exact(), payers(facts, promise, 1.0), "the raw graph: nothing is protected")
        return Plan(promise, facts, (raw,))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> LinkxPredictor:
        facts = curator.facts
        sizes = {"features": input_width(facts.features, raw=True), "nodes": facts.nodes, "hidden": self.hidden}
        predictor = LinkxPredictor.build({**sizes, "classes": facts.classes, "rows": self.rows})
        predictor.network.initialise(coins)
        arcs = np.asarray(curator.release("graph", lambda private: private.lists.edge_index()), dtype=np.int64)
        lists = Lists.from_edge_index(arcs, facts.nodes)
        train = open_trainer(
            curator,
            coins,
            progress,
            self.epochs,
            learning_rate=self.learning_rate,
            best_epoch=True,
            weight_decay=self.weight_decay,
            dropout=self.dropout,
            batch_size=self.batch_size,
        )
        train("linkx", predictor.network, lambda records: predictor.on(raw_inputs(records), lists))
        return predictor
