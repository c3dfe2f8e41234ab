"""What sound NIP-GNN releases, and the lemmas behind its noise.

Gaussian noise: messages of l2 norm 1, shares of mu^2, sensitivities of ``common/aggregation.py``. Laplace noise: messages of l1
norm 1 with the senders' weights ``w_k = (sum_{i in out(k)} 1/s_i)^-1``, so one record's whitened messages have l1 norm at most 1
whatever its degree; blank or not they differ by 1, replaced by 2 (old and new list may be disjoint). Shares are then parts of
epsilon itself and the total is pure. Messages: projected features, one-hot training labels (noise covers them like features), or
labels that randomised response has already released. Tests: ``tests/methods/test_nip_gnn.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from graphveil.methods.common.aggregation import hop_release, payers
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Laplace, Mechanism
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Promise, Relation

LABEL_LEMMA = "one training record has one label"
L1_LEMMA = "messages of l1 norm 1 split over the own list by the receivers' scales"
INFLUENCE_PART = 0.25  # of the first aggregation's share, for the ranks
RESERVE = 1 - 1e-12  # shares of a pure epsilon must not add up to more than it


def table_parts(first: float, later: float, hops: int, adaptive: bool) -> dict[str, float]:
    """How the shares of the first aggregation and of the further hops are divided; with one hop, the first has both."""
    first += later if hops == 1 else 0.0
    parts = {"influence": first * INFLUENCE_PART} if adaptive else {}
    parts["aggregation"] = first * (1 - INFLUENCE_PART if adaptive else 1.0)
    return parts | {f"hop {hop}": later / (hops - 1) for hop in range(2, hops + 1)}


def gaussian_tables(
    parts: Mapping[str, float], total: float, width: int, start: int, facts: PublicFacts, promise: Promise, mu: float
) -> tuple[Release, ...]:
    """Tables of ``width`` numbers per node, each for its part of ``total`` in mu^2; the first ones are of hop ``start``."""
    return tuple(
        hop_release(name, 2 if name.startswith("hop") else start, width, mu * math.sqrt(part / total), facts, promise)
        for name, part in parts.items()
    )


def laplace_tables(
    parts: Mapping[str, float], total: float, width: int, facts: PublicFacts, promise: Promise
) -> tuple[Release, ...]:
    """Tables of ``width`` numbers per node, each for its part of ``total`` in epsilon."""
    bound = 2.0 if promise.relation is Relation.REPLACE else 1.0

    def noise(part: float) -> Mechanism:
        share = part / total * promise.epsilon * RESERVE
        return Laplace.for_epsilon(bound, share, facts.nodes * width) if promise.private else Exact()

    return tuple(Release(name, noise(part), payers(facts, promise, bound), L1_LEMMA) for name, part in parts.items())
