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
from functools import partial
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from graphveil import learn
from graphveil.errors import InputError
from graphveil.graph import DenseRows, Graph, Lists, Rows, SparseRows
from graphveil.graph.unit import unit_rows
from graphveil.methods.base import PrivateMethod, guarantees, promised_degree
from graphveil.methods.card import card, gaps
from graphveil.methods.common.aggregation import aggregate, hop_sensitivity, payers, plain_sum
from graphveil.methods.common.branches import BranchPredictor, BranchShape, projected_rows
from graphveil.methods.common.private_training import calibrated, descend_on_groups, group_release
from graphveil.methods.common.trainer import PaperBatches
from graphveil.methods.options import Count, Positive, Range, Share
from graphveil.privacy.accounting.paper import claimed_noise
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian
from graphveil.privacy.noise import scaling_error, summation_error
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation
from graphveil.progress import Progress

GROUP_LEMMA = "Lemma G: a record is in the inputs of at most D rows and owns one, each clipped"


class SagePredictor(BranchPredictor):
    """Released numbers: the network and the table S (one row per node)."""

    def messages(self, graph: Graph) -> np.ndarray:
        """V x_k for everybody."""
        (near,) = self.networks[""].branches[1]
        return unit_rows(graph.rows).matmul(near.weight.T.contiguous()).numpy()

    def logits(self, graph: Graph) -> np.ndarray:
        import torch

        network = self.networks[""]
        ((own,), (near,)), (head,) = network.branches, network.head
        joined = torch.cat([own(self.own_inputs(graph)), torch.from_numpy(self.tables["table"]) + near.bias], dim=1)
        return np.asarray(head(torch.selu(joined)).numpy())


class DpSage(PrivateMethod):
    """One-layer GraphSAGE with grouped private gradients and a noisy aggregation at inference.

    Args:
        max_degree: entries kept of everybody's own list under ``record``.
        hidden: width of the layer and of the released table.
        message_clip: norm to which V x_k is shortened at inference.
        table_share: part of the budget for the aggregation at inference.
    """

    card = card("dp-sage")
    predictor = SagePredictor
    supports = guarantees(Adjacency.RECORD, Adjacency.BOUNDED_DEGREE)

    max_degree: Count = 5
    hidden: Count = 16
    steps: Count = 50
    batch_rate: Annotated[float, Range(0, 1, "(]")] = 0.2
    clip: Positive = 0.5
    learning_rate: Positive = 0.02
    message_clip: Positive = 0.5
    table_share: Share = 0.3

    def shape(self, facts: PublicFacts) -> BranchShape:
        return BranchShape(facts.features, facts.classes, facts.features, self.hidden)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if facts.features == 0:
            raise InputError("dp-sage aggregates features, but this graph has none")
        return calibrated(promise, facts, partial(self._releases, facts, promise))

    def _releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        gradient = group_release(
            "gradient",
            promise,
            payers(facts, promise, self.clip),
            self.shape(facts).size,
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
            return gradient, Release("table", Exact(), payers(facts, promise, 1.0), lemma, excluded)
        moved = self.message_clip * hop_sensitivity(promise, 1, facts.nodes, self.hidden)
        bound = moved * (1 + scaling_error(facts.nodes))
        noise = Gaussian.for_mu(bound, mu * math.sqrt(self.table_share), facts.nodes * self.hidden)
        return gradient, Release("table", noise, payers(facts, promise, bound), lemma, excluded)

    def group(self, promise: Promise) -> tuple[int, int]:
        """Rows whose gradients one record can move, before and after."""
        most = promise.max_degree or self.max_degree
        return (2 * most + 1, 2 * most + 1) if promise.relation is Relation.REPLACE else (most + 1, most)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> SagePredictor:
        predictor, promise = SagePredictor.build(self.shape(curator.facts)), curator.plan.promise
        network, key = predictor.networks[""].initialise(coins), int(coins.integers(2**32))

        lists = partial(self._lists, promise=promise, key=key)

        def inputs(private: Graph, rows: np.ndarray) -> Any:
            near = neighbour_rows(lists(private), private, promise)
            return predictor.own_inputs(private).take(rows), near.take(rows)

        def table(private: Graph) -> np.ndarray:
            """S: messages V x_k of absent slots are zero because their features are."""
            messages = predictor.messages(private) / self.message_clip  # aggregate() shortens longer ones to norm 1
            return self.message_clip * aggregate(lists(private), messages, promise)

        train = np.flatnonzero(curator.masks["train"])
        descend_on_groups(curator, "gradient", network, inputs, learn.GlobalMoment(self.learning_rate), train, progress)
        predictor.tables["table"] = curator.release("table", table)
        return predictor

    def _lists(self, private: Graph, promise: Promise, key: int) -> Lists:
        if promise.adjacency is Adjacency.RECORD:
            return private.lists.capped(self.max_degree, np.random.default_rng(key))
        return private.lists

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, assumptions = super().statements(plan)
        return public, (*promised_degree(plan.promise), *assumptions)


class PublishedDpSage(PaperBatches):
    """DP-SAGE as the baseline of GAP and DPDGC: a group of D + 1 rows at noise 2 (D + 1) z, and noise at inference for 2 sqrt D.

    z is what the papers' accounting gives (``privacy/accounting/paper.py``); everybody's list is cut to D entries by the code, so
    that far more rows can move than are counted (D3), and the epoch is chosen on private validation labels (D8).

    Args:
        max_degree: D, to which everybody's list is cut.
        message_clip: norm to which V x_k is shortened at inference.
    """

    card = DpSage.card
    gaps = gaps("dp-sage")
    predictor = SagePredictor
    supports = guarantees(Adjacency.NODE, relations=(Relation.REPLACE,))

    max_degree: Count = 100
    hidden: Count = 64
    message_clip: Positive = 1.0

    def shape(self, facts: PublicFacts) -> BranchShape:
        return BranchShape(facts.features, facts.classes, facts.features, self.hidden)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if facts.features == 0 or promise.level is Level.NONE:
            raise InputError("published dp-sage aggregates private features at node level; without privacy use sage")
        steps, rate = self.batches(facts)
        scale = claimed_noise(promise, stages=1, gaussians=1, steps=steps, rate=rate)
        rows, records = self.max_degree + 1, facts.count("train")
        claimed, size = 2 * rows * self.clip, self.shape(facts).size
        moved = 2 * math.sqrt(self.max_degree) * self.message_clip
        gradient: DpGradient | Exact = Exact(steps)
        table: Gaussian | Exact = Exact()
        if promise.private:
            slack = 2 * summation_error(records, self.clip)
            gradient = DpGradient(scale * claimed, self.clip, steps, size, rate=rate, slack=slack)
            table = Gaussian(scale * moved, facts.nodes * self.hidden)
        releases = (
            Release("gradient", gradient, payers(facts, promise, claimed), "as the paper states it"),
            Release("table", table, payers(facts, promise, moved), "as the paper states it", True),
        )
        return Plan(promise, facts, releases, claim=promise.epsilon, gaps=self.gaps, provable=False)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> SagePredictor:
        predictor, promise = SagePredictor.build(self.shape(curator.facts)), curator.plan.promise
        network, key = predictor.networks[""].initialise(coins), int(coins.integers(2**32))

        def cut(private: Graph) -> Lists:
            return private.lists.capped(self.max_degree, np.random.default_rng(key))

        def inputs(private: Graph) -> Any:
            return predictor.own_inputs(private), neighbour_rows(cut(private), private, promise)

        def table(private: Graph) -> np.ndarray:
            return self.message_clip * plain_sum(cut(private), predictor.messages(private) / self.message_clip)

        self.trainer(curator, coins, progress)("gradient", network, inputs)
        predictor.tables["table"] = curator.release("table", table)
        return predictor


def neighbour_rows(lists: Lists, graph: Graph, promise: Promise) -> Rows:
    """The weighted sums a_i of neighbours' unit features, sparse where the features are."""
    import torch

    senders, receivers = lists.edge_index()
    plain = promise.adjacency in (Adjacency.BOUNDED_DEGREE, Adjacency.NODE)
    weights = np.ones(lists.nodes) if plain else lists.mass_weights()
    matrix = sp.csr_matrix((weights[senders], (receivers, senders)), shape=(lists.nodes, lists.nodes))
    unit = unit_rows(graph.rows)
    if isinstance(unit, SparseRows):
        return SparseRows(matrix @ unit.values)
    return DenseRows(torch.from_numpy(matrix @ projected_rows(graph, 0, 0)))
