"""``local``: the recommended recipe. Labels are worth more than features; edges are public, or reported as histograms."""

from __future__ import annotations

from typing import Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers import LabelHistogram, LabelResponse
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server as Session
from graphveil.methods.card import Card
from graphveil.methods.common.backbone_training import NoisyLabels
from graphveil.methods.local.histograms import NoisyCounts, noisy_degrees
from graphveil.methods.local_method import LocalMethod, ScoresPredictor
from graphveil.methods.options import Count, NonNegative, Positive
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.noise import Array

HOP_SCALE = (
    4.0  # shares lie in [-1, 1], log-posteriors in [-10, 0]: brings their weights to one scale for one learning rate
)
FLOOR = -10.0  # of log-posteriors: on dense graphs belief propagation is far too sure of itself
LENGTHS_HIDDEN = (
    "not even the lengths of contact lists: the epsilon of one undirected edge is for adding or removing it, in both lists "
    "together; rewiring it is one less and one more, twice that"
)
TWO_ROUNDS_FROM = 31.0  # epsilon per list times mean degree above which a second histogram round pays


class LocalRecipe(LocalMethod):
    """Labels by randomised response; then likelihood propagation on public edges, or noisy neighbour histograms.

    ``labels-graph`` (edges raw): likelihoods of the label reports are propagated over 1, 2, 4, 8 and 16 hops and by loopy belief
    propagation, out of fold for whoever has reported; a small head is trained by forward correction and chosen on *released*
    validation labels. ``histogram`` (edges with an epsilon): everybody counts the released labels of their contacts with
    Laplace noise; the server fits P(bin | class) by EM. Features are not needed and default to withheld.

    Args:
        folds: parts for out-of-fold evidence.
        agreement, sweeps, message_weight, damping: of belief propagation.
        histogram_rounds: 1, 2 or None (two if epsilon per list times mean degree exceeds 31).
        edge_unit: ``list`` (the edge epsilon is for one list entry) or ``edge`` (for one undirected edge: half per list).
        degrees: ``public`` (the server knows how many contacts everybody has) or ``noisy``: it takes the sum of the noisy
            counts instead, and the edge epsilon covers an undirected edge that comes or goes, in both lists together.
        dispersion: how much more the labels of one's contacts vary than independent draws (0: not at all); histograms only.
        epochs, learning_rate, weight_decay: Adam for the heads.
    """

    card = Card(
        name="local",
        summary="noisy labels, denoised over a public graph or by noisy histograms of private contacts",
        paper="this library",
        trust="nobody: records are randomised before they leave",
        protects="the label of one vertex, and one entry of its contact list where edges have an epsilon",
        public="edges if raw (then said so); who is labelled; with private edges the number of contacts",
        formula="k-RR(y); Laplace(2/eps) on counts of released labels over one's contacts",
        when="whenever no curator is trusted; default of the local methods",
    )

    folds: Count = 3
    agreement: NonNegative = 0.8
    sweeps: Count = 6
    message_weight: NonNegative = 0.7
    damping: NonNegative = 0.3
    histogram_rounds: Count | None = None
    edge_unit: Literal["list", "edge"] = "list"
    degrees: Literal["public", "noisy"] = "public"
    dispersion: NonNegative = 0.05
    epochs: Count = 100
    learning_rate: Positive = 1e-2
    weight_decay: NonNegative = 1e-3

    def check(self) -> None:
        super().check()
        if self.folds < 2:
            raise InputError(f"local: folds must be at least 2, got {self.folds}")
        if self.histogram_rounds not in (None, 1, 2):
            raise InputError(f"local: histogram_rounds is null (automatic), 1 or 2, got {self.histogram_rounds}")
        if self.edge_unit not in ("list", "edge"):
            raise InputError(f"local: edge_unit is list or edge, got {self.edge_unit!r}")
        if self.degrees not in ("public", "noisy"):
            raise InputError(f"local: degrees is public or noisy, got {self.degrees!r}")
        if self.dispersion > 1:
            raise InputError(f"local: dispersion lies between 0 and 1, got {self.dispersion:g}")

    def rounds(self, facts: PublicFacts, promise: Local, mean_degree: float = 0.0) -> tuple[Round, ...]:
        if promise.labels is Openness.WITHHELD:
            raise InputError("local learns from labels: give --labels-epsilon an epsilon (or raw)")
        if promise.features is not Openness.WITHHELD:
            raise InputError("local does not read features (they do not help here): use --features-epsilon withheld")
        if promise.edges is Openness.WITHHELD:
            raise InputError("local needs edges: --edges-epsilon raw (public edges), or an epsilon (histograms)")
        found = []
        if not isinstance(promise.labels, Openness):
            found.append(Round("labels", Part.LABELS, LabelResponse(promise.labels, facts.classes)))
        if not isinstance(promise.edges, Openness):
            found += self._histogram_rounds(facts, promise.edges, facts.mean_degree or 0.0)
        return tuple(found)

    def _histogram_rounds(self, facts: PublicFacts, budget: float, mean_degree: float) -> list[Round]:
        """One or two; with noisy degrees the mean degree is not public, so it may not choose between them."""
        hidden = self.degrees == "noisy"
        lengths = "hidden" if hidden else "public"
        per_list = budget / (2 if self.edge_unit == "edge" and not hidden else 1)
        pays = not hidden and per_list * mean_degree > TWO_ROUNDS_FROM
        number = self.histogram_rounds or (2 if pays else 1)
        first = LabelHistogram(per_list / number, facts.classes + 1, lengths)
        found = [Round("histogram", Part.EDGES, first, "the released labels")]
        if number == 2:
            second = LabelHistogram(per_list / number, facts.classes, lengths)
            found.append(Round("histogram-2", Part.EDGES, second, "the classes inferred from earlier rounds"))
        return found

    @property
    def lengths_public(self) -> bool:  # type: ignore[override, misc]
        return self.degrees == "public"

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        if promise.edges is Openness.RAW:
            return super().public_statements(promise)
        lengths = (
            "how many contacts everybody has (the length of each list)" if self.degrees == "public" else LENGTHS_HIDDEN
        )
        return (*super().public_statements(promise), lengths)

    def train(self, session: Session) -> ScoresPredictor:
        labels = NoisyLabels.heard(session)
        learn = self._histogram if session.raw_edges is None else self._labels_graph
        return learn(session, labels.reports, labels.channel)

    def _labels_graph(self, session: Session, reports: np.ndarray, channel: Array) -> ScoresPredictor:
        """Edges are public: propagate likelihoods, choose a head."""
        from graphveil.methods.common.denoise import folds, likelihood_rows, normalised

        matrix = normalised(session.raw_edges, session.facts.nodes, self_loops=True)
        likelihoods = likelihood_rows(reports, channel)
        parts = folds(reports >= 0, self.folds, session.coins)
        whole = self._evidence(session, matrix, likelihoods)
        seen = whole.copy()
        for number, part in enumerate(parts):
            blind = likelihoods.copy()
            blind[part] = 1 / session.facts.classes
            seen[part] = self._evidence(session, matrix, blind)[part]
            session.tell("folds", number + 1, len(parts))
        return self._choose(session, reports, channel, seen, whole, None)

    def _evidence(self, session: Session, matrix: object, likelihoods: Array) -> Array:
        """n x 6 x classes: five hops and the belief-propagation log-posterior."""
        from graphveil.methods.common.denoise import belief_propagation, hop_shares

        beliefs = belief_propagation(
            session.raw_edges, likelihoods, self.agreement, self.sweeps, self.message_weight, self.damping
        )
        beliefs = np.maximum(beliefs, FLOOR)
        return np.concatenate([HOP_SCALE * hop_shares(matrix, likelihoods), beliefs[:, None, :]], axis=1)

    def _choose(
        self,
        session: Session,
        reports: np.ndarray,
        channel: Array,
        seen: Array,
        whole: Array,
        extra: Array | None,
    ) -> ScoresPredictor:
        """Train the heads and keep the best one; the last kind of evidence is also a head as it is."""
        from graphveil.methods.local.heads import train_heads

        chosen = [np.flatnonzero(session.masks[kind] & (reports >= 0)) for kind in ("train", "calibration")]
        if not all(len(rows) for rows in chosen):
            raise InputError("local needs labelled train and validation vertices: check the split")
        train, validation = ((rows, reports[rows]) for rows in chosen)
        found = train_heads(
            seen, seen[:, -1], channel, train, validation, seed=int(session.coins.integers(2**31)), apply_to=whole,
            apply_plain=whole[:, -1], extra=None if extra is None else (extra, extra), epochs=self.epochs,
            learning_rate=self.learning_rate, weight_decay=self.weight_decay,
        )  # fmt: skip
        session.tell("heads", 1, 1)
        return ScoresPredictor(found.logits, {"head": found.head, "losses": found.losses})

    def _histogram(self, session: Session, reports: np.ndarray, channel: Array) -> ScoresPredictor:
        """Edges are private: one or two rounds of noisy counts."""
        from graphveil.methods.common.denoise import likelihood_rows

        classes = session.facts.classes
        likelihoods = likelihood_rows(reports, channel)
        labelled = float(np.mean(reports >= 0))
        homophily = np.full((classes, classes), 0.25 / (classes - 1))
        np.fill_diagonal(homophily, 0.75)
        start = np.hstack([labelled * homophily @ channel, np.full((classes, 1), 1 - labelled)])
        counts = session.ask("histogram", np.where(reports < 0, classes, reports))
        rounds = [NoisyCounts(counts, self._noise(session, "histogram"))]
        degrees = self._degrees(session, rounds)
        first = rounds[0].fit(degrees, likelihoods, start, self.dispersion)
        evidence = [first.log_likelihood]
        if "histogram-2" in session.collector.rounds:
            inferred = (first.log_likelihood + np.log(first.prior) + np.log(likelihoods)).argmax(axis=1)
            rounds.append(NoisyCounts(session.ask("histogram-2", inferred), self._noise(session, "histogram-2")))
            degrees = self._degrees(session, rounds)
            evidence.append(rounds[1].fit(degrees, likelihoods, homophily, self.dispersion).log_likelihood)
        total = sum(evidence) + np.log(first.prior)
        centred = [part - part.mean(axis=1, keepdims=True) for part in (*evidence, total)]
        stacked = np.stack(centred, axis=1)
        columns = np.hstack([one.standard(degrees) for one in rounds])
        return self._choose(session, reports, channel, stacked, stacked, columns)

    def _noise(self, session: Session, name: str) -> float:
        return float(session.collector.rounds[name].randomizer.variance()[0])

    def _degrees(self, session: Session, rounds: list[NoisyCounts]) -> Array:
        """The lengths of the lists where they are public, else what the noisy counts say."""
        return noisy_degrees(rounds) if self.degrees == "noisy" else session.degrees.astype(np.float64)
