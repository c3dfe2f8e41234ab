"""DPDGC: decoupled graph convolution (Chien, Chen, Pan, Ozgur and Milenkovic, NeurIPS 2023).

1. *Codes*: a vector W_k per node, learned from the adjacency and the training labels with private gradients.
2. *Table*: Z = unit(A_w W + N(0, sigma^2) + b), released once. Decoupled: features never travel, so only column r moves.
3. *Classifier*: one layer on own features, one on Z, joined, and a head.

Sound: groups and bounds of ``bounds.py``; Poisson batches with Lemma G for the codes, full-batch private gradients for the
classifier. Under ``record`` a row of A is by default one's own list: one row per person, no list is cut, and the table needs no
noise (``rows``). With ``listed-by`` rows lists are cut to ``max_degree`` of the sender's *own* entries, which is stable under
``record``. As the paper has it: ``published.py``.
Tests: ``tests/methods/test_dpdgc.py``, ``tests/audit/test_central_conformance.py``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np

from graphveil import learn
from graphveil.errors import InputError
from graphveil.methods.base import EDGES, PrivateMethod, guarantees
from graphveil.methods.card import card
from graphveil.methods.common.branches import BranchPredictor, BranchShape
from graphveil.methods.common.labels import label_release, noisy_labels, one_hot
from graphveil.methods.common.own_predictor import GROWTH, mean_release
from graphveil.methods.common.private_training import calibrated, full_batch_release
from graphveil.methods.common.trainer import FullBatch, OpenTraining, records_are_public, sound_trainer
from graphveil.methods.dpdgc import algorithm
from graphveil.methods.dpdgc.bounds import (
    LABELS_LEMMA,
    AdjacencyRows,
    code_release,
    owns_rows,
    table_bound,
    table_release,
)
from graphveil.methods.options import Count, Fraction, Natural, Positive, Range, Share
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.plan import Plan, Release
from graphveil.privacy.promise import Adjacency, Level, Promise
from graphveil.progress import Progress


class Dpdgc(FullBatch, OpenTraining, PrivateMethod):
    """A private table of neighbours' codes beside the own features.

    Args:
        codes: ``learned`` (the paper), ``labels`` (neighbours' training labels), ``rr-labels`` or ``random``.
        width: numbers per code; label codes have as many as there are classes.
        hidden: width of the two branches; 0 for none (logits = X U + Z V), the default where gradients are private; 64 elsewhere.
        rows: what row i of A holds: ``listed-by`` (those who list i, as the paper has it) or ``own-list`` (those whom i lists);
            by default ``own-list`` for codes that are released, ``listed-by`` for labels.
        max_degree: entries kept of everybody's own list for learned codes at node level, with ``listed-by`` rows.
        row_norm: the norm c of a code; privacy-neutral.
        code_steps, code_rate, code_clip, code_learning_rate: Poisson gradient steps of the codes.
        classifier_share, centring: parts of mu^2, where records are private.
        code_share: the codes' part of the rest, which they share with the table (rr-labels: part of epsilon).
    """

    card = card("dpdgc")
    predictor = BranchPredictor
    least_k = 0
    supports = EDGES | guarantees(Adjacency.RECORD, Adjacency.K_NEIGHBOR)

    codes: Literal["learned", "labels", "rr-labels", "random"] = "learned"
    width: Count = 16
    hidden: Natural | None = None
    rows: Literal["listed-by", "own-list"] | None = None
    max_degree: Count = 5
    row_norm: Positive = 1.0
    code_steps: Count = 50
    code_rate: Annotated[float, Range(0, 1, "(]")] = 0.2
    code_clip: Positive = 0.5
    code_learning_rate: Positive = 0.05
    code_share: Share = 0.4
    classifier_share: Share = 0.7
    centring: Fraction = 0.01

    def check(self) -> None:
        if self.classifier_share + self.centring >= 1:
            raise InputError("classifier_share and centring must leave a part of the budget to the codes and the table")
        if self.codes == "labels" and self.rows == "own-list":
            raise InputError(
                "codes='labels' takes rows='listed-by': a label would be in the row of everybody who lists it"
            )

    def orientation(self, promise: Promise) -> AdjacencyRows:
        """What row i of A holds under this promise."""
        default = AdjacencyRows.OWN_LIST if self._codes_released(promise) else AdjacencyRows.LISTED_BY
        return default if self.rows is None else AdjacencyRows(self.rows)

    def shape(self, facts: PublicFacts, promise: Promise) -> BranchShape:
        width = facts.classes if self.codes in ("labels", "rr-labels") else self.width
        hidden = (64 if records_are_public(promise) else 0) if self.hidden is None else self.hidden
        return BranchShape(facts.features, facts.classes, width, hidden)

    def design(self, facts: PublicFacts, promise: Promise) -> Plan:
        return calibrated(promise, facts, partial(self._releases, facts, promise))

    def _releases(self, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
        """Everything for a total of mu; responses to label questions have their own part of epsilon."""
        shape, public = self.shape(facts, promise), records_are_public(promise)
        parts = {"mean": 0.0 if public or not facts.features else self.centring}
        parts["classifier"] = 0.0 if public else self.classifier_share
        rows, released = self.orientation(promise), self._codes_released(promise)
        free = promise.private and table_bound(facts, promise, shape.width, released, rows) == 0
        part = (1.0 if free else self.code_share) if self.codes == "learned" else 0.0
        parts["codes"] = (1 - sum(parts.values())) * part
        parts["table"] = 1 - sum(parts.values())
        share = {name: mu * math.sqrt(part) for name, part in parts.items()}
        releases = [mean_release(facts, promise, share["mean"])] if parts["mean"] else []
        releases += self._code_releases(facts, promise, shape, share["codes"])
        releases.append(table_release(facts, promise, shape.width, share["table"], self.row_norm, released, rows))
        if not public:
            stage: dict[str, Any] = {"steps": self.steps, "clip": self.clip, "growth": GROWTH}
            n, mu = facts.count("train"), share["classifier"]
            releases.append(full_batch_release("classifier", promise, n, shape.size, mu=mu, **stage))
        return tuple(releases)

    def _code_releases(
        self, facts: PublicFacts, promise: Promise, shape: BranchShape, mu: float
    ) -> tuple[Release, ...]:
        if self.codes == "learned":
            stage: dict[str, Any] = {"steps": self.code_steps, "rate": self.code_rate, "clip": self.code_clip}
            stage |= {"rows": self.orientation(promise), "cap": self.max_degree}
            return (code_release(facts, promise, shape.width, mu, **stage),)
        if self.codes == "rr-labels" and not records_are_public(promise):
            return (label_release("codes", facts, promise, self.code_share * promise.epsilon, LABELS_LEMMA),)
        return ()

    def _codes_released(self, promise: Promise) -> bool:
        """Whether the codes are fixed before the table is made, so that a change of record does not move them."""
        return self.codes in ("learned", "random") or (self.codes == "rr-labels" and not records_are_public(promise))

    def learn(self, curator: Curator, coins: np.random.Generator, progress: Progress) -> BranchPredictor:
        promise = curator.plan.promise
        train = sound_trainer(curator, coins, progress, self.learning_rate, self)
        shape, codes = self.shape(curator.facts, promise), partial(self._codes, curator, coins, progress)
        rows = self.orientation(promise)
        cut = self.codes == "learned" and promise.level is Level.NODE and not owns_rows(promise, rows)
        cap = self.max_degree if cut else None
        table = partial(algorithm.noisy_table, norm=self.row_norm)
        return algorithm.decouple(
            curator, BranchPredictor.build(shape), train, codes, coins, rows=rows, cap=cap, table=table
        )

    def _codes(
        self, curator: Curator, coins: np.random.Generator, progress: Progress, lists: algorithm.ListsOf
    ) -> algorithm.Codes:
        from graphveil.methods.dpdgc.codes import random_codes

        if not self._codes_released(curator.plan.promise):
            return None, 0.0
        match self.codes:
            case "learned":
                optimizer = learn.GlobalMoment(self.code_learning_rate)
                rows = self.orientation(curator.plan.promise)
                return algorithm.learned_codes(curator, self.width, optimizer, coins, progress, rows, lists)
            case "random":
                return random_codes(curator.facts.nodes, self.width, coins), 0.0
        return one_hot(noisy_labels(curator, "codes"), curator.facts.classes), 0.0
