"""What one change can move in DPDGC, by adjacency and by what row i of its matrix A holds, and the releases made for it.

``listed-by``: those who list i (the paper's A). ``own-list``: those whom i lists (what the authors' code trains on). On
undirected graphs these are the same rows, but not the same records: under ``record`` a person owns their list, nobody else's.

Codes: how many rows ``(a, b)`` of a gradient sum over the rows of A one change touches (Lemma G).

===============  ===========  =========================================  =========================================
adjacency        rows         zero-out                                   replace
===============  ===========  =========================================  =========================================
edge-directed    either       (1, 1): one entry is in one row
edge-undirected  either       (2, 2): both rows
k-neighbor       either       (k + 1, k): k rows, the own one vanishes   (2k + 1, 2k + 1): old and new contacts
record, cap D    listed-by    (D + 1, D): receivers on r's list, own     (2D + 1, 2D + 1): old and new receivers
record           own-list     (1, 0): the own row alone                  (1, 1)
===============  ===========  =========================================  =========================================

*k-neighbor*: r's features, label and up to k edges vanish, in both lists. Whichever way round A is kept, k rows of others lose
one entry each; row r is one more, and blank (no label) afterwards. Replacing is vanishing and appearing: k rows lose, k gain.
*own-list under record*: row i is i's own list, and nobody else's record is in it. When r changes, rows and labels of all others
stay what they were, however many people list r; so no list has to be cut.

Table ``A_w W`` of codes of norm at most 1. *Released codes* (learned, randomised labels, random) stay put when a record changes.
Edge: 1 or sqrt 2, either way. k-neighbor (w = 1): k rows of others lose one code each: sqrt k, replacing sqrt(2k), either way,
the own row excluded; nothing at k = 0. record, listed-by (w_k = d_k^-1/2): 1 or sqrt 2. record, own-list: 0, the own row
excluded: Z_i is what i could compute from the released codes and their own list, so it carries no noise and is for i alone, like
their features. *Label codes* move with the record, which is in unboundedly many own-list rows: they need ``listed-by``
(``aggregation.py``, hop 1; k-neighbor, replace: twice zero-out), unless labels are public.
Attained and never exceeded: ``tests/methods/test_dpdgc.py``, ``tests/methods/test_dpdgc_rows.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum

from graphveil.errors import PrivacyError
from graphveil.methods.common.aggregation import hop_sensitivity, payers
from graphveil.methods.common.private_training import group_release
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.noise import scaling_error
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

CODES_LEMMA = "Lemma G: one record touches a bounded group of adjacency rows, each clipped"
LABELS_LEMMA = "one training record has one label; leaving it blank is one of the categories"


class AdjacencyRows(StrEnum):
    """What row i of A holds."""

    LISTED_BY = "listed-by"
    OWN_LIST = "own-list"


def owns_rows(promise: Promise, rows: AdjacencyRows) -> bool:
    """Whether row i of A is part of i's record and of nobody else's."""
    return promise.adjacency is Adjacency.RECORD and rows is AdjacencyRows.OWN_LIST


def group_of(promise: Promise, cap: int, rows: AdjacencyRows = AdjacencyRows.LISTED_BY) -> tuple[int, int]:
    """Rows of one gradient sum that one change can touch, before and after."""
    replaced = promise.relation is Relation.REPLACE
    match promise.adjacency:
        case Adjacency.EDGE_DIRECTED:
            return 1, 1
        case Adjacency.EDGE_UNDIRECTED:
            return 2, 2
        case Adjacency.K_NEIGHBOR if promise.k is not None:
            return (2 * promise.k + 1, 2 * promise.k + 1) if replaced else (promise.k + 1, promise.k)
        case Adjacency.RECORD if rows is AdjacencyRows.OWN_LIST:
            return 1, int(replaced)
        case Adjacency.RECORD:
            return (2 * cap + 1, 2 * cap + 1) if replaced else (cap + 1, cap)
        case Adjacency.NONE:
            return 1, 0
    raise PrivacyError(f"no group of rows is proved for {promise.guarantee}")


def table_bound(
    facts: PublicFacts,
    promise: Promise,
    width: int,
    codes_released: bool,
    rows: AdjacencyRows = AdjacencyRows.LISTED_BY,
) -> float:
    """The worst change of the table for codes of norm 1."""
    if not codes_released and rows is AdjacencyRows.OWN_LIST and promise.level is not Level.EDGE:
        raise PrivacyError("label codes move in the row of everybody who lists the person: no bound is proved")
    if owns_rows(promise, rows):
        return 0.0
    if promise.adjacency is Adjacency.K_NEIGHBOR:
        assert promise.k is not None
        sides = 2 if promise.relation is Relation.REPLACE else 1
        if codes_released:
            return math.sqrt(sides * promise.k)
        return sides * hop_sensitivity(replace(promise, relation=Relation.ZERO_OUT), 1, facts.nodes, width)
    return hop_sensitivity(promise, 2 if codes_released else 1, facts.nodes, width)


def own_row_excluded(promise: Promise, codes_released: bool, rows: AdjacencyRows) -> bool:
    """Whether row r of the table is r's own matter and shown to r alone: k codes come or go in it, or it is r's list."""
    return owns_rows(promise, rows) or (codes_released and promise.adjacency is Adjacency.K_NEIGHBOR)


def code_release(
    facts: PublicFacts,
    promise: Promise,
    width: int,
    mu: float,
    *,
    rows: AdjacencyRows,
    cap: int,
    steps: int,
    rate: float,
    clip: float,
) -> Release:
    """The gradient steps of learned codes, along lists cut to ``cap`` entries where others' rows are touched."""
    return group_release(
        "codes",
        promise,
        {"train": clip} if owns_rows(promise, rows) else payers(facts, promise, clip),
        (facts.nodes + 1) * width,
        group=group_of(promise, cap, rows),
        records=facts.count("train"),
        steps=steps,
        rate=rate,
        clip=clip,
        mu=mu,
        lemma=CODES_LEMMA,
    )


def table_release(
    facts: PublicFacts,
    promise: Promise,
    width: int,
    mu: float,
    norm: float,
    codes_released: bool,
    rows: AdjacencyRows,
) -> Release:
    """The noisy sums of codes of this norm, for mu; without noise where nobody else's row can move."""
    lemma = f"sum of codes of norm {norm:g}, rows {rows}, {promise.adjacency}, {promise.relation}"
    excluded = own_row_excluded(promise, codes_released, rows)
    if not promise.private:
        return Release("table", Exact(), payers(facts, promise, 1.0), lemma, excluded)
    moved = table_bound(facts, promise, width, codes_released, rows)
    if moved == 0:
        return Release("table", Exact(), payers(facts, promise, 0.0), lemma, excluded)
    bound = norm * moved * (1 if norm == 1 else 1 + scaling_error(facts.nodes))
    mechanism = Gaussian.for_mu(bound, mu, facts.nodes * width)
    return Release("table", mechanism, payers(facts, promise, bound), lemma, excluded)
