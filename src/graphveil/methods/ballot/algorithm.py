"""One run of Ballot at node or k-neighbour level, one method per step of ``ballot/__init__.py``."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.learn import engine
from graphveil.methods.ballot import tally
from graphveil.methods.ballot.bounds import RECEIVERS, Bounds, Purse, Recipe, bounds_of
from graphveil.methods.ballot.combiner import Combiner, calibrate
from graphveil.methods.ballot.predictor import BallotPredictor
from graphveil.methods.common.aggregation import at_most_unit
from graphveil.methods.common.labels import label_rows
from graphveil.methods.common.own_predictor import OwnPredictor, learn_own
from graphveil.methods.previous import Previous
from graphveil.privacy.curator import Curator
from graphveil.privacy.noise import Array
from graphveil.progress import Progress


class Mode(StrEnum):
    HOMOPHILOUS = "homophilous"
    STRUCTURAL = "structural"
    FEATURES = "features"


class Election:
    """One run at node or k-neighbour level: the curator, the purse, and one method per step.

    ``previous``: an earlier run. Its own predictor and its tallies of the same receivers are averaged in, each by its noise.
    """

    def __init__(self, recipe: Recipe, curator: Curator, progress: Progress, previous: Previous | None = None) -> None:
        self.recipe, self.curator, self.progress, self.previous = recipe, curator, progress, previous
        self.purse = Purse(curator.plan)
        self.bounds: Bounds = bounds_of(curator.plan.promise, curator.facts)
        self.receivers: np.ndarray = np.logical_or.reduce([curator.masks[kind] for kind in RECEIVERS])

    def hold(self) -> BallotPredictor:
        assumed = self.recipe.assume
        if assumed == "features":
            return self.features_only("it was declared to say nothing (assume=features)")
        if not self.curator.facts.count("calibration"):
            return self.features_only("there are no calibration nodes to tell whether contacts agree")
        if not self.audible() and assumed == "auto":
            return self.features_only("people have too few contacts to be heard through the noise at this epsilon")
        poll = self.poll()
        match self.chosen_mode(poll):
            case Mode.HOMOPHILOUS:
                return self.homophilous(poll)
            case Mode.STRUCTURAL:
                return self.structural()
        return self.features_only(
            "contacts do not say enough about a class to be heard through the noise at this epsilon"
        )

    def audible(self) -> bool:
        """Step 1: whether the ballots of training nodes can be heard through the noise."""
        query = lambda private: tally.mass_of(private, self.receivers, self.bounds)
        self.mass = float(self._release("mass", self.recipe.mass_share, query).mean())
        weight = 1.0 if self.bounds.k is None else 1 / math.sqrt(self.bounds.k)
        return self._in_noise("mass" if self.bounds.k is None else "votes", weight * self.mass) >= self.recipe.audible

    def poll(self) -> tally.Poll:
        """Step 2: the tally of training labels, and whether calibration nodes agree with it."""
        labelled = lambda private: tally.ballot_sum(private, label_rows, self.receivers, self.bounds.floor)
        probe = self._release("probe", self.recipe.rest * self.recipe.probe_share, labelled)
        poll = tally.Poll.of(probe, self.curator.noise_scale("probe"))
        agreement = lambda private: tally.margins(private, poll.probe, self.receivers, poll.priors, poll.bound)
        total = self._release("test", self.recipe.rest * self.recipe.test_share, agreement)
        voters = self.curator.facts.count("calibration")
        return poll.tested(float(total), self.curator.noise_scale("test"), voters)

    def chosen_mode(self, poll: tally.Poll) -> Mode:
        """Step 3, from released values and public assumptions only."""
        possible = any(step.name == "hop 1" for step in self.curator.plan.steps)
        if self.recipe.assume != "auto":
            assumed = Mode(self.recipe.assume)
            return assumed if possible or assumed is not Mode.STRUCTURAL else Mode.FEATURES
        if not poll.heterophilous(self.recipe.heterophily):
            return Mode.HOMOPHILOUS if poll.margin >= self.recipe.certainty * poll.error else Mode.FEATURES
        if not possible:
            return Mode.FEATURES
        if self.bounds.k is None:
            loud = self._in_noise("probe", poll.mass) >= self.recipe.structural_mass
        else:
            loud = self._in_noise("hop 2", self.mass) >= self.recipe.k_structural_mass
        return Mode.STRUCTURAL if loud else Mode.FEATURES

    def homophilous(self, poll: tally.Poll) -> BallotPredictor:
        """Steps 4 to 6 where neighbours agree: the better they can be heard, the more of the budget they get."""
        shares, signal = self.recipe, self._in_noise("votes", max(poll.margin, 0.0)) / math.sqrt(2)
        votes_share = min(shares.most_votes, shares.least_votes + shares.votes_slope * signal) - shares.probe_share
        votes_share = self.split_with_then(votes_share * shares.rest)
        own = self.own({"votes": votes_share})
        votes, noise = None, 0.0
        if votes_share > 1e-6:

            def ballots(block: Block) -> Array:
                return tally.centred_votes(block, softmax(own.scores(block), axis=1))

            cast = lambda private: tally.ballot_sum(private, ballots, self.receivers, self.bounds.floor)
            votes = self._release("votes", votes_share, cast)
            noise = self.curator.noise_scale("votes")
        table, weight = tally.merge(poll, votes, noise, self.tallies_of_then())
        start = Combiner.homophilous(self.curator.facts.classes, weight)
        return self.combine(Mode.HOMOPHILOUS, "combiner", own, table, start)

    def split_with_then(self, votes_share: float) -> float:
        """The part of mu^2 for the ballots, averaged with that of an earlier run: both are noisy guesses of the same signal."""
        then = None if self.previous is None else self.previous.share("votes")
        most = self.recipe.rest * (self.recipe.most_votes - self.recipe.probe_share)
        return votes_share if then is None else (votes_share + min(then, most)) / 2

    def tallies_of_then(self) -> tuple[Array, Array] | None:
        """The homophilous table of an earlier run for the receivers of this one, and the variance of its noise by row."""
        if self.previous is None or not self.previous.predictor.heard_agreement:
            return None
        then, nodes = self.previous.predictor, self.previous.certificate.facts.nodes
        table, variance = np.zeros((nodes, then.table.shape[1])), np.full(nodes, math.inf)
        table[then.receivers] = then.table
        variance[then.receivers] = tally.variance_of(
            self.previous.noise("probe"), self.previous.noise("votes"), then.table.shape[1]
        )
        known = self.previous.known
        spread = np.full(len(known), math.inf)
        spread[known] = variance[self.previous.slots[known]]
        return self.previous.placed(table)[self.receivers], spread[self.receivers]

    def structural(self) -> BallotPredictor:
        """Steps 4 to 6 where neighbours disagree: what my neighbours' neighbours are says what I am."""
        near = self.bounds.k is not None
        shares = self.recipe
        first = shares.rest * (shares.k_first_hop_share if near else shares.first_hop_share)
        second = shares.rest * shares.second_hop_share
        own = self.own({"hop 1": first, "hop 2": second})
        everybody = np.ones(self.curator.facts.nodes, dtype=bool)
        first_hop = lambda private: tally.ballot_sum(private, label_rows, everybody, self.bounds.hop_floor)
        messages = tally.codes(self._release("hop 1", first, first_hop))
        told = lambda block: messages[block.slots]
        floor = None if near else self.bounds.floor
        second_hop = lambda private: tally.ballot_sum(private, told, self.receivers, floor)

        table = self._release("hop 2", second, second_hop)
        table = tally.whitened(tally.square_rooted(table) if near else table)
        classes = self.curator.facts.classes
        start = Combiner.structural(classes, classes)
        return self.combine(Mode.STRUCTURAL, "structural combiner", own, table, start)

    def features_only(self, why: str) -> BallotPredictor:
        return BallotPredictor.of_own(self.own({}), f"the graph was not used: {why}")

    def own(self, reserved: dict[str, float]) -> OwnPredictor:
        """Step 4: the own predictor, with all that training records have left after the reserved releases."""
        share = self.purse.left["train"] - sum(self.purse.price(name, part, "train") for name, part in reserved.items())
        mean = self.recipe.centring * share if self.curator.facts.features else 0.0
        if mean:
            self.purse.pay("mean", mean)
        self.purse.pay("own", share - mean)
        start = None if self.previous is None else replace(self.previous, predictor=self.previous.predictor.own)
        return learn_own(self.curator, self.recipe.learning_rate, self.progress, (mean, share - mean), start)

    def combine(self, mode: Mode, name: str, own: OwnPredictor, table: Array, start: Any) -> BallotPredictor:
        """Step 6: calibrate on calibration nodes, with all they have left."""
        asked = self.curator.masks["calibration"]

        def own_scores(block: Block) -> Array:
            wanted = asked[block.slots]
            return np.asarray(log_softmax(own.scores(block, wanted)[wanted], axis=1))

        combiner = calibrate(
            self.curator,
            name,
            start,
            lambda private: engine.gathered(private, own_scores, asked),
            table[asked[self.receivers]],
            share=self.purse.pay(name, self.purse.left["calibration"]),
            rate=self.recipe.combiner_rate,
        )
        return BallotPredictor(mode, own, np.flatnonzero(self.receivers), table, combiner)

    def publish(self, predictor: BallotPredictor) -> None:
        """What query records pay for on top, if asked: a noisy accuracy, and noisy votes that may be published."""
        asked = self.curator.masks["query"]
        if not asked.any():
            return
        if self.recipe.release_accuracy:

            def right(scored: Graph) -> float:
                guess = predictor.logits(scored).argmax(axis=1)
                return float(np.count_nonzero(asked & (scored.labels >= 0) & (guess == scored.labels)))

            count = self._release("accuracy", self.recipe.rest * self.recipe.accuracy_share, right)
            predictor.accuracy = float(np.clip(count / asked.sum(), 0.0, 1.0))
        if self.recipe.publish == "noisy":
            own = predictor.own

            def own_votes(block: Block) -> Array:
                votes = tally.centre(softmax(own.scores(block), axis=1)) * block.present[:, None]
                return np.asarray(at_most_unit(votes)[asked[block.slots]])

            told = lambda private: engine.gathered(private, own_votes, asked)
            votes = self._release("published", self.purse.left["query"], told)
            noise, classes = self.curator.noise_scale("published"), self.curator.facts.classes
            weight = 0.7 / (math.sqrt(1 - 1 / classes) * (noise**2 + 0.2))
            predictor.published, predictor.query = weight * votes, np.flatnonzero(asked)

    def _release(self, name: str, share: float, query: Any) -> Array:
        return self.curator.release(name, query, self.purse.pay(name, share))

    def _in_noise(self, table: str, value: float) -> float:
        """``value`` in units of the noise that the whole budget would put on this table."""
        if value <= 0:
            return 0.0
        return value * self.curator.plan.mu / max(self.curator.plan.step(table).sensitivity.values())
