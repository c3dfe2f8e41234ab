"""What Ballot's certificate says beyond the ledger: consequences for other adjacencies, with numbers, and sentences."""

from __future__ import annotations

import math

from graphveil.methods.ballot.bounds import Shares
from graphveil.methods.base import OWN_ROW
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

ONE_EDGE = "epsilon of one undirected edge"
TEN_EDGES = "mu of a calibration or query node that vanishes with 10 edges"


def weaker_kinds(facts: PublicFacts, promise: Promise) -> dict[str, Adjacency]:
    """Under adjacency node, receivers are covered as records: their own row shows what others say about them."""
    if promise.adjacency is not Adjacency.NODE:
        return {}
    return {kind: Adjacency.RECORD for kind in ("calibration", "query") if facts.count(kind)}


def implied_by(shares: Shares, plan: Plan) -> dict[str, float]:
    """Consequences of a record or node promise for one edge, and for receivers that vanish from everybody's lists."""
    promise = plan.promise
    if promise.adjacency not in (Adjacency.RECORD, Adjacency.NODE) or not promise.private:
        return {}
    structural = any(step.name == "hop 1" for step in plan.steps)
    implied = {}
    if shares.of_one_edge(structural) <= 1:
        implied[ONE_EDGE] = gaussian_epsilon(plan.mu, promise.target_delta)
    if promise.relation is Relation.ZERO_OUT:
        implied[TEN_EDGES] = plan.mu * math.sqrt(1 + shares.of_rows(structural) * 100)
    return implied


def assumptions_of(
    plan: Plan, *, features_public: bool, published: bool, accuracy_share: float | None
) -> tuple[str, ...]:
    """The sentences of the certificate; ``accuracy_share``: part of mu^2 for the noisy accuracy, if it is released."""
    promise = plan.promise
    if promise.level is Level.NONE:
        return ()
    if promise.level is Level.EDGE:
        return _edge_sentences(promise)
    sentences = [
        f"{_unit(promise)}; slots, classes, feature width, masks and delta are public and not derived from the data"
    ]
    if promise.private:
        sentences.append(
            f"all releases together are mu-GDP with mu = {plan.mu:.6g}; epsilon is the promise, {_NOT_SPEND}"
        )
    sentences.append(_FILTER)
    if promise.adjacency in (Adjacency.RECORD, Adjacency.NODE):
        sentences.append(_ONE_EDGE)
        if not any(step.name == "hop 1" for step in plan.steps):
            sentences.append(_TRAINING)
    if promise.max_degree:
        sentences.append(
            f"nobody has more than {promise.max_degree} contacts in either direction (promised by the user, not checked)"
        )
    return (*sentences, _QUERY_SET, _predictions(features_public, published), _accuracy(plan, accuracy_share))


_NOT_SPEND = "not the spend of this run"
_FILTER = (
    "the sum of squared Gaussian parameters is at most mu^2 on every possible run, "
    "for training, calibration, query and other records alike (the curator is a filter)"
)
_ONE_EDGE = (
    "on an undirected graph the same (epsilon, delta) also covers one edge, present or absent in both lists; "
    "it does not cover all edges of a calibration or query node at once: "
    "other people's lists that mention a node are not part of its record"
)
_TRAINING = (
    "structural mode is off: the same (epsilon, delta) holds for every training node even if it disappears "
    "from everybody's lists, on any graph, without a degree promise"
)
_QUERY_SET = (
    "ballots are sent to calibration and query nodes only: the query set is public, and another one is another release"
)


def _unit(promise: Promise) -> str:
    blank = promise.relation is Relation.ZERO_OUT
    match promise.adjacency:
        case Adjacency.K_NEIGHBOR:
            what = f"its features, its label and up to {promise.k} of its edges, in both lists"
        case Adjacency.BOUNDED_DEGREE:
            what = "its features, its label and all its edges, in everybody's lists"
        case Adjacency.NODE:
            return (
                "adjacency node, zero-out, for training and other nodes: one slot loses its features, its label and "
                "all its edges, in everybody's lists; calibration and query nodes are covered under record: "
                "features, label and own contact list"
            )
        case _:
            what = "its features, its label and its own contact list"
    return f"adjacency {promise.adjacency}, {promise.relation}: one slot {'loses' if blank else 'exchanges'} {what}"


def _predictions(features_public: bool, published: bool) -> str:
    if features_public:
        return (
            "query features are public by declaration: all predictions may be published; contact lists stay protected"
        )
    if published:
        return (
            "the noisy predictions of query nodes (predict with access='charge') may be published, "
            f"their noise is in the ledger; other predictions follow the own-row rule: {OWN_ROW}"
        )
    return f"{OWN_ROW}, whose features it may reveal"


def _accuracy(plan: Plan, share: float | None) -> str:
    if share is None or not plan.facts.count("query"):
        return "accuracies on private labels are not part of the release"
    points = 100 / (plan.mu * math.sqrt(share) * plan.facts.count("query")) if plan.promise.private else 0.0
    return f"the accuracy on query nodes was released with noise of {points:.2g} points, included above"


def _edge_sentences(promise: Promise) -> tuple[str, ...]:
    directed = promise.adjacency is Adjacency.EDGE_DIRECTED
    return (
        f"{'one directed link' if directed else 'one undirected edge, in both lists,'} is added or removed; "
        "features, labels, masks and delta are public and were not derived from the edges",
        "edges between training nodes feed the first tally only, edges that reach a calibration or query node the "
        "ballots only: each public class of edges pays for one release "
        "(moving an edge from one class to the other would cost sqrt 2 mu)",
        "all predictions may be published: they are computed from public features and released tallies",
    )
