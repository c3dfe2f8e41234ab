"""A graph network on reports over public edges: what LGA-PGNN and its baselines have in common.

They differ in the randomizer of the features (or have none) and in what they feed to the network. Labels are sent by
randomised response, or in the clear if the promise says so; edges are public by declaration. Training is post-processing.
Tests: ``tests/methods/test_baselines.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from graphveil.errors import InputError
from graphveil.exchange.randomizers import LabelResponse
from graphveil.exchange.randomizers.base import Randomizer
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server as Session
from graphveil.methods.card import Card
from graphveil.methods.common.backbone_training import BackboneTraining, NoisyLabels
from graphveil.methods.local_method import LocalMethod, ScoresPredictor
from graphveil.methods.options import Count, Fraction, NonNegative, Positive
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.nn import Module

    Build = Callable[[str, int, int, int, float, int], Module]

EDGES_PUBLIC = "all edges: they are read as they are and nothing about them is protected"


class ReportGnn(LocalMethod):
    """Subclasses give the randomizer of the features, the inputs of the network and, if it is deeper, the network."""

    reads_features: ClassVar[bool] = True

    backbone: Literal["gcn", "sage", "gat", "gatv2", "transformer", "graphconv", "cheb", "sgc", "tag"] = "gcn"
    width: Count = 512
    loss: Literal["forward", "plain"] = "forward"
    hidden: Count = 64
    epochs: Count = 100
    learning_rate: Positive = 1e-2
    weight_decay: NonNegative = 1e-3
    dropout: Fraction = 0.5

    def randomizer(self, facts: PublicFacts, budget: float) -> Randomizer:
        """What every vertex does to its features; a method that reads none refuses."""
        raise self._reads_none()

    @abstractmethod
    def inputs(self, session: Session) -> Array:
        """The columns the network sees, from reports, public edges and public coins."""

    def network(self) -> Build | None:
        """What builds the network; None: the backbone as it is."""
        return None

    def check(self) -> None:
        super().check()
        self._training()

    def rounds(self, facts: PublicFacts, promise: Local, mean_degree: float = 0.0) -> tuple[Round, ...]:
        if promise.edges is not Openness.RAW:
            raise InputError(
                f"{self.name} reads edges in the clear: say --edges-epsilon raw, or use 'local' with private edges"
            )
        if promise.labels is Openness.WITHHELD:
            raise InputError(f"{self.name} learns from labels: give --labels-epsilon an epsilon (or raw)")
        if self.reads_features and promise.features is Openness.WITHHELD:
            raise InputError(f"{self.name} learns from features: give --features-epsilon an epsilon (or raw)")
        if not self.reads_features and promise.features is not Openness.WITHHELD:
            raise self._reads_none()
        found = []
        if not isinstance(promise.features, Openness):
            found.append(Round("features", Part.FEATURES, self.randomizer(facts, promise.features)))
        if not isinstance(promise.labels, Openness):
            found.append(Round("labels", Part.LABELS, LabelResponse(promise.labels, facts.classes)))
        return tuple(found)

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        return (*super().public_statements(promise), EDGES_PUBLIC)

    def train(self, session: Session) -> ScoresPredictor:
        inputs = self.inputs(session)
        labels = NoisyLabels.heard(session)
        seed = int(session.coins.integers(2**31))
        kept = self._training().fit(session, inputs, session.raw_edges, labels, seed)
        return ScoresPredictor(kept.scores, {"validation_loss": kept.validation_loss, "epoch": kept.epoch})

    def reported_rows(self, session: Session) -> Any:
        """The features as reported, or as they are if the promise declares them raw."""
        return session.raw_rows if session.raw_rows is not None else session.ask("features")

    def _reads_none(self) -> InputError:
        return InputError(f"{self.name} reads no features: use --features-epsilon withheld")

    def _training(self) -> BackboneTraining:
        if self.loss == "drop":
            raise InputError(f"{self.name}: loss is forward or plain, got 'drop'")
        return BackboneTraining(
            self.backbone,
            self.loss,
            hidden=self.hidden,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            dropout=self.dropout,
            build=self.network(),
        )


def baseline_card(name: str, summary: str, protects: str, formula: str) -> Card:
    """The card of a baseline of LGA-PGNN."""
    return Card(
        name=name,
        summary=summary,
        paper="baseline of LGA-PGNN (IEEE TIFS 2023)",
        trust="nobody for features and labels; edges are sent in the clear",
        protects=protects,
        public="edges (raw), who is labelled",
        formula=formula,
        when="to compare with lga-pgnn",
    )
