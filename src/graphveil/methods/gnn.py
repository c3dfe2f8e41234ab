"""GraphSAGE, GCN and SGC without any privacy: the lines that say what the edges are worth.

Everything is read as it is, by one exact release, so a certificate of these methods says that nothing is protected.
Tests: ``tests/methods/test_edge_rand.py``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from graphveil.graph import Graph
from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.aggregation import payers
from graphveil.methods.options import Count, Fraction, NonNegative, Positive
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Guarantee, Promise
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.learn.backbones import TwoLayers


@dataclass(frozen=True)
class NetworkShape:
    """A backbone by name, and its public sizes."""

    backbone: str
    width: int
    hidden: int
    classes: int

    def build(self, dropout: float = 0.0, seed: int = 0) -> TwoLayers:
        """The network, with initial weights from ``seed`` (public)."""
        from graphveil.learn.backbones import build_backbone

        return build_backbone(self.backbone, self.width, self.hidden, self.classes, dropout, seed)


class GnnPredictor:
    """A trained network; ``arcs`` is the released graph it predicts on, or None to read the graph it is given."""

    def __init__(self, shape: NetworkShape, network: TwoLayers, arcs: np.ndarray | None = None) -> None:
        self.shape, self.network, self.arcs = shape, network.eval(), arcs
        self.transfers = arcs is None
        self.slot_arrays = () if arcs is None else ("arcs",)

    def arcs_on(self, graph: Graph) -> np.ndarray:
        """The arcs along which these nodes are scored."""
        return graph.lists.edge_index() if self.arcs is None else self.arcs

    def logits(self, graph: Graph) -> np.ndarray:
        import torch

        from graphveil.learn.graph_training import edges_for, features

        edges = edges_for(self.shape.backbone, self.arcs_on(graph), graph.nodes)
        with torch.no_grad():
            scores: np.ndarray = self.network(features(graph.rows), edges).double().numpy()
        return scores

    def config(self) -> dict[str, Any]:
        return {"kind": "gnn", **asdict(self.shape)}

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {name: weight.numpy() for name, weight in self.network.state_dict().items()}
        return arrays if self.arcs is None else arrays | {"arcs": self.arcs}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        import torch

        shape = NetworkShape(**{key: value for key, value in config.items() if key != "kind"})
        network = shape.build()
        network.load_state_dict({name: torch.from_numpy(value) for name, value in arrays.items() if name != "arcs"})
        return cls(shape, network, arrays.get("arcs"))


class GraphNetwork(PrivateMethod):
    """A network on open records and the arcs given, by full-batch Adam."""

    predictor = GnnPredictor

    hidden: Count = 64
    epochs: Count = 200
    learning_rate: Positive = 0.01
    weight_decay: NonNegative = 5e-4
    dropout: Fraction = 0.5

    def trained(
        self, backbone: str, arcs: np.ndarray, curator: Curator, coins: np.random.Generator, progress: Progress
    ) -> tuple[NetworkShape, TwoLayers]:
        from graphveil.learn.graph_training import edges_for, features, train_on_graph

        records, facts = curator.open_records(), curator.facts
        shape = NetworkShape(backbone, facts.features + 1, self.hidden, facts.classes)
        network = shape.build(self.dropout, int(coins.integers(2**31)))
        train_on_graph(
            network,
            features(records.rows),
            edges_for(backbone, arcs, records.nodes),
            np.where(curator.masks["train"], records.labels, -1),
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            seed=int(coins.integers(2**31)),
            progress=partial(progress, backbone),
        )
        return shape, network


class Sage(GraphNetwork):
    """Two-layer GraphSAGE with mean aggregation."""

    card = card("sage")
    backbone: ClassVar[str] = "sage"
    supports = frozenset[Guarantee]()

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        raw = Release("graph", Exact(), payers(facts, promise, 1.0), "the raw graph: nothing is protected")
        return Plan(promise, facts, (raw,))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> GnnPredictor:
        arcs = np.asarray(curator.release("graph", lambda private: private.lists.edge_index()), dtype=np.int64)
        return GnnPredictor(*self.trained(self.backbone, arcs, curator, coins, progress))


class Gcn(Sage):
    """Two-layer graph convolutional network."""

    card = card("gcn")
    backbone = "gcn"


class Sgc(Sage):
    """Simplified graph convolution: two propagations and one linear layer."""

    card = card("sgc")
    backbone = "sgc"
