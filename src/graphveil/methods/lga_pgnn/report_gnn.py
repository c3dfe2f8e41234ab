"""A graph network on reports over public edges: what LGA-PGNN and its baselines have in common.

They differ in the randomizer of the features (or have none) and in what they feed to the network. Labels are sent by
randomised response, or in the clear if the promise says so; edges are public by declaration. Training is post-processing.
Tests: ``tests/methods/test_baselines.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Randomizer
from graphveil.exchange.round import Round, vertex_rounds
from graphveil.exchange.server import Server
from graphveil.methods.common.reporting import TrainingOptions
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.methods.local_method import LocalMethod, RangedMethod
from graphveil.methods.options import Count, Options, Range
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from graphveil.methods.common.backbone_training import Build

EDGES_PUBLIC = "all edges: they are read as they are and nothing about them is protected"


class ReportGnn(TrainingOptions, LocalMethod):
    """Subclasses give the features' randomizer, the inputs and, if it is deeper, the network (of ``learn.backbones``).

    Args:
        width: more columns than these are multiplied by a public random matrix (post-processing: speed).
        loss: ``forward`` (knows the noise of the labels) or ``plain``.
    """

    reads_features: ClassVar[bool] = True
    network: ClassVar[Literal["for_one_graph", "with_dense_end", "twice_as_deep"]] = "for_one_graph"

    width: Count = 512
    loss: Literal["forward", "plain"] = "forward"

    def randomizer(self, facts: PublicFacts, budget: float) -> Randomizer:
        """What every vertex does to its features; a method that does not read them asks for none."""
        raise InputError(f"{self.name} does not read features: say --features-epsilon withheld")

    @abstractmethod
    def inputs(self, server: Server, edges: np.ndarray) -> Array:
        """The columns the network sees, from reports, public edges and public coins."""

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
            raise InputError(f"{self.name} reads no features: use --features-epsilon withheld")
        return vertex_rounds(promise, facts.classes, partial(self.randomizer, facts))

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        return (*super().public_statements(promise), EDGES_PUBLIC)

    def train(self, server: Server) -> ScoresPredictor:
        from graphveil.methods.common.backbone_training import BackboneTraining, NoisyLabels

        edges = server.raw_edges
        assert edges is not None  # any other promise was refused with the rounds
        inputs, build = self.prepared(server, edges)
        labels = NoisyLabels.heard(server)
        seed = int(server.coins.integers(2**31))
        kept = BackboneTraining.of(self).start(server, inputs, edges, labels, seed, build).until(self.epochs)
        return ScoresPredictor(kept.scores, {"validation_loss": kept.validation_loss, "epoch": kept.epoch}, public=True)

    def prepared(self, server: Server, edges: np.ndarray) -> tuple[Array, Build]:
        """The inputs, and what builds the network that sees them."""
        from graphveil.learn import backbones

        return self.inputs(server, edges), getattr(backbones, self.network)

    def reported_columns(self, server: Server) -> Array:
        """The features as reported (or as they are, if they are raw), at most ``width`` columns of mean 0 and deviation 1."""
        from graphveil.methods.common.backbone_training import dense_columns, heard_rows, standardised

        return standardised(dense_columns(heard_rows(server), self.width, server.coins))


class PiecewiseGnn(RangedMethod, ReportGnn):
    """The mean over neighbours, two graph layers and two dense layers; subclasses give the piecewise randomizer."""

    network = "with_dense_end"

    filled: Annotated[float, Range(0, 1, "(]")] = 0.05

    def inputs(self, server: Server, edges: np.ndarray) -> Array:
        """Columns of mean 0 (so the factor d/m and the middle of the range do not matter), averaged by the private layer."""
        from graphveil.methods.common.backbone_training import standardised

        return standardised(self.private_layer(server, self.reported_columns(server), edges))

    def private_layer(self, server: Server, columns: Array, edges: np.ndarray) -> Array:
        """The mean over a vertex and its neighbours."""
        from graphveil.methods.lga_pgnn.augmentation import private_layer

        return private_layer(edges, columns)


class Augmentation(Options):
    """Further neighbours for vertices below the median degree: what LGA-PGNN adds to LDP-GNN.

    Args:
        augment: whether they are generated by a conditional auto-encoder; else they are zero vectors.
        samples: S, how many (the mean is divided by degree + 1 + S).
    """

    augment: bool = False
    samples: Count = 10

    def private_layer(self, server: Server, columns: Array, edges: np.ndarray) -> Array:
        """The mean over a vertex, its neighbours and the further ones."""
        from graphveil.methods.lga_pgnn import augmentation

        if not self.augment:
            return augmentation.private_layer(edges, columns, self.samples)
        sums = augmentation.generated_sums(columns, edges, self.samples, seed=int(server.coins.integers(2**31)))
        server.tell("auto-encoder", 1, 1)
        return augmentation.private_layer(edges, columns, self.samples, sums)
