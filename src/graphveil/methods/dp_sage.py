"""DP-SAGE: one-layer GraphSAGE under node-level privacy (after Daigavane et al. 2022, "Node-Level DP GNNs").

    training   h_i = [U x_i, V a_i],  a_i = sum_k A[i, k] w_k x_k,  logits = head(selu(h_i)); one clipped gradient per node
    inference  V a_i is replaced by S_i = sum_k A[i, k] w_k clip(V x_k) + N(0, sigma^2), released once for everybody

Formal guarantee. *record*: everybody's own list is cut to D entries by public priorities, which reads the own list alone; one
record is then in the inputs of at most D rows and owns one: Lemma G with (D + 1, D), replace (2D + 1, 2D + 1). *bounded-degree*:
the same by promise, nothing is cut. Inference is one aggregation of rows of norm at most ``message_clip`` (``aggregation.py``,
hop 1). The original cuts in-lists by a sampler that is not stable when a person leaves (139 rows on Cora for a claimed 6); this
version does not. Tests: ``tests/methods/test_dp_sage.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import PrivateMethod
from graphveil.methods.card import card
from graphveil.methods.common.aggregation import aggregate, hop_sensitivity
from graphveil.methods.common.branches import branch_parameters
from graphveil.methods.common.group_training import calibrated, descend_on_groups, group_release
from graphveil.methods.common.own_predictor import centred
from graphveil.methods.options import Count, Positive, Range, Share
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Guarantee, Level, Promise, Relation
from graphveil.progress import Progress

if TYPE_CHECKING:
    from graphveil.graph import Graph, Lists, Rows
    from graphveil.learn import Branches

PEOPLE = (Adjacency.RECORD, Adjacency.BOUNDED_DEGREE)
GROUP_LEMMA = "Lemma G: a record is in the inputs of at most D rows and owns one, each clipped"


class DpSage(PrivateMethod):
    """One-layer GraphSAGE with grouped private gradients and a noisy aggregation at inference.

    Args:
        max_degree: entries kept of everybody's own list under ``record``.
        hidden: width of the layer and of the released table.
        steps, batch_rate, clip, learning_rate: Poisson gradient steps.
        message_clip: norm to which V x_k is shortened at inference.
        table_share: part of the budget for the aggregation at inference.
    """

    card = card("dp-sage")

    supports = frozenset(Guarantee(Level.NODE, adjacency, relation) for adjacency in PEOPLE for relation in Relation)

    max_degree: Count = 5
    hidden: Count = 16
    steps: Count = 50
    batch_rate: Annotated[float, Range(0, 1, "(]")] = 0.2
    clip: Positive = 0.5
    learning_rate: Positive = 0.02
    message_clip: Positive = 0.5
    table_share: Share = 0.3

    # -- plan ----------------------------------------------------------------------------------------------------

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if facts.features == 0:
            raise InputError("dp-sage aggregates features, but this graph has none")
        return calibrated(
            promise, lambda mu: self._releases(facts, promise, mu), lambda releases: Plan(promise, facts, releases)
        )

    def _releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        everybody = [kind for kind, n in facts.kinds.items() if n]
        gradient = group_release(
            "gradient",
            promise,
            dict.fromkeys(everybody, self.clip),
            self._shape(facts).size,
            group=self.group(promise),
            records=facts.count("train"),
            steps=self.steps,
            rate=self.batch_rate,
            clip=self.clip,
            mu=mu * math.sqrt(1 - self.table_share),
            lemma=GROUP_LEMMA,
        )
        lemma = f"sum of messages of norm {self.message_clip:g}, {promise.adjacency}, {promise.relation}"
        excluded = promise.adjacency is Adjacency.BOUNDED_DEGREE
        if not promise.private:
            return gradient, Release("table", Exact(), dict.fromkeys(everybody, 1.0), lemma, excluded)
        bound = self.message_clip * hop_sensitivity(promise, 1) * (1 + 1e-9)
        noise = Gaussian.for_mu(bound, mu * math.sqrt(self.table_share), facts.nodes * self.hidden)
        return gradient, Release("table", noise, dict.fromkeys(everybody, bound), lemma, excluded)

    def group(self, promise: Promise) -> tuple[int, int]:
        """Rows whose gradients one record can move, before and after."""
        most = promise.max_degree or self.max_degree
        return (2 * most + 1, 2 * most + 1) if promise.relation is Relation.REPLACE else (most + 1, most)

    def _shape(self, facts: PublicFacts) -> Shape:
        return Shape(facts.features, facts.classes, self.hidden)

    # -- algorithm -----------------------------------------------------------------------------------------------

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress | None) -> SagePredictor:
        from graphveil.learn import GlobalMoment

        predictor = SagePredictor.build(self._shape(curator.facts))
        predictor.network.initialise(coins)
        promise, key = curator.plan.promise, int(coins.integers(2**32))
        train = np.flatnonzero(curator.masks["train"])

        def inputs(private: Graph, rows: np.ndarray) -> Any:
            near = neighbour_rows(self._lists(private, promise, key), private, promise).take(rows)
            return predictor.own(private).take(rows), near

        optimizer = GlobalMoment(self.learning_rate)
        descend_on_groups(curator, "gradient", predictor.network, inputs, optimizer, train, progress)
        predictor.table = self._table(curator, predictor, key)
        return predictor

    def _lists(self, private: Graph, promise: Promise, key: int) -> Lists:
        if promise.adjacency is Adjacency.RECORD:
            return private.lists.capped(self.max_degree, np.random.default_rng(key))
        return private.lists

    def _table(self, curator: Curator, predictor: SagePredictor, key: int) -> np.ndarray:
        """S: messages V x_k of absent slots are zero because their features are."""
        promise = curator.plan.promise

        def query(private: Graph) -> np.ndarray:
            messages = predictor.messages(private) / self.message_clip  # aggregate() shortens longer ones to norm 1
            return self.message_clip * aggregate(self._lists(private, promise, key), messages, promise)

        return curator.release("table", query)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> SagePredictor:
        return SagePredictor.restore(config, arrays)

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        if plan.promise.adjacency is Adjacency.BOUNDED_DEGREE:
            bound = plan.promise.max_degree
            promised = f"nobody has more than {bound} contacts in either direction (promised by the user, not checked)"
            assumptions = (promised, "row r of the released table is shown to node r alone", *assumptions)
        return public, assumptions


def neighbour_rows(lists: Lists, graph: Graph, promise: Promise) -> Rows:
    """The weighted sums a_i of neighbours' unit features, sparse where the features are."""
    import scipy.sparse as sp
    import torch

    from graphveil.graph import DenseRows, SparseRows
    from graphveil.graph.unit import unit_rows

    senders, receivers = lists.edge_index()
    weights = lists.mass_weights() if promise.adjacency is not Adjacency.BOUNDED_DEGREE else np.ones(lists.nodes)
    matrix = sp.csr_matrix((weights[senders], (receivers, senders)), shape=(lists.nodes, lists.nodes))
    unit = unit_rows(graph.rows)
    if isinstance(unit, SparseRows):
        return SparseRows(matrix @ unit.values)
    dense = unit.matmul(torch.eye(unit.shape[1], dtype=torch.float64))
    return DenseRows(torch.from_numpy(matrix @ dense.numpy()))


@dataclass(frozen=True)
class Shape:
    """Public sizes."""

    features: int
    classes: int
    hidden: int

    @property
    def size(self) -> int:
        return branch_parameters((self.features + 1, self.features), self.hidden, self.classes)


class SagePredictor:
    """Released numbers: the network and the table S (one row per node)."""

    def __init__(self, shape: Shape, network: Branches) -> None:
        self.shape, self.network = shape, network
        self.table = np.zeros((0, shape.hidden))

    @classmethod
    def build(cls, shape: Shape) -> SagePredictor:
        from graphveil.learn import Branches

        branches = ((shape.features + 1, shape.hidden), (shape.features, shape.hidden))
        return cls(shape, Branches(branches, (shape.classes,), normalise=False))

    def own(self, graph: Graph) -> Any:
        return centred(graph, np.zeros(graph.features))

    def messages(self, graph: Graph) -> np.ndarray:
        """V x_k for everybody."""
        from graphveil.graph.unit import unit_rows

        (near,) = self.network.branches[1]
        return unit_rows(graph.rows).matmul(near.weight.T.contiguous()).numpy()

    def logits(self, graph: Graph) -> np.ndarray:
        import torch

        (own,), (near,), (head,) = *self.network.branches, self.network.head
        assert near.bias is not None
        joined = torch.cat([own(self.own(graph)), torch.from_numpy(self.table) + near.bias], dim=1)
        return head(self.network.activation(joined)).numpy()

    def config(self) -> dict[str, Any]:
        return asdict(self.shape)

    def arrays(self) -> dict[str, np.ndarray]:
        return {**self.network.state(), "table": self.table}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> SagePredictor:
        predictor = cls.build(Shape(**config))
        predictor.table = arrays["table"]
        predictor.network.load({name: value for name, value in arrays.items() if name.startswith("layer")})
        return predictor
