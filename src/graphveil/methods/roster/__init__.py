"""Roster: one private linear model on a node's own record, its own contact list included.

Under ``record`` a person's own contact list is part of the record like the features, so it may enter a private gradient as a
sparse row: one learned code per listed slot. The logit of i is ``x_i V + a_i C``, a_i the list divided by sqrt(max(d_i, F)):
codes compare i's contacts with those of everybody labelled, and noise enters a logit once, not once per contact.

Labelled are training *and* calibration nodes; all others are asked about. Shares of mu^2 and sensitivities: ``bounds.py``.

1. *Mean* of the unit feature rows (everybody), then rows are centred. *Prior*: class frequencies.
2. *Probe*: one gradient, features, lists and own slots apart. *Test*: leave-one-out margins of the three, and the mass of lists.
3. *Weights* from these released numbers: water-filling between features and lists; own slots (a noisy copy of the label,
   which the contacts' lists read) where contacts agree.
4. *Gradients*: clipped sums over all labelled records, momentum with one second moment; codes that are hardly more than
   noise shrink.
5. *Rows*: noisy probabilities of the others. Where contacts agree, lists read them, too; they may be shown to anybody.

Formal guarantee: each release is Gaussian with the sensitivities of ``bounds.py``; the plan is fixed; labelled records pay
.03 + .005 + .05 + .025 + .89 = 1 of mu^2, others .03 + .97 = 1. What a query reads besides private records was released before,
so everything is mu-GDP. A prediction adds the node's own features and list (own-row rule). With ``edge_cover`` lists are divided
by the root of at least F, the residual reads codes of bounded norm and the clip does not read the list: one undirected edge
costs at most mu as well (``bounds.reading_bound``).
Tests: ``tests/methods/test_roster*.py``, ``tests/audit/test_roster_audit.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from graphveil.errors import InputError
from graphveil.methods.base import ZERO_OUT, PrivateMethod, guarantees
from graphveil.methods.card import card
from graphveil.methods.model import Predictor
from graphveil.methods.options import Count, Positive
from graphveil.methods.previous import Previous
from graphveil.methods.roster.bounds import LABELLED, releases_of
from graphveil.methods.roster.predictor import RosterPredictor
from graphveil.methods.roster.statements import assumptions_of, implied_by
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress


class Roster(PrivateMethod):
    """A private linear model on own features and own contact list; one recipe for all graphs and all epsilon.

    Args:
        edge_cover: true: one undirected edge costs no more than one record, in everything released; false: better where lists
            say what features do not and neighbours differ. By default true for undirected data, false for directed lists.
        steps: gradient steps, an even number.
        clip: the norm of one record's part of a gradient sum.
        learning_rate: of the steps.
    """

    card = card("roster")
    supports = guarantees(Adjacency.RECORD) | guarantees(Adjacency.K_NEIGHBOR, relations=ZERO_OUT)
    predictor = RosterPredictor
    learns_from: ClassVar[tuple[str, ...]] = LABELLED
    reads_blocks = True

    edge_cover: bool | None = None
    steps: Count = 70
    clip: Positive = 0.35
    learning_rate: Positive = 0.1

    def check(self) -> None:
        if self.steps % 2:
            raise InputError(f"roster takes an even number of steps, got {self.steps}: some are taken in pairs")

    def covers(self, facts: PublicFacts) -> bool:
        """Whether one undirected edge is covered like one record."""
        return not facts.directed if self.edge_cover is None else self.edge_cover

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        if not facts.labelled:
            raise InputError("roster learns from training and calibration nodes, and these data have none")
        cover = self.covers(facts)
        steps = releases_of(facts, promise, cover=cover, steps=self.steps, clip=self.clip)
        draft = Plan(promise, facts, steps)
        return replace(draft, implied=implied_by(draft, cover, self.clip))

    def statements(self, plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
        public, _ = super().statements(plan)
        return public, assumptions_of(plan, self.covers(plan.facts))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> RosterPredictor:
        from graphveil.methods.roster.algorithm import Roll

        return Roll(curator, self.covers(curator.facts), self.clip, self.learning_rate, progress).call()

    def learn_on(
        self, previous: Previous, curator: Curator, coins: np.random.Generator, progress: Progress
    ) -> RosterPredictor:
        from graphveil.methods.roster.algorithm import Roll

        return Roll(curator, self.covers(curator.facts), self.clip, self.learning_rate, progress, previous).call()

    def takes(self, predictor: Predictor, promise: Promise) -> bool:
        return isinstance(predictor, RosterPredictor)
