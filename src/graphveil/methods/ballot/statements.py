"""What Ballot's certificate says beyond the ledger: numbers for other adjacencies, and the sentences of ``cards.toml``."""

from __future__ import annotations

import math

from graphveil.methods.ballot.bounds import Recipe
from graphveil.methods.base import OWN_ROW, promised_degree
from graphveil.methods.registry import ENTRIES
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

SAID = ENTRIES["ballot"]["sentences"]
ONE_EDGE = "epsilon of one undirected edge"
TEN_EDGES = "mu of a calibration or query node that vanishes with 10 edges"


def weaker_kinds(facts: PublicFacts, promise: Promise) -> dict[str, Adjacency]:
    """Under adjacency node, receivers are covered as records: their own row shows what others say about them."""
    if promise.adjacency is not Adjacency.NODE:
        return {}
    return {kind: Adjacency.RECORD for kind in ("calibration", "query") if facts.count(kind)}


def implied_by(shares: Recipe, plan: Plan) -> dict[str, float]:
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
    promise, facts = plan.promise, plan.facts
    if promise.level is Level.NONE:
        return ()
    if promise.level is Level.EDGE:
        directed = promise.adjacency is Adjacency.EDGE_DIRECTED
        link = "one directed link" if directed else "one undirected edge, in both lists,"
        return tuple(sentence.format(link=link) for sentence in SAID["edge"])
    verb = "loses" if promise.relation is Relation.ZERO_OUT else "exchanges"
    unit = what = SAID[promise.adjacency].format(promise=promise)
    if promise.adjacency is not Adjacency.NODE:
        unit = SAID["unit"].format(promise=promise, verb=verb, what=what)
    sentences = [SAID["changes"].format(unit=unit)]
    if promise.private:
        sentences.append(SAID["spent"].format(mu=plan.mu))
    sentences.append(SAID["filter"])
    if promise.adjacency in (Adjacency.RECORD, Adjacency.NODE):
        sentences.append(SAID["one_edge"])
        if not any(step.name == "hop 1" for step in plan.steps):
            sentences.append(SAID["training"])
    shown = "features_public" if features_public else "published" if published else "own_row"
    accuracy = SAID["no_accuracy"]
    if accuracy_share is not None and facts.count("query"):
        points = 100 / (plan.mu * math.sqrt(accuracy_share) * facts.count("query")) if promise.private else 0.0
        accuracy = SAID["accuracy"].format(points=points)
    predictions = SAID[shown].format(own_row=OWN_ROW)
    return *sentences, *promised_degree(promise), SAID["query_set"], predictions, accuracy
