"""What Ballot may release at node and k-neighbour level: slots, their sensitivities, and the purse of shares.

Rows ``h_k`` of norm at most 1 travel along ``k``'s own contact list towards the receivers Q (calibration and query
nodes; for ``hop 1`` everybody): ``S_i = sum_k A[i, k] w_k h_k``. One-hot tables (``mass``, ``probe``, ``hop 1``) are
sent by training nodes only, ``votes`` by everybody, ``hop 2`` sends released rows. Worst Euclidean change of each
table:

*record* (and *node*, for training and other nodes: nobody lists them towards Q). ``w_k = |out(k) in Q|^(-1/2)`` reads
k's own list, so only column r moves. Zero-out removes a block of norm ``w_r |out(r)|^(1/2) ||h_r|| <= 1``. Replace
exchanges two such blocks: non-negative rows and equal rows have inner product >= 0, hence ``sqrt 2``; centred votes
``(q - 1/C) / sqrt(1 - 1/C)`` have inner product >= ``-1/(C-1)``, hence ``sqrt(2C/(C-1))``.

*k-neighbor*, and *bounded-degree* as its case k = D: r's record vanishes and up to k edges, in both lists. ``w_j =
max(d_j, F)^(-1/2)``. A receiver r changes its own row (k messages of at most ``w(d)``) and the weights of k neighbours,
which lose one entry each:

    rows of k neighbours     k^2 max_d [w(d)^2 + (d - 1)(w(d - 1) - w(d))^2] = k^2 / F        (F >= k)
    centred votes, F = k     s_k^2 = (1 + k (1 - sqrt(k/(k+1))))^2 + k^2/(k+1)                (r votes, too)
    one-hot, r receiver      k^2 / F      (r sends nothing)
    one-hot, r training      1 on the receivers' table; 1 + k^2/F on ``hop 1``, where r has a row (cross terms are <= 0)
    mass (0/1 counts of training slots)   receiver k, training sqrt k
    hop 2 (0/1 weights, released rows)    receiver sqrt(k^2 + k), others sqrt k

Lists whose weights grow add what truncation can (``aggregation.truncation``).

Replace goes through the blank record, twice the bound; for training and other nodes, whose column alone moves, the
``sqrt 2`` and ``sqrt(2C/(C-1))`` above hold. Absent slots send nothing. Everything is brute-forced in
``tests/methods/test_ballot_bounds.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from graphveil.errors import PrivacyError
from graphveil.methods.common.aggregation import k_neighbor_sensitivity, truncation
from graphveil.methods.common.own_predictor import own_slots
from graphveil.methods.common.private_training import full_batch_slot
from graphveil.methods.common.trainer import FullBatch
from graphveil.methods.options import Count, NonNegative, Positive, Share
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Slot
from graphveil.privacy.promise import Adjacency, Promise, Relation

RECEIVERS = ("calibration", "query")
SPREAD = 4  # hop 1 under k-neighbor: weights are floored at SPREAD * k
COMBINER_CLIP = 1.0


class Recipe(FullBatch):
    """What an election goes by: parts of mu^2, public assumptions, thresholds and step sizes."""

    assume: Literal["auto", "homophilous", "structural", "features"] = "auto"
    structural: Literal["auto", "off"] = "auto"
    publish: Literal["own-row", "noisy"] = "own-row"
    release_accuracy: bool = False
    steps: Count = 50
    centring: Share = 0.03
    mass_share: Share = 0.01
    probe_share: Share = 0.10
    test_share: Share = 0.20
    least_votes: Share = 0.1
    most_votes: Share = 0.6
    votes_slope: NonNegative = 0.35
    audible: NonNegative = 1.5
    heterophily: NonNegative = 0.15
    certainty: NonNegative = 2.0
    first_hop_share: Share = 0.17
    k_first_hop_share: Share = 0.25
    second_hop_share: Share = 0.33
    structural_mass: NonNegative = 12.0
    k_structural_mass: NonNegative = 6.0
    combiner_steps: Count = 60
    combiner_rate: Positive = 0.1
    accuracy_share: Share = 0.2

    @property
    def rest(self) -> float:
        """What the mass leaves; all later shares are parts of it."""
        return 1 - self.mass_share

    def of_one_edge(self, structural: bool) -> float:
        """The largest part of mu^2 that one undirected edge can cost under record weights, over all histories.

        Training-receiver: every table moves by at most 1 in one column. Receiver-receiver: votes (or hop 2) move in two columns.
        """
        rest, votes = self.rest, self.most_votes - self.probe_share
        shares = [self.mass_share + rest * self.most_votes, 2 * rest * votes]
        if structural:
            first, second = self.first_hop_share, self.second_hop_share
            shares += [self.mass_share + rest * (self.probe_share + first + second), 2 * rest * max(first, second)]
        return max(shares)

    def of_rows(self, structural: bool) -> float:
        """The part of mu^2 spent on tables in which a receiver has a row, at most: it multiplies D^2."""
        hops = self.probe_share + self.first_hop_share + self.second_hop_share if structural else 0.0
        return self.mass_share + self.rest * max(self.most_votes, hops)


@dataclass(frozen=True)
class Bounds:
    """Sensitivity of every table per kind of record, and the weights that go with it.

    ``k`` is None under ``record``; otherwise weights towards the receivers are floored at k, ``mass`` counts and ``hop 2`` adds
    with weight 1.
    """

    tables: Mapping[str, Mapping[str, float]]
    k: int | None

    @property
    def floor(self) -> int:
        return self.k or 1

    @property
    def hop_floor(self) -> int:
        return SPREAD * self.k if self.k else 1


def centred_replace(classes: int) -> float:
    """How far two centred votes can be apart, sqrt(2C/(C-1)): 2 only for two classes."""
    return math.sqrt(2 * classes / (classes - 1))


def bounds_of(promise: Promise, facts: PublicFacts) -> Bounds:
    """The table of this file for one promise."""
    replaced = promise.relation is Relation.REPLACE
    column = math.sqrt(2) if replaced else 1.0
    vote = centred_replace(facts.classes) if replaced else 1.0
    kinds = [kind for kind, count in facts.kinds.items() if count]
    k = promise.k or promise.max_degree
    if promise.adjacency not in (Adjacency.K_NEIGHBOR, Adjacency.BOUNDED_DEGREE) or k is None:
        teachers = {"train": column}
        tables = {
            "mass": teachers,
            "probe": teachers,
            "votes": dict.fromkeys(kinds, vote),
            "hop 1": teachers,
            "hop 2": dict.fromkeys(kinds, column),
        }
        return Bounds(tables, None)
    twice, floor = (2.0 if replaced else 1.0), SPREAD * k
    receiving = [kind for kind in kinds if kind in RECEIVERS]
    sending = [kind for kind in kinds if kind not in RECEIVERS]
    near, far = truncation(k, k, facts.nodes, 1), truncation(k, floor, facts.nodes, 1)  # one-hot rows
    hop = dict.fromkeys([kind for kind in kinds if kind != "train"], twice * (k / math.sqrt(floor) + far))
    votes = twice * k_neighbor_sensitivity(k, facts.nodes, facts.classes)
    tables = {
        "mass": {"train": column * math.sqrt(k)} | dict.fromkeys(receiving, float(k)),
        "probe": {"train": column} | dict.fromkeys(receiving, twice * (math.sqrt(k) + near)),
        "votes": dict.fromkeys(sending, vote) | dict.fromkeys(receiving, votes),
        "hop 1": {"train": twice * (math.sqrt(1 + k * k / floor) + far)} | hop,
        "hop 2": dict.fromkeys(sending, column * math.sqrt(k)) | dict.fromkeys(receiving, twice * math.sqrt(k * k + k)),
    }
    return Bounds(tables, k)


def slots_of(facts: PublicFacts, promise: Promise, recipe: Recipe) -> tuple[Slot, ...]:
    """Every release that some history of Ballot makes; the curator admits each at most once.

    Shares that no released value decides are fixed here; own predictor, combiner and published votes take what is left.
    """
    replaced, bounds = promise.relation is Relation.REPLACE, bounds_of(promise, facts)
    classes, receivers, rest = facts.classes, sum(facts.count(kind) for kind in RECEIVERS), recipe.rest

    def table(name: str, rows: int, width: int, most: float, fixed: bool = True) -> Slot:
        lemma = f"table {name!r} of ballot/bounds.py, {promise.adjacency}"
        least = most if fixed else 0.0
        return Slot(name, bounds.tables[name], most, rows * width, lemma, min_share=least)

    def combiner(name: str, size: int) -> Slot:
        bound = {"calibration": COMBINER_CLIP}
        return full_batch_slot(name, promise, bound, facts.count("calibration"), size, recipe.combiner_steps)

    slots: list[Slot] = []
    if receivers and facts.count("calibration"):
        lemma, test = "a calibration record adds one term in [-1, 1]", rest * recipe.test_share
        slots += [
            table("mass", receivers, 1, recipe.mass_share),
            table("probe", receivers, classes, rest * recipe.probe_share),
            Slot("test", {"calibration": 2.0 if replaced else 1.0}, test, 1, lemma, min_share=test),
            table("votes", receivers, classes, rest * (recipe.most_votes - recipe.probe_share), fixed=False),
            combiner("combiner", 2 + classes),
        ]
        if recipe.structural == "auto" and promise.adjacency is not Adjacency.NODE:
            first = recipe.first_hop_share if bounds.k is None else recipe.k_first_hop_share
            slots.append(table("hop 1", facts.nodes, classes, rest * first))
            slots.append(table("hop 2", receivers, classes, rest * recipe.second_hop_share))
            slots.append(combiner("structural combiner", 1 + classes * (classes + 1)))
    if facts.count("query"):
        if recipe.publish == "noisy":
            bound = {"query": centred_replace(classes) if replaced else 1.0}
            lemma = "a query record moves its own centred vote"
            slots.append(Slot("published", bound, 1.0, facts.count("query") * classes, lemma))
        if recipe.release_accuracy:
            lemma, part = "a query record is predicted right or wrong", rest * recipe.accuracy_share
            slots.append(Slot("accuracy", {"query": 1.0}, part, 1, lemma, query_labels=True, min_share=part))
    return (*own_slots(facts, promise, steps=recipe.steps, clip=recipe.clip), *slots)


class Purse:
    """The shares of mu^2 every kind of record has left; reads the plan and released values only.

    The curator enforces the same bound on its own; the purse lets the algorithm say "what training records have left".
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.left = dict.fromkeys(plan.kinds, 1.0)

    def price(self, name: str, share: float, kind: str) -> float:
        """What a record of this kind pays for a slot whose worst-placed kind pays ``share``."""
        step = self._plan.step(name)
        worst, own = max(step.sensitivity.values()), step.sensitivity.get(kind, 0.0)
        if own in (0.0, worst):
            return share if own else 0.0
        return share * (own / worst) ** 2 * (1 + 1e-6)  # the reserve covers rounding, which does not shrink so

    def pay(self, name: str, share: float) -> float:
        """Take the share from everybody the slot reads, and return it for the curator."""
        for kind, left in self.left.items():
            rest = left - self.price(name, share, kind)
            if rest < -1e-12:
                raise PrivacyError(
                    f"slot {name!r} with share {share:g} exceeds what {kind} records have left ({left:g})"
                )
            self.left[kind] = max(rest, 0.0)
        return share
