"""GraphSAGE, GCN and SGC without any privacy: the lines that say what the edges are worth.

Everything is read as it is, by one exact release, so a certificate of these methods says that nothing is protected.
Tests: ``tests/methods/test_edge_rand.py``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod, Progress
from graphveil.methods.card import Card
from graphveil.methods.options import Count, Fraction, NonNegative, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Guarantee, Promise


def _card(name: str, long_name: str, paper: str, formula: str) -> Card:
    return Card(
        name=name,
        summary=f"{long_name}, trained and used on the raw graph; not private",
        paper=paper,
        trust="no protection of anything",
        protects="nothing",
        public="everything",
        formula=formula,
        when="as the non-private line, or on a graph that is public anyway",
    )


class Sage(PrivateMethod):
    """Two-layer GraphSAGE with mean aggregation.

    Args:
        hidden: width of the hidden layer.
        epochs, learning_rate, weight_decay, dropout: full-batch Adam.
    """

    card = _card(
        "sage",
        "GraphSAGE",
        "Inductive Representation Learning on Large Graphs (Hamilton, Ying and Leskovec, NeurIPS 2017)",
        "h = selu(X U + mean_N(X) V), logits = h U' + mean_N(h) V'",
    )
    operator: ClassVar[str] = "sage"

    hidden: Count = 64
    epochs: Count = 200
    learning_rate: Positive = 0.01
    weight_decay: NonNegative = 5e-4
    dropout: Fraction = 0.5

    @property
    def supports(self) -> frozenset[Guarantee]:
        return frozenset()

    def check(self) -> None:
        super().check()
        if min(self.hidden, self.epochs) < 1 or not 0 <= self.dropout < 1 or self.learning_rate <= 0:
            raise InputError(f"{self.name} needs positive hidden, epochs and learning_rate, and dropout in [0, 1)")

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        everybody = {kind: 1.0 for kind, count in facts.kinds.items() if count}
        return Plan(promise, facts, (Release("graph", Exact(), everybody, "the raw graph: nothing is protected"),))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> Any:
        arcs = curator.release("graph", lambda private: private.lists.edge_index())
        return train_on(curator, self, self.operator, arcs, coins, progress, keep_arcs=False)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        from graphveil.learn.gnn_network import GnnPredictor

        return GnnPredictor.restore(config, arrays)


class Gcn(Sage):
    """Two-layer graph convolutional network."""

    card = _card(
        "gcn",
        "a graph convolutional network",
        "Semi-Supervised Classification with Graph Convolutional Networks (Kipf and Welling, ICLR 2017)",
        "logits = S selu(S X U) U', S = (D+1)^-1/2 (A + I) (D+1)^-1/2",
    )
    operator = "gcn"


class Sgc(Sage):
    """Simplified graph convolution: two propagations and one linear layer."""

    card = _card(
        "sgc",
        "simplified graph convolution",
        "Simplifying Graph Convolutional Networks (Wu et al., ICML 2019)",
        "logits = S^2 X U, S = (D+1)^-1/2 (A + I) (D+1)^-1/2",
    )
    operator = "sgc"


def train_on(
    curator: Curator,
    options: Any,
    operator: str,
    arcs: np.ndarray,
    coins: np.random.Generator,
    progress: Progress | None,
    *,
    keep_arcs: bool,
) -> Any:
    """A graph network trained on public records and the arcs given; ``keep_arcs`` makes it predict on them, too."""
    from graphveil.graph import Lists
    from graphveil.learn.gnn_network import GnnPredictor, GraphNetwork, Operator, features, neighbourhood

    facts, records, kind = curator.facts, curator.open_records(), Operator(operator)
    network = GraphNetwork.initialised(kind, facts.features + 1, options.hidden, facts.classes, coins)
    network.train(
        features(records.rows),
        neighbourhood(Lists.from_edge_index(arcs, facts.nodes), kind),
        np.where(curator.masks["train"], records.labels, -1),
        epochs=options.epochs,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        dropout=options.dropout,
        coins=coins,
        progress=None if progress is None else lambda done, total: progress(operator, done, total),
    )
    return GnnPredictor(network, arcs if keep_arcs else None)
