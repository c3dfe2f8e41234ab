"""Ballot: neighbours cast noisy ballots, and only the tallies are released.

Receivers Q are the calibration and query nodes. All shares are shares of mu^2, mu the Gaussian parameter of the
promise.

1. *Mass*: how much training nodes send to Q. Too little to be heard through the noise: stop looking at the graph.
2. *Probe*: tally of the training nodes' labels. *Test*: do calibration nodes agree with their tally?
3. *Mode*, from released values: homophilous; structural if neighbours disagree but neighbours' neighbours can be heard;
   features.
4. *Own predictor* on a node's own features, with what training records have left after reserving the ballots.
5. *Ballots*: homophilous: labels of training and calibration nodes, own predictions of others. Structural: released
   tallies of the neighbours, sent on once more.
6. *Combiner*: own log-probabilities plus evidence, calibrated on calibration nodes with what they have left.

Formal guarantee: every release is Gaussian with the sensitivities of ``bounds.py``; shares, modes, clipping bounds
and weights are functions of released values and public facts; the curator keeps every kind of record within mu^2 on
every history. By the filter theorem everything released is mu-GDP. A prediction adds the node's own features (own-row
rule). Tests: ``tests/methods/test_ballot*.py``, ``tests/audit/test_ballot*.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.graph import Graph
from graphveil.methods.ballot.algorithm import Election
from graphveil.methods.ballot.bounds import Recipe, slots_of
from graphveil.methods.ballot.edge import edge_releases, learn_edge
from graphveil.methods.ballot.predictor import BallotPredictor
from graphveil.methods.ballot.statements import assumptions_of, implied_by, weaker_kinds
from graphveil.methods.base import EDGES, ZERO_OUT, PrivateMethod, guarantees
from graphveil.methods.card import card
from graphveil.methods.common.scores import KIND, ScoresPredictor
from graphveil.methods.model import Predictor
from graphveil.methods.options import Count
from graphveil.methods.previous import Previous
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PUBLIC_COINS, PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Level, Promise
from graphveil.progress import Progress

HELD_OUT = "no calibration nodes were given: one training node in eight was held out by public coins"


class Ballot(Recipe, PrivateMethod):
    """Noisy neighbour ballots on top of a private own predictor; one recipe for all graphs and all epsilon.

    Args:
        assume: ``auto`` (the mode is chosen privately), or ``homophilous``, ``structural`` or ``features`` if that is public
            knowledge about the graph.
        structural: ``auto``, or ``off``: never send tallies on; training nodes are then covered even if they vanish from
            everybody's lists.
        publish: ``own-row`` (each node sees its own prediction) or ``noisy`` (predictions of query nodes that may be published,
            paid from what query records have left).
        query_features: ``private``, or ``public``: the features of query nodes are public by declaration.
        release_accuracy: release a noisy accuracy on the query nodes, paid by them.
        mass_share, probe_share, test_share: parts of mu^2 for steps 1 and 2.
        least_votes, most_votes, votes_slope: part for the ballots, ``least + slope * signal`` up to ``most`` (probe included).
        audible: least mass in units of the noise below which the graph is ignored.
        heterophily: agreement, above chance, below which neighbours are said to disagree.
        certainty: standard errors by which agreement must be positive before ballots are trusted.
        first_hop_share, second_hop_share: parts for the two structural tallies; ``k_first_hop_share`` under k-neighbor and
            bounded-degree.
        structural_mass: least mass (``k_structural_mass``: least count) in units of the noise for structural mode.
        accuracy_share: part of mu^2 for the noisy accuracy.
        epochs: of the public networks at edge level.
    """

    card = card("ballot")
    reads_blocks = True
    supports = EDGES | guarantees(Adjacency.NODE, relations=ZERO_OUT)
    supports |= guarantees(Adjacency.RECORD, Adjacency.BOUNDED_DEGREE, Adjacency.K_NEIGHBOR)

    query_features: Literal["private", "public"] = "private"
    epochs: Count = 150

    def check(self) -> None:
        super().check()
        if self.assume == "structural" and self.structural == "off":
            raise InputError("ballot: assume=structural needs structural=auto")
        if not self.probe_share <= self.least_votes <= self.most_votes:
            raise InputError("ballot needs probe_share <= least_votes <= most_votes")
        hops = max(self.first_hop_share, self.k_first_hop_share) + self.second_hop_share
        if self.probe_share + self.test_share + self.centring + max(self.most_votes, hops) >= 1:
            raise InputError("ballot's shares must leave a part of mu^2 to own predictor and combiner")

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if promise.level is Level.EDGE:
            return Plan(promise, facts, edge_releases(facts, promise))
        draft = Plan(promise, facts, slots_of(facts, promise, self), weaker=weaker_kinds(facts, promise))
        return replace(draft, implied=implied_by(self, draft))

    def in_blocks(self, promise: Promise) -> bool:
        return promise.level is not Level.EDGE

    def arrange(self, graph: Graph) -> Graph:
        """Hold out calibration nodes by public coins if none are given."""
        if graph.masks["calibration"].any():
            return graph
        train = np.flatnonzero(graph.masks["train"])
        held_out = np.zeros(graph.nodes, dtype=bool)
        held_out[np.random.default_rng(PUBLIC_COINS).permutation(train)[: len(train) // 8]] = True
        masks = {**graph.masks, "train": graph.masks["train"] & ~held_out, "calibration": held_out}
        return replace(graph, masks=masks, notes=(*graph.notes, HELD_OUT))

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, _ = super().statements(plan)
        share = self.rest * self.accuracy_share if self.release_accuracy else None
        open_features, noisy = self.query_features == "public", self.publish == "noisy"
        return public, assumptions_of(plan, features_public=open_features, published=noisy, accuracy_share=share)

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> Predictor:
        if curator.plan.promise.level is Level.EDGE:
            return learn_edge(curator, self.epochs, coins, progress)
        return self._elect(Election(self, curator, progress))

    def learn_on(
        self, previous: Previous, curator: Curator, coins: np.random.Generator, progress: Progress
    ) -> Predictor:
        return self._elect(Election(self, curator, progress, previous))

    def takes(self, predictor: Predictor, promise: Promise) -> bool:
        return isinstance(predictor, BallotPredictor) and promise.level is not Level.EDGE

    @staticmethod
    def _elect(election: Election) -> BallotPredictor:
        predictor = election.hold()
        election.publish(predictor)
        return predictor

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        return (ScoresPredictor if config["kind"] == KIND else BallotPredictor).restore(config, arrays)
