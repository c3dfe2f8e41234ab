"""Sound NIP-GNN: what it plans to release, and the tables that come out.

Gaussian noise: messages of l2 norm 1, shares of mu^2, sensitivities of ``aggregation.py``. Laplace noise: messages of l1 norm 1
with the senders' weights ``w_k = (sum_{i in out(k)} 1/s_i)^-1``, so one record's whitened messages have l1 norm at most 1
whatever its degree; blank or not they differ by 1, replaced by 2 (old and new list may be disjoint). Shares are then parts of
epsilon itself and the total is pure. Messages: projected features, one-hot training labels (noise covers them like features), or
labels that randomised response has already released. Tests: ``tests/methods/test_nip_gnn.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from graphveil.methods.common.aggregation import aggregate, hop_release
from graphveil.methods.common.own_predictor import GROWTH
from graphveil.methods.common.private_training import full_batch_release
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Laplace, RandomizedResponse
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Promise, Relation

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.methods.nip_gnn import NipGnn

LABEL_LEMMA = "one training record has one label"
L1_LEMMA = "messages of l1 norm 1 split over the own list by the receivers' scales"
INFLUENCE_PART = 0.25  # of the first aggregation's share, for the ranks


def gaussian_releases(method: NipGnn, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
    """Shares of mu^2; with one hop, B goes to the first aggregation. Randomised labels cost C epsilon."""
    parts, label_share = _table_parts(method), method.split[2]
    rr = method.labels == "rr"
    total = sum(parts.values()) + (0.0 if rr else label_share)
    width, start = method.shape(facts).width, 2 if method.messages == "rr-labels" else 1
    tables = tuple(
        hop_release(name, 2 if name.startswith("hop") else start, width, mu * math.sqrt(part / total), facts, promise)
        for name, part in parts.items()
    )
    if rr:
        return _with_labels(method, tables, _label_release(facts, promise, label_share * promise.epsilon))
    budget = mu * math.sqrt(label_share / total)
    stage = {"steps": method.steps, "clip": method.clip, "mu": budget, "growth": GROWTH}
    return *tables, full_batch_release("classifier", promise, facts, method.shape(facts).size, **stage)


def pure_releases(method: NipGnn, facts: PublicFacts, promise: Promise) -> tuple[Release, ...]:
    """Laplace tables and randomised labels whose epsilons add up to the promise's, without any delta."""
    parts, label_share = _table_parts(method), method.split[2]
    total = sum(parts.values()) + label_share
    bound = 2.0 if promise.relation is Relation.REPLACE else 1.0
    everybody = dict.fromkeys((kind for kind, n in facts.kinds.items() if n), bound)
    size = facts.nodes * method.shape(facts).width

    def table(name: str, part: float) -> Release:
        share = part / total * promise.epsilon * (1 - 1e-12)
        noise: Any = Laplace.for_epsilon(bound, share, size) if promise.private else Exact()
        return Release(name, noise, everybody, L1_LEMMA)

    tables = tuple(table(name, part) for name, part in parts.items())
    share = label_share / total * promise.epsilon * (1 - 1e-12)
    return _with_labels(method, tables, _label_release(facts, promise, share))


def _table_parts(method: NipGnn) -> dict[str, float]:
    first, later, _ = method.split
    first += later if method.hops == 1 else 0.0
    adaptive = method.allocation == "adaptive"
    parts = {"influence": first * INFLUENCE_PART} if adaptive else {}
    parts["aggregation"] = first * (1 - INFLUENCE_PART if adaptive else 1.0)
    return parts | {f"hop {hop}": later / (method.hops - 1) for hop in range(2, method.hops + 1)}


def _label_release(facts: PublicFacts, promise: Promise, epsilon: float) -> Release:
    noise: Any = RandomizedResponse(epsilon, facts.classes + 1) if promise.private else Exact()
    return Release("labels", noise, {"train": 1.0}, LABEL_LEMMA)


def _with_labels(method: NipGnn, tables: tuple[Release, ...], labels: Release) -> tuple[Release, ...]:
    """Labels come first where they are the messages."""
    return (labels, *tables) if method.messages == "rr-labels" else (*tables, labels)


def release_tables(method: NipGnn, curator: Curator, noisy_labels: np.ndarray | None) -> list[np.ndarray]:
    """H and the calibrated rows of every further hop, all unit rows of released sums."""
    from graphveil.graph.unit import unit_array
    from graphveil.methods.nip_gnn.influence import receiver_scales, scaled_sum

    promise, order = curator.plan.promise, 1 if method.noise == "laplace" else 2
    own = _messages(method, curator.facts, noisy_labels)
    scales = np.ones(curator.facts.nodes)

    def plain(private: Graph, rows: np.ndarray) -> np.ndarray:
        if order == 1:
            return scaled_sum(private.lists, rows, np.ones(private.nodes), order)
        return aggregate(private.lists, rows, promise)

    if method.allocation == "adaptive":
        first = curator.release("influence", lambda private: plain(private, own(private)))
        scales = receiver_scales(first, method.spread)
    query = lambda private: scaled_sum(private.lists, own(private), scales, order)
    start = unit_array(curator.release("aggregation", query) * scales[:, None])
    tables = [start]
    for hop in range(2, method.hops + 1):
        rows = tables[-1]
        near = unit_array(curator.release(f"hop {hop}", lambda private, rows=rows: plain(private, rows)))
        distance = np.linalg.norm(near - start, axis=1, keepdims=True)
        gain = np.maximum(1 - method.tau / np.maximum(distance, 1e-12), 0.0) if method.residual else 1.0
        tables.append(unit_array((1 - gain) * start + gain * near))
    return tables


def _messages(method: NipGnn, facts: PublicFacts, noisy_labels: np.ndarray | None) -> Any:
    """What everybody sends at the first aggregation, as a function of the private graph; absent people send nothing."""
    from graphveil.methods.dpdgc.codes import label_codes, one_hot
    from graphveil.methods.nip_gnn.predictor import projected

    if method.messages == "labels":
        return label_codes
    if method.messages == "rr-labels":
        assert noisy_labels is not None
        sent = one_hot(noisy_labels, facts.classes)
        return lambda private: sent
    shape = method.shape(facts)
    return lambda private: projected(private, shape) * private.present[:, None]
