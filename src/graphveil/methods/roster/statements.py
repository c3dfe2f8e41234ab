"""What Roster's certificate says beyond the ledger: what an entry, an edge and k edges cost; the sentences of ``cards.toml``."""

from __future__ import annotations

import math

from graphveil.methods.registry import ENTRIES
from graphveil.methods.roster.bounds import implied_mu, neighbor_factor, one_edge, one_entry
from graphveil.privacy.accounting.loss import gaussian_epsilon
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Relation

SAID = {**ENTRIES["ballot"]["sentences"], **ENTRIES["roster"]["sentences"]}
ONE_ENTRY = "epsilon of one entry of one's own contact list"
ONE_EDGE = "epsilon of one undirected edge"
WITH_EDGES = "mu of a person who vanishes with {} of their edges, in both lists"


def implied_by(plan: Plan, cover: bool, clip: float) -> dict[str, float]:
    """Consequences of the same releases for one entry, one edge and k edges; of the releases, not of predictions."""
    promise, classes = plan.promise, plan.facts.classes
    if not promise.private:
        return {}
    named = {step.name for step in plan.steps}
    entry = one_entry(cover, classes)
    of_labelled = {name: change for name, change in entry.items() if name != "rows"}
    entries = [of_labelled, {"rows": entry["rows"]} if "rows" in named else {}]

    def epsilon(changes: list[dict[str, float]]) -> float:
        return gaussian_epsilon(max(implied_mu(plan, change, clip) for change in changes), promise.target_delta)

    implied = {ONE_ENTRY: epsilon(entries), ONE_EDGE: epsilon(one_edge(cover, classes))}
    if promise.adjacency is Adjacency.RECORD and promise.relation is Relation.ZERO_OUT:
        for k in (1, 5):
            implied[WITH_EDGES.format(k)] = plan.mu * neighbor_factor(k, cover, plan.facts, clip)
    return implied


def assumptions_of(plan: Plan, cover: bool) -> tuple[str, ...]:
    """The sentences of the certificate."""
    promise = plan.promise
    if promise.adjacency is Adjacency.NONE:
        return ()
    verb = "loses" if promise.relation is Relation.ZERO_OUT else "exchanges"
    what = SAID[promise.adjacency].format(promise=promise)
    unit = SAID["unit"].format(promise=promise, verb=verb, what=what)
    kept = plan.implied.get(ONE_EDGE, math.inf) <= promise.epsilon * (1 + 1e-9)
    edge = SAID["edge_covered" if kept else "edge_coarse" if cover else "edge_open"]
    rows = any(step.name == "rows" for step in plan.steps)
    shown = SAID["shown" if rows else "not_shown"]
    return (
        SAID["changes"].format(unit=unit),
        edge,
        SAID["listed"],
        SAID["label_copy"],
        SAID["own_list"],
        shown,
        SAID["calibration"],
        SAID["no_accuracy"],
    )
