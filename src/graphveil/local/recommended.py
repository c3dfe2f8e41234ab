"""``local``: the recommended recipe. Labels are worth more than features; edges are public, or reported as histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphveil.errors import InputError
from graphveil.local.method import LocalMethod, ScoresPredictor, Session
from graphveil.local.promise import Local, Openness, Part
from graphveil.local.randomizers import LabelHistogram, LabelResponse
from graphveil.local.report import Round
from graphveil.methods.card import Card
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from graphveil.local.denoise import HistogramFit

ALMOST_CLEAN = 1e-6  # raw labels are treated as reports that are wrong this often
HOP_SCALE = (
    4.0  # shares lie in [-1, 1], log-posteriors in [-10, 0]: brings their weights to one scale for one learning rate
)
FLOOR = -10.0  # of log-posteriors: on dense graphs belief propagation is far too sure of itself
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
    modes = ("sound",)

    def __init__(
        self,
        folds: int = 3,
        agreement: float = 0.8,
        sweeps: int = 6,
        message_weight: float = 0.7,
        damping: float = 0.3,
        histogram_rounds: int | None = None,
        edge_unit: str = "list",
        epochs: int = 100,
        learning_rate: float = 1e-2,
        weight_decay: float = 1e-3,
    ) -> None:
        self.folds = folds
        self.agreement = agreement
        self.sweeps = sweeps
        self.message_weight = message_weight
        self.damping = damping
        self.histogram_rounds = histogram_rounds
        self.edge_unit = edge_unit
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.folds < 2:
            raise InputError(f"local: folds must be at least 2, got {self.folds}")
        if self.histogram_rounds not in (None, 1, 2):
            raise InputError(f"local: histogram_rounds is null (automatic), 1 or 2, got {self.histogram_rounds}")
        if self.edge_unit not in ("list", "edge"):
            raise InputError(f"local: edge_unit is list or edge, got {self.edge_unit!r}")

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
            per_list = promise.edges / (2 if self.edge_unit == "edge" else 1)
            number = self.histogram_rounds or (2 if per_list * mean_degree > TWO_ROUNDS_FROM else 1)
            share = per_list / number
            heard = "the released labels"
            found.append(Round("histogram", Part.EDGES, LabelHistogram(share, facts.classes + 1), heard))
            if number == 2:
                heard = "the classes inferred from earlier rounds"
                found.append(Round("histogram-2", Part.EDGES, LabelHistogram(share, facts.classes), heard))
        return tuple(found)

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        more = () if promise.edges is Openness.RAW else ("how many contacts everybody has (the length of each list)",)
        return (*super().public_statements(promise), *more)

    def train(self, session: Session) -> ScoresPredictor:
        if session.raw_labels is None:
            reports = session.ask("labels")
            channel = session.collector.rounds["labels"].randomizer.channel
        else:
            reports, channel = session.raw_labels, almost_clean_channel(session.facts.classes)
        if session.raw_edges is not None:
            return self._labels_graph(session, reports, channel)
        return self._histogram(session, reports, channel)

    def _labels_graph(self, session: Session, reports: np.ndarray, channel: Array) -> ScoresPredictor:
        """Edges are public: propagate likelihoods, choose a head."""
        from graphveil.local.denoise import folds, likelihood_rows, normalised

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
        from graphveil.local.denoise import belief_propagation, hop_shares

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
        from graphveil.local.heads import train_heads

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
        from graphveil.local.denoise import likelihood_rows

        classes = session.facts.classes
        likelihoods = likelihood_rows(reports, channel)
        labelled = float(np.mean(reports >= 0))
        homophily = np.full((classes, classes), 0.25 / (classes - 1))
        np.fill_diagonal(homophily, 0.75)
        start = np.hstack([labelled * homophily @ channel, np.full((classes, 1), 1 - labelled)])
        counts = session.ask("histogram", np.where(reports < 0, classes, reports))
        first = self._fit(session, "histogram", counts, likelihoods, start)
        evidence, columns = [first.log_likelihood], [self._standard(session, "histogram", counts)]
        if "histogram-2" in session.collector.rounds:
            inferred = (first.log_likelihood + np.log(first.prior) + np.log(likelihoods)).argmax(axis=1)
            again = session.ask("histogram-2", inferred)
            second = self._fit(session, "histogram-2", again, likelihoods, homophily)
            evidence.append(second.log_likelihood)
            columns.append(self._standard(session, "histogram-2", again))
        total = sum(evidence) + np.log(first.prior)
        centred = [part - part.mean(axis=1, keepdims=True) for part in (*evidence, total)]
        stacked = np.stack(centred, axis=1)
        return self._choose(session, reports, channel, stacked, stacked, np.hstack(columns))

    def _fit(self, session: Session, name: str, counts: Array, likelihoods: Array, start: Array) -> HistogramFit:
        from graphveil.local.denoise import fit_histograms

        noise = float(session.collector.rounds[name].randomizer.variance()[0])
        return fit_histograms(counts, session.degrees, noise, likelihoods, start)

    def _standard(self, session: Session, name: str, counts: Array) -> Array:
        noise = float(session.collector.rounds[name].randomizer.variance()[0])
        return (counts - counts.mean(axis=0)) / np.sqrt(session.degrees[:, None] + noise)


def almost_clean_channel(classes: int) -> Array:
    """The channel of raw labels: wrong almost never, so that logarithms stay finite."""
    channel = np.full((classes, classes), ALMOST_CLEAN / (classes - 1))
    np.fill_diagonal(channel, 1 - ALMOST_CLEAN)
    return channel
