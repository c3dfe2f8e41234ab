"""LPGNN and the methods that add private contact lists to it: multi-bit features, k-RR labels, edges as each asks for them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphveil.errors import InputError
from graphveil.exchange.randomizers import MultiBit
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.round import Round, vertex_rounds
from graphveil.exchange.server import Server
from graphveil.methods.common.reporting import ALL_COLUMNS, PropagationOptions
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.methods.local_method import RangedMethod
from graphveil.methods.model import Predictor
from graphveil.methods.options import Count
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.plan import Gap

if TYPE_CHECKING:
    from graphveil.methods.common.backbone_training import NoisyLabels
    from graphveil.methods.common.propagated_training import PropagatedTraining


class PropagatedMethod(PropagationOptions, RangedMethod):
    """On raw edges every subclass is LPGNN; those that take private ones say what they ask, and learn from the answers."""

    @property
    def reads_features(self) -> bool:
        return True

    def rounds_on_lists(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        """What is asked about edges that are not raw."""
        raise InputError(
            f"{self.name} sends edges in the clear: say --edges-epsilon raw, or use 'local' or 'graph-privatizer'"
        )

    def reported_lists(self, server: Server, rows: Any) -> Contacts:
        """The answers to it; ``rows`` are the feature reports. Whoever asks nothing about lists has none."""
        raise InputError(f"{self.name} asks for no lists: say --edges-epsilon raw")

    def learn_from_lists(
        self, training: PropagatedTraining, server: Server, rows: Any, labels: NoisyLabels
    ) -> ScoresPredictor:
        """LPGNN on the graph of reported lists."""
        return training.learn(server, rows, labels, self.reported_lists(server, rows).arcs)

    def rounds(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        asked = () if promise.edges is Openness.RAW else self.rounds_on_lists(facts, promise)
        if promise.labels is Openness.WITHHELD or (self.reads_features and promise.features is Openness.WITHHELD):
            raise InputError(f"{self.name} needs features and labels: give each an epsilon (or raw)")
        return (*vertex_rounds(promise, facts.classes, partial(self.randomizer, facts)), *asked)

    def randomizer(self, facts: PublicFacts, budget: float) -> MultiBit:
        """What every vertex does to its features."""
        return MultiBit(budget, facts.features, self.lower, self.upper)

    def list_budget(self, promise: Local) -> float:
        """The epsilon of contact lists; to withhold them is refused."""
        if promise.edges is Openness.WITHHELD:
            raise InputError(f"{self.name} needs edges: give --edges-epsilon an epsilon (or raw)")
        return promise.share(Part.EDGES)

    def known_gaps(self, facts: PublicFacts, promise: Local) -> tuple[Gap, ...]:
        """All of them are about private edges."""
        return () if promise.edges is Openness.RAW else super().known_gaps(facts, promise)

    def heard_rows(self, server: Server) -> Any:
        """The rows to propagate."""
        from graphveil.methods.common.backbone_training import heard_rows

        return heard_rows(server)

    def train(self, server: Server) -> Predictor:
        from graphveil.methods.common.backbone_training import NoisyLabels
        from graphveil.methods.common.propagated_training import PropagatedTraining

        training = PropagatedTraining.of(self)
        rows, labels = self.heard_rows(server), NoisyLabels.heard(server)
        if server.raw_edges is None:
            return self.learn_from_lists(training, server, rows, labels)
        return training.network(server, rows, labels, server.raw_edges, random=not self.reads_features)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        from graphveil.methods.common.network_predictor import KIND, NetworkPredictor

        if config.get("kind") == KIND:
            return NetworkPredictor.restore(self, config, arrays)
        return super().restore(config, arrays)


class PublishedPropagatedMethod(PropagatedMethod):
    """As the papers and their released code train: rectified reports as they are, KProp along the arcs, Drop, LPGNN's epoch.

    Args:
        keep: the epoch: ``lpgnn`` (the last that lowered the loss and raised both accuracies on released labels, none above what
            the noise of the labels allows) or ``loss`` (least loss on released validation labels).
    """

    hidden: Count = 16
    loss: Literal["drop", "forward", "plain"] = "drop"
    keep: Literal["lpgnn", "loss"] = "lpgnn"
    compress: Count = ALL_COLUMNS
    mode: Literal["published"] = "published"

    def train(self, server: Server) -> Predictor:
        from graphveil.methods.common.backbone_training import NoisyLabels
        from graphveil.methods.common.lpgnn_training import LpgnnTraining

        rows, labels = self.heard_rows(server), NoisyLabels.heard(server)
        arcs = self.arcs(server, rows) if server.raw_edges is None else server.raw_edges
        return LpgnnTraining.of(self).learn(server, rows, labels, arcs)

    def restore(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Predictor:
        from graphveil.methods.common.published_network import KIND, PublishedNetwork

        if config.get("kind") == KIND:
            return PublishedNetwork.restore(self, config, arrays)
        return super().restore(config, arrays)

    def arcs(self, server: Server, rows: Any) -> np.ndarray:
        """Who hears whom, of the reported lists."""
        return self.reported_lists(server, rows).arcs


class PublishedListMethod(PublishedPropagatedMethod):
    """Published methods that report contact lists.

    Args:
        reading: ``code`` (the released code: an owner is heard by the contacts of its list, and a contact that is named twice
            counts once), ``text`` (everybody hears the contacts of their own list, as often as they are named, so its length
            is what it was) or ``listening`` (as ``code``, but everybody hears the contacts of their own list).
    """

    reading: Literal["code", "text", "listening"] = "code"

    def arcs(self, server: Server, rows: Any) -> np.ndarray:
        lists = self.reported_lists(server, rows)
        pairs = np.stack([lists.targets, lists.owners])
        if self.reading == "text":
            return pairs
        return np.unique(pairs[::-1] if self.reading == "code" else pairs, axis=1)
