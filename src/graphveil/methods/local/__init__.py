"""``local``: the recommended recipe. Labels are worth more than features; edges are public, or reported as histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers import LabelHistogram
from graphveil.exchange.round import Round, vertex_rounds
from graphveil.exchange.server import Server
from graphveil.methods.card import card
from graphveil.methods.common.reporting import AdamOptions
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.methods.local_method import LocalMethod
from graphveil.methods.model import Predictor
from graphveil.methods.options import Count, NonNegative, Range
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import DEGREES, LISTS_ONLY, Local, Openness, Part
from graphveil.privacy.promise import Guarantee, Promise, Relation

if TYPE_CHECKING:
    from graphveil.methods.local.sources import Histograms, PublicEdges

LENGTHS_HIDDEN = (
    "not even the lengths of contact lists: the epsilon of one undirected edge is for adding or removing it, in both lists "
    "together; rewiring it is one less and one more, twice that"
)
TOLD = (
    "told to all who take part: everybody's label in the clear, or a class that follows from what was sent in the clear"
)
OWN_CLASSES = "the known labels, and elsewhere the classes that public features suggest"
TWO_ROUNDS_FROM = 31.0  # epsilon per list times mean degree above which a second histogram round pays


class LocalRecipe(AdamOptions, LocalMethod):
    """Labels by randomised response; then likelihood propagation on public edges, or noisy neighbour histograms.

    ``labels-graph`` (edges raw): likelihoods of the label reports are propagated over 1, 2, 4, 8 and 16 hops and by loopy belief
    propagation, out of fold for whoever has reported; a small head is trained by forward correction and chosen on *released*
    validation labels. ``histogram`` (edges with an epsilon): everybody counts the released labels of their contacts with
    Laplace noise; the server fits P(bin | class) by EM. Features are not needed and default to withheld.

    ``own-classes`` (features and labels raw, edges with an epsilon: nothing but contact lists is protected): the server learns
    classes from features and tells everybody's, the true one where it is known; everybody counts those of their contacts with
    Laplace noise; exact likelihoods of the noisy counts under every class are added to what features say (``counts.py``).

    Args:
        folds: parts for out-of-fold evidence.
        agreement, sweeps, message_weight, damping: of belief propagation.
        histogram_rounds: 1, 2 or None (two if epsilon per list times mean degree exceeds 31; one beside raw features, where a
            second one, of better classes at half the budget, pays from about epsilon 8 on sparse graphs).
        edge_unit: ``list`` (the edge epsilon is for one list entry) or ``edge`` (for one undirected edge: half per list).
        degrees: ``public`` (the server knows how many contacts everybody has) or ``noisy``: it takes the sum of the noisy
            counts instead, and the edge epsilon covers an undirected edge that comes or goes, in both lists together.
            Under the relation zero-out lengths are never public.
        dispersion: how much more the labels of one's contacts vary than independent draws (0: not at all); histograms only.
    """

    card = card("local")

    folds: Annotated[int, Range(2)] = 3
    agreement: Annotated[float, Range(0, 1)] = 0.8
    sweeps: Count = 6
    message_weight: NonNegative = 0.7
    damping: Annotated[float, Range(0, 1)] = 0.3
    histogram_rounds: Literal[1, 2] | None = None
    edge_unit: Literal["list", "edge"] = "list"
    degrees: Literal["public", "noisy"] = "public"
    dispersion: Annotated[float, Range(0, 1)] = 0.05

    def rounds(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        if promise.labels is Openness.WITHHELD:
            raise InputError("local learns from labels: give --labels-epsilon an epsilon (or raw)")
        if promise.features is not Openness.WITHHELD and not reads_features(promise):
            raise InputError(
                "local reads features only where nothing but contact lists is protected (features raw, labels raw, edges an "
                "epsilon); elsewhere they do not help: use --features-epsilon withheld"
            )
        if promise.edges is Openness.WITHHELD:
            raise InputError("local needs edges: --edges-epsilon raw (public edges), or an epsilon (histograms)")
        labels = vertex_rounds(promise, facts.classes)
        if isinstance(promise.edges, Openness):
            return labels
        return (*labels, *self._histogram_rounds(facts, promise, promise.edges))

    def _histogram_rounds(self, facts: PublicFacts, promise: Local, budget: float) -> list[Round]:
        """One or two; where lengths are hidden the mean degree is not public, so it may not choose between them."""
        told, features = self.told_lengths(promise), reads_features(promise)
        public = ("public" if told else "hidden", promise.relation.value)
        in_both = LabelHistogram(budget, facts.classes, *public).edge_units  # what an edge costs, in epsilons of a list
        per_list = budget / (in_both if self.edge_unit == "edge" else 1)
        pays = told and not features and per_list * (facts.mean_degree or 0.0) > TWO_ROUNDS_FROM
        number = self.histogram_rounds or (2 if pays else 1)
        first = LabelHistogram(per_list / number, facts.classes + (0 if features else 1), *public)
        found = [Round("histogram", Part.EDGES, first, OWN_CLASSES if features else "the released labels")]
        if number == 2:
            second = LabelHistogram(per_list / number, facts.classes, *public)
            found.append(Round("histogram-2", Part.EDGES, second, "the classes inferred from earlier rounds"))
        return found

    @property
    def supports(self) -> frozenset[Guarantee]:
        return super().supports | {LISTS_ONLY}

    @property
    def lengths_public(self) -> bool:  # type: ignore[override]
        return self.degrees == "public"

    def told_lengths(self, promise: Promise) -> bool:
        return super().told_lengths(promise) and promise.relation is not Relation.ZERO_OUT

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        found = super().public_statements(promise)
        if promise.edges is Openness.RAW:
            return found
        told = (TOLD,) if promise.raw else ()
        return (*found, *told, DEGREES if self.told_lengths(promise) else LENGTHS_HIDDEN)

    def train(self, server: Server) -> Predictor:
        from graphveil.methods.common.backbone_training import NoisyLabels
        from graphveil.methods.local import algorithm
        from graphveil.methods.local.heads import Evidence, train_heads
        from graphveil.methods.local.predictor import HeadPredictor
        from graphveil.methods.local.sources import PublicEdges

        labels = NoisyLabels.heard(server)
        source: PublicEdges | Histograms | None = None
        if reads_features(server.promise):
            evidence = algorithm.from_own_classes(server, labels, self.folds)
        elif server.raw_edges is None:
            source = algorithm.from_histograms(server, labels, self.dispersion, self.told_lengths(server.promise))
            whole, extra = source.slots()
            evidence = Evidence(whole, whole, extra)
        else:
            source = PublicEdges(labels.reports, labels.channel, server.raw_edges, self._beliefs)
            evidence = algorithm.from_public_edges(server, labels, source, self.folds)
        seed = int(server.coins.integers(2**31))
        head, losses = train_heads(
            evidence, labels, server.masks, seed, self.epochs, self.learning_rate, self.weight_decay
        )
        server.tell("heads", 1, 1)
        if source is None:  # who has told a label has scores of models that did not see it: a table, and no network
            told = {"head": head.name, "losses": losses}
            return ScoresPredictor(head.logits(evidence.whole, evidence.extra), told, public=True)
        clear = ("reports", "edges") if Part.LABELS in server.promise.raw else ("edges",)
        return HeadPredictor({"losses": losses}, head, source, clear)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        from graphveil.methods.local.predictor import KIND, HeadPredictor

        if config.get("kind") != KIND:
            return super().restore(config, arrays)
        options = self.dispersion if config["source"] == "histograms" else self._beliefs
        return HeadPredictor.restore(options, config, arrays)

    @property
    def _beliefs(self) -> dict[str, Any]:
        """The options of belief propagation."""
        told = {"agreement": self.agreement, "sweeps": self.sweeps, "damping": self.damping}
        return told | {"weight": self.message_weight}


def reads_features(promise: Local) -> bool:
    """Whether nothing but contact lists is protected: then features are worth more than lists."""
    raw = promise.features is promise.labels is Openness.RAW
    return raw and not isinstance(promise.edges, Openness)
