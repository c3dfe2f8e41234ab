"""A graph network on reports over public edges: what LGA-PGNN and its baselines have in common.

They differ in the randomizer of the features (or have none) and in what they feed to the network. Labels are sent by
randomised response, or in the clear if the promise says so; edges are public by declaration. Training is post-processing.
Tests: ``tests/methods/test_baselines.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Randomizer
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.methods.common.reporting import TrainingOptions, vertex_rounds
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.methods.local_method import LocalMethod
from graphveil.methods.options import Count
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from graphveil.methods.common.backbone_training import Build

EDGES_PUBLIC = "all edges: they are read as they are and nothing about them is protected"


class ReportGnn(TrainingOptions, LocalMethod):
    """Subclasses give the randomizer of the features, the inputs of the network and, if it is deeper, the network.

    Args:
        width: more columns than these are multiplied by a public random matrix (post-processing: speed).
        loss: ``forward`` (knows the noise of the labels) or ``plain``.
    """

    reads_features: ClassVar[bool] = True

    width: Count = 512
    loss: Literal["forward", "plain"] = "forward"

    def randomizer(self, facts: PublicFacts, budget: float) -> Randomizer:
        """What every vertex does to its features; a method that reads none refuses."""
        raise self._reads_none()

    @abstractmethod
    def inputs(self, server: Server, edges: np.ndarray) -> Array:
        """The columns the network sees, from reports, public edges and public coins."""

    def network(self) -> Build:
        """What builds the network: the backbone as it is."""
        from graphveil.learn.networks import for_one_graph

        return for_one_graph

    def rounds(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
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
        return vertex_rounds(facts, promise, self.randomizer)

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        return (*super().public_statements(promise), EDGES_PUBLIC)

    def train(self, server: Server) -> ScoresPredictor:
        from graphveil.methods.common.backbone_training import BackboneTraining, NoisyLabels

        edges = server.raw_edges
        assert edges is not None  # any other promise was refused with the rounds
        inputs = self.inputs(server, edges)
        labels = NoisyLabels.heard(server)
        seed = int(server.coins.integers(2**31))
        run = BackboneTraining.of(self).start(server, inputs, edges, labels, seed, self.network())
        kept = run.until(self.epochs)
        return ScoresPredictor(kept.scores, {"validation_loss": kept.validation_loss, "epoch": kept.epoch}, public=True)

    def reported_columns(self, server: Server) -> Array:
        """The features as reported (or as they are, if they are raw), at most ``width`` columns of mean 0 and deviation 1."""
        from graphveil.methods.common.backbone_training import dense_columns, heard_rows, standardised

        return standardised(dense_columns(heard_rows(server), self.width, server.coins))

    def _reads_none(self) -> InputError:
        return InputError(f"{self.name} reads no features: use --features-epsilon withheld")
