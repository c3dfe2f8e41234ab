"""What one change can move in DPDGC, by adjacency, and the releases made for it.

Codes: how many rows ``(a, b)`` of a gradient sum over adjacency rows one change touches (Lemma G).

===============  =====================================================  =====================================
adjacency        zero-out                                               replace
===============  =====================================================  =====================================
edge-directed    (1, 1): the receiver's row
edge-undirected  (2, 2): both rows
k-neighbor       (k + 1, k): k friends' rows, the own row vanishes
record, cap D    (D + 1, D): the receivers on r's own list, own row     (2D + 1, 2D + 1): old and new receivers
===============  =====================================================  =====================================

Table ``A_w W`` of codes of norm at most 1. *Released codes* (learned, randomised labels, random) stay put when a record changes:
record (w_k = d_k^-1/2) 1 or sqrt 2; k-neighbor (w = 1) sqrt k, the own row excluded; edge 1 or sqrt 2. *Label codes* move with
the record: ``aggregation.py``, hop 1. Attained and never exceeded: ``tests/methods/test_dpdgc.py``.
"""

from __future__ import annotations

import math

from graphveil.errors import PrivacyError
from graphveil.methods.common.aggregation import hop_sensitivity, payers
from graphveil.methods.common.private_training import group_release
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.noise import scaling_error
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Adjacency, Promise, Relation

CODES_LEMMA = "Lemma G: one record touches a bounded group of adjacency rows, each clipped"
LABELS_LEMMA = "one training record has one label; leaving it blank is one of the categories"


def group_of(promise: Promise, cap: int) -> tuple[int, int]:
    """Rows of one gradient sum that one change can touch, before and after."""
    match promise.adjacency:
        case Adjacency.EDGE_DIRECTED:
            return 1, 1
        case Adjacency.EDGE_UNDIRECTED:
            return 2, 2
        case Adjacency.K_NEIGHBOR if promise.k is not None and promise.relation is Relation.ZERO_OUT:
            return promise.k + 1, promise.k
        case Adjacency.RECORD:
            return (2 * cap + 1, 2 * cap + 1) if promise.relation is Relation.REPLACE else (cap + 1, cap)
        case Adjacency.NONE:
            return 1, 0
    raise PrivacyError(f"no group of rows is proved for {promise.guarantee}")


def table_bound(facts: PublicFacts, promise: Promise, width: int, codes_released: bool) -> float:
    """The worst change of the table for codes of norm 1."""
    if codes_released and promise.adjacency is Adjacency.K_NEIGHBOR:
        assert promise.k is not None
        return math.sqrt(promise.k)
    return hop_sensitivity(promise, 2 if codes_released else 1, facts.nodes, width)


def own_row_excluded(promise: Promise, codes_released: bool) -> bool:
    """With plain weights at k-neighbor level row r itself loses k codes; it is shown to r alone."""
    return codes_released and promise.adjacency is Adjacency.K_NEIGHBOR


def code_release(
    facts: PublicFacts, promise: Promise, width: int, mu: float, *, cap: int, steps: int, rate: float, clip: float
) -> Release:
    """The gradient steps of learned codes, along lists cut to ``cap`` entries."""
    return group_release(
        "codes",
        promise,
        payers(facts, promise, clip),
        (facts.nodes + 1) * width,
        group=group_of(promise, cap),
        records=facts.count("train"),
        steps=steps,
        rate=rate,
        clip=clip,
        mu=mu,
        lemma=CODES_LEMMA,
    )


def table_release(
    facts: PublicFacts, promise: Promise, width: int, mu: float, norm: float, codes_released: bool
) -> Release:
    """The noisy sums of codes of this norm, for mu."""
    lemma = f"sum of codes of norm {norm:g}, {promise.adjacency}, {promise.relation}"
    excluded = own_row_excluded(promise, codes_released)
    if not promise.private:
        return Release("table", Exact(), payers(facts, promise, 1.0), lemma, excluded)
    bound = (
        norm * table_bound(facts, promise, width, codes_released) * (1 if norm == 1 else 1 + scaling_error(facts.nodes))
    )
    mechanism = Gaussian.for_mu(bound, mu, facts.nodes * width)
    return Release("table", mechanism, payers(facts, promise, bound), lemma, excluded)
