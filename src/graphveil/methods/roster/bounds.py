"""What Roster releases, what one record can move in it, and what one entry of a list or one edge can.

Shares are shares of mu^2. Labelled records (training and calibration alike) pay the first five, query and other records the mean
and ``rows``; nobody pays more than 1. Worst Euclidean change, in units of the ``clip`` for the gradients:

============  =====  =========  ===============  ====================  ==============  =====================
release       share  zero-out   replace          one own entry         same, covered   one edge, covered
============  =====  =========  ===============  ====================  ==============  =====================
mean          .03    1          2                0                     0               0
prior         .005   1          sqrt 2           0                     0               0
probe         .05    1          sqrt 2           1/sqrt 3              1/sqrt 6        1/sqrt 3
test          .025   2          sqrt 13          3                     sqrt 8.0157     2 sqrt 8.0157
gradients     .89    1          2                sqrt 2                .935/sqrt 2     .935
rows          .97    1          sqrt(2C/(C-1))   sqrt(2C/(C-1))        sqrt(1/1.94)    sqrt(1/.97)
============  =====  =========  ===============  ====================  ==============  =====================

*Record.* Given earlier releases, a record enters each sum through one summand that reads only its own features, list and label.
Probe under replace: <v, v'> = R.R' (x.x' + a.a' + 1)/3 with the bracket over 3 in [0, 1], and |R - R'| <= sqrt 2 because
shortening to the unit ball expands no distance. Test: three terms in [-1, 1], one in [0, 1]. Rows: centred probabilities.
*One entry* (features and label fixed). Gradients: both residuals have the label's coordinate <= 0 and all others >= 0, so all
products of coordinates of the two summands are >= 0 (truncation keeps signs), and two vectors of norm <= clip with
non-negative inner product are at most sqrt 2 clip apart. *Covered* (``edge_cover``): :func:`reading_bound`. An edge without
cover is two entries: changes add up; rows of two people are orthogonal.
*k-neighbor* (zero-out): one summand goes and k lists lose an entry. There is no ``rows`` release then: labelled people would pay
for the rows of their contacts.
*Rounding.* All sums are exact (``learn/grid_rows.py``, ``roster/summands.py``), so a record moves them by its own summand alone,
and truncation towards zero makes no summand longer: under zero-out, and under replace where the bound is a sum of two norms, it
adds nothing. Where two summands of one person are closer than that, it can move every number by one step more: ``grain``, one
step of 2^-24 for every number of the longest list, and of the coefficients of the features (``coefficient_grain``), once where
the list changes, twice in the probe of a replaced record, whose two rows of features differ. Terms of the test stay in their
intervals. Brute force: ``tests/methods/test_roster_bounds.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from graphveil.graph.lists import GRID
from graphveil.learn.grids import coefficient_grain
from graphveil.methods.common.own_predictor import mean_release
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian
from graphveil.privacy.plan import Plan, Release, split_mu, total_mu
from graphveil.privacy.promise import Adjacency, Promise, Relation

SHARES = {"mean": 0.03, "prior": 0.005, "probe": 0.05, "test": 0.025, "gradients": 0.89}
ROWS_SHARE = 1 - SHARES["mean"]
LABELLED, ASKED = ("train", "calibration"), ("query", "other")
COVERED = 0.935  # what one covered edge may move a gradient sum by, in units of the clip
TEST_ENTRY = math.sqrt(4 + 4 + 1 / 64)  # two margins and a mass that grows like sqrt(d) / 8
RELEASES = {
    "prior": "a labelled record adds one unit vector",
    "probe": "a labelled record adds R (x, a, own slot) / sqrt 3 of norm at most 1",
    "test": "a labelled record adds three terms in [-1, 1] and one in [0, 1]",
    "gradients": "a labelled record owns one clipped summand, which reads its own features, list and label",
    "rows": "a query or other record moves its own centred probabilities",
}


def centred_distance(classes: int) -> float:
    """How far two rows of centred probabilities can be apart, sqrt(2C/(C-1))."""
    return math.sqrt(2 * classes / (classes - 1))


def one_record(relation: Relation, classes: int) -> dict[str, float]:
    """What one record can move, in units of the clip for the gradients."""
    if relation is Relation.ZERO_OUT:
        return {"prior": 1.0, "probe": 1.0, "test": 2.0, "gradients": 1.0, "rows": 1.0}
    root = math.sqrt(2)
    return {"prior": root, "probe": root, "test": math.sqrt(13), "gradients": 2.0, "rows": centred_distance(classes)}


def one_entry(cover: bool, classes: int) -> dict[str, float]:
    """What one entry of somebody's own list can move."""
    if cover:
        row = math.sqrt(1 / (2 * ROWS_SHARE))
        return {"probe": 1 / math.sqrt(6), "test": TEST_ENTRY, "gradients": COVERED / math.sqrt(2), "rows": row}
    return {"probe": 1 / math.sqrt(3), "test": 3.0, "gradients": math.sqrt(2), "rows": centred_distance(classes)}


def one_edge(cover: bool, classes: int) -> list[dict[str, float]]:
    """What one undirected edge can move: between labelled people, a labelled one and another, two others."""
    entry = one_entry(cover, classes)
    both = {name: 2 * change for name, change in entry.items() if name != "rows"}
    if cover:
        both |= {"gradients": COVERED, "probe": 1 / math.sqrt(3)}
    return [both, entry, {"rows": math.sqrt(2) * entry["rows"]}]


def grain(facts: PublicFacts, clip: float) -> dict[str, float]:
    """What truncation can add where a list changes: one step for every number of the longest list, and of the coefficients.

    In the probe coefficients of the features read no list; there they count, twice, where a record is replaced.
    """
    step, features = GRID * math.sqrt(facts.nodes * facts.classes), min(facts.features, 1)
    of_probe, of_gradients = (
        features * coefficient_grain(facts.labelled, length, facts.classes) for length in (1.0, clip)
    )
    return {"probe": step + 2 * of_probe, "gradients": (step + of_gradients) / clip}


def of_k_edges(k: int, cover: bool, facts: PublicFacts, clip: float) -> dict[str, dict[str, float]]:
    """By release what a labelled person moves who vanishes with k edges, and what the k lists alone do."""
    record, entry, steps = (
        one_record(Relation.ZERO_OUT, facts.classes),
        one_entry(cover, facts.classes),
        grain(facts, clip),
    )
    lists = {name: k * (entry.get(name, 0.0) + steps.get(name, 0.0)) for name in record if name != "rows"}
    return {name: {"lists": moved, "person": record[name] + moved} for name, moved in lists.items()}


def neighbor_factor(k: int, cover: bool, facts: PublicFacts, clip: float) -> float:
    """f_k: by how much k-neighbor costs more than record.

    Also with ``rows``, as under record: of k neighbours m are labelled, and the cost is convex in m. At m = k nobody's row moves
    but that of a vanished query record (by 1: its features are gone); at m = 0 it is 1 + .97 k (row of one entry)^2, at most
    1 + 3.88 k, less than f_k^2.
    """
    worst, record = of_k_edges(k, cover, facts, clip), one_record(Relation.ZERO_OUT, facts.classes)
    squares = sum(SHARES[name] * (moved["person"] / record[name]) ** 2 for name, moved in worst.items())
    return math.sqrt(SHARES["mean"] + squares)


def releases_of(facts: PublicFacts, promise: Promise, *, cover: bool, steps: int, clip: float) -> tuple[Release, ...]:
    """All releases, in their order; always the same ones for the same public facts."""
    record, near = one_record(promise.relation, facts.classes), promise.adjacency is Adjacency.K_NEIGHBOR
    factor = neighbor_factor(promise.k or 0, cover, facts, clip) if near else 1.0
    labelled, asked = ([kind for kind in kinds if facts.count(kind)] for kinds in (LABELLED, ASKED))
    rounded = grain(facts, clip)["probe"] if promise.relation is Relation.REPLACE else 0.0
    sizes = {
        "prior": facts.classes,
        "probe": (facts.features + 2 * facts.nodes) * facts.classes,
        "test": 4,
        "gradients": (facts.features + facts.nodes + 1) * facts.classes,
        "rows": sum(facts.count(kind) for kind in asked) * facts.classes,
    }
    payers: dict[str, dict[str, float]] = {name: dict.fromkeys(labelled, record[name]) for name in RELEASES}
    payers["rows"] = dict.fromkeys(asked, record["rows"])
    if near:
        for name, moved in of_k_edges(promise.k or 0, cover, facts, clip).items():
            lists = dict.fromkeys(asked, moved["lists"]) if moved["lists"] else {}
            payers[name] = dict.fromkeys(labelled, moved["person"]) | lists
    shares = SHARES if facts.features else {name: share for name, share in SHARES.items() if name != "mean"}
    others = {"rows": ROWS_SHARE} if asked and not near else {}
    mu = (
        split_mu(promise, shares) | split_mu(promise, others)
        if promise.private
        else dict.fromkeys(shares | others, math.inf)
    )

    def release(name: str) -> Release:
        lemma, spent, unit = (
            f"{RELEASES[name]} (roster/bounds.py)",
            mu[name] / factor,
            clip if name == "gradients" else 1.0,
        )
        bounds = {kind: unit * bound for kind, bound in payers[name].items()}
        if not promise.private:
            return Release(name, Exact(steps if name == "gradients" else 1), bounds, lemma)
        if name == "gradients":
            replaces = promise.relation is Relation.REPLACE
            own = {kind: bound / 2 if replaces else bound for kind, bound in bounds.items()}
            return Release(name, DpGradient.for_mu(clip, spent, steps, sizes[name], replaces), own, lemma)
        rounding = rounded if name == "probe" else 0.0
        bounds = {kind: bound + rounding for kind, bound in bounds.items()}
        return Release(name, Gaussian.for_mu(record[name] + rounding, spent, sizes[name]), bounds, lemma)

    mean = (mean_release(facts, promise, mu["mean"] / factor),) if facts.features else ()
    return (*mean, *(release(name) for name in RELEASES if name in mu))


def implied_mu(plan: Plan, changes: Mapping[str, float], clip: float) -> float:
    """The Gaussian parameter of a change that moves these releases so."""
    steps, total = grain(plan.facts, clip), 0.0
    made = {step.name: step for step in plan.steps if isinstance(step, Release)}
    for name in changes.keys() & made.keys():
        moved = changes[name] + (2 * steps[name] if name in steps else 0.0)
        mechanism = made[name].mechanism
        if isinstance(mechanism, DpGradient):
            moved *= clip / sum(mechanism.rows)
        spent = total_mu([mechanism.loss(moved)])
        total += math.inf if spent is None else spent**2
    return math.sqrt(total)


def steepest(unit: float, clip: float, slot: float, classes: int) -> float:
    """K: by how much, in units of the clip, a shortened residual moves at most per unit that its logits move.

    max over q in (0, 1) of unit lam(q) / max(clip, s(q)), lam(q) = 2q(1-q) up to q = 1/2, then 1/2, and
    s(q)^2 = alpha q^2 + beta with alpha = unit^2 C/(C-1), beta = slot^2 (1 - 1/C). Up to s(q) = clip the quotient grows; beyond
    it, it grows until alpha q^3 + 2 beta q = beta and then falls. Rounded up by 0.1 %.
    """
    alpha, beta = unit**2 * classes / (classes - 1), slot**2 * (1 - 1 / classes)
    until = math.sqrt(max(clip**2 - beta, 0.0) / alpha)
    low, high = 0.0, 0.5
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if alpha * middle**3 + 2 * beta * middle < beta else (low, middle)
    q = min(max(until, high if beta else 0.0), 0.5)
    return unit * 2 * q * (1 - q) / max(clip, math.sqrt(alpha * q * q + beta)) * 1.001


def stretch(floor: int) -> float:
    """kappa_F: sqrt F times what one entry moves a_i V at most, for rows of V of norm 1.

    Below the floor the entry adds 1/sqrt F; with d >= F entries, 1/sqrt(d+1) + (1 - sqrt(d/(d+1))) sqrt d, which falls with d.
    """
    return math.sqrt(floor) * (1 / math.sqrt(floor + 1) + math.sqrt(floor) * (1 - math.sqrt(floor / (floor + 1))))


def reading_bound(list_weight: float, unit: float, slot: float, floor: int, clip: float, classes: int) -> float:
    """B: the norm to which rows of V_a are shortened inside the residual, so that one edge moves a gradient sum by .935 clip.

    Proof (lists of at least F = ``floor`` entries, or divided by sqrt F). One entry moves a by at most 1/sqrt F, and the two
    ends' changes together by sqrt(2/F): they have no common entry but c_i c_j a_i.a_j, c = 1 - sqrt(d/(d+1)) <= 1/2F. It moves
    a V by at most kappa_F B / sqrt F. Put w = (U G, g S), shortened to w' of norm <= clip; U^2 = beta_x^2 + beta_a^2 + .01 does
    not read the list. diag p - p p^T has norm at most 2 p_c (1 - p_c) <= lam(q), q = 1 - p_y, and |G| >= q sqrt(C/(C-1)), so w'
    moves by at most clip K |dZ|. The summand is L(w') with L(a, b) = (a (x) u / U, b), |u| <= U, so it moves by at most
    |dw'| + clip |du| / U: for an edge sqrt 2 beta_a / (U sqrt F) + 2 K kappa_F B / sqrt F = .935 (times clip), for one entry
    .935 / sqrt 2 at most.
    """
    room = COVERED * math.sqrt(floor) - math.sqrt(2) * list_weight / unit
    if room < 0:
        raise ValueError(f"a floor of {floor} entries leaves no room for reading lists of weight {list_weight:g}")
    return room / (2 * steepest(unit, clip, slot, classes) * stretch(floor))


def row_reading_bound(floor: int, classes: int) -> float:
    """The norm to which rows of V_a are shortened for the rows of query records: one entry moves such a row by sqrt(1/1.94).

    The softmax moves by at most half of what the logits do and is divided by sqrt(1 - 1/C); temperature 1, no other table.
    """
    reserve = 1 - 1e-6 - 2 * GRID * math.sqrt(classes)  # float64, and truncation by one step in every class
    return math.sqrt(2 * (1 - 1 / classes) / ROWS_SHARE) * math.sqrt(floor) / stretch(floor) * reserve
