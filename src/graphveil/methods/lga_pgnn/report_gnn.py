"""A graph network on reports over public edges: what LGA-PGNN and its baselines have in common.

They differ in the randomizer of the features (or have none) and in what they feed to the network. Labels are sent by
randomised response, or in the clear if the promise says so; edges are public by declaration. Training is post-processing.
Tests: ``tests/methods/test_baselines.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.randomizers.base import Randomizer
from graphveil.exchange.round import Round, vertex_rounds
from graphveil.exchange.server import Server
from graphveil.methods.common.reporting import TrainingOptions
from graphveil.methods.lga_pgnn.kept import Kept
from graphveil.methods.local_method import LocalMethod, RangedMethod
from graphveil.methods.model import Predictor
from graphveil.methods.options import Count, Options, Range
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from graphveil.methods.common.backbone_training import Build
    from graphveil.methods.lga_pgnn.predictor import ReportGnnPredictor

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

    @property
    def hops(self) -> int:
        """How far from a vertex its score reads."""
        from graphveil.learn.backbones import hops_of

        return hops_of(self.backbone) * (4 if self.network == "twice_as_deep" else 2)

    def randomizer(self, facts: PublicFacts, budget: float) -> Randomizer:
        """What every vertex does to its features; a method that does not read them asks for none."""
        raise InputError(f"{self.name} does not read features: say --features-epsilon withheld")

    def heard_rows(self, server: Server) -> Any:
        """The features as reported, or as they are if they are raw; one row for every slot."""
        from graphveil.methods.common.backbone_training import heard_rows

        rows = heard_rows(server)
        return rows if sp.issparse(rows) else np.asarray(rows, dtype=np.float32)

    @abstractmethod
    def inputs(self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
        """The columns the network sees, from reports and public edges; what training fixes is in ``kept``."""

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

    def train(self, server: Server) -> ReportGnnPredictor:
        from graphveil.methods.common.backbone_training import BackboneTraining, NoisyLabels
        from graphveil.methods.common.network_predictor import parts_in_the_clear
        from graphveil.methods.lga_pgnn.predictor import ReportGnnPredictor

        edges = server.raw_edges
        assert edges is not None  # any other promise was refused with the rounds
        rows, kept = self.heard_rows(server), Kept()
        inputs, build = self.prepared(rows, edges, kept, server.coins)
        server.tell("inputs", 1, 1)
        labels = NoisyLabels.heard(server)
        seed = int(server.coins.integers(2**31))
        best = BackboneTraining.of(self).start(server, inputs, edges, labels, seed, build).until(self.epochs)
        if not best.weights:
            raise InputError(f"{self.name} diverged on these reports: no epoch has a finite loss; lower learning_rate")
        facts = {"validation_loss": best.validation_loss, "epoch": best.epoch, "classes": server.facts.classes}
        unbounded = any(one.part is Part.FEATURES and one.randomizer.unbounded for one in server.rounds.values())
        found = ReportGnnPredictor(
            facts,
            options=self,
            weights=best.weights,
            rows=rows,
            edges=edges,
            kept=kept.arrays,
            clear=(*parts_in_the_clear(server.promise), *([Part.FEATURES.value] if unbounded else [])),
            random=not self.reads_features,
        )
        found.scores = best.scores  # what the network said of every slot in the epoch that was kept
        return found

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        from graphveil.methods.lga_pgnn.predictor import KIND, ReportGnnPredictor

        if config.get("kind") == KIND:
            return ReportGnnPredictor.restore(self, config, arrays)
        return super().restore(config, arrays)

    def prepared(
        self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None = None
    ) -> tuple[Array, Build]:
        """The inputs, and what builds the network that sees them."""
        from graphveil.learn import backbones

        return self.inputs(rows, edges, kept, coins), getattr(backbones, self.network)

    def reported_columns(self, rows: Any, kept: Kept, coins: np.random.Generator | None) -> Array:
        """The features as reported (or as they are, if they are raw), at most ``width`` columns of mean 0 and deviation 1."""
        return kept.standardised("columns", kept.columns(rows, self.width, coins))


class PiecewiseGnn(RangedMethod, ReportGnn):
    """The mean over neighbours, two graph layers and two dense layers; subclasses give the piecewise randomizer."""

    network = "with_dense_end"

    filled: Annotated[float, Range(0, 1, "(]")] = 0.05

    @property
    def hops(self) -> int:
        return 1 + super().hops

    def inputs(self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
        """Columns of mean 0 (so the factor d/m and the middle of the range do not matter), averaged by the private layer."""
        columns = self.reported_columns(rows, kept, coins)
        return kept.standardised("means", self.private_layer(columns, edges, kept, coins))

    def private_layer(self, columns: Array, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
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

    def private_layer(self, columns: Array, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None) -> Array:
        """The mean over a vertex, its neighbours and the further ones."""
        from graphveil.methods.lga_pgnn import augmentation

        few = kept.median_degree(edges, len(columns))
        if not self.augment:
            return augmentation.private_layer(edges, columns, self.samples, few=few)
        seed = kept.seed("augmentation_seed", coins)
        model = kept.network(
            "autoencoder",
            lambda: augmentation.train_auto_encoder(columns, edges, seed),
            lambda: augmentation.NeighbourAutoEncoder(columns.shape[1]),
        )
        low = augmentation.low_degree(edges, len(columns), few)
        sums = augmentation.sums_of_neighbours(model, columns[low], self.samples, seed)
        return augmentation.private_layer(edges, columns, self.samples, sums, few)
