"""GraphPrivatizer (paper 004): LPGNN whose contact lists are randomised, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from graphveil.errors import InputError
from graphveil.exchange.randomizers import BucketResponse, NeighbourMean
from graphveil.exchange.randomizers.base import Randomizer
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.methods.card import card
from graphveil.methods.common.propagated_method import PropagatedMethod
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import DEGREES, OWNERS, Local, Openness, Part

if TYPE_CHECKING:
    from graphveil.methods.common.backbone_training import NoisyLabels
    from graphveil.methods.common.propagated_training import PropagatedTraining

RELEASED, INFERRED = "the released labels", "the classes inferred from earlier rounds"


class GraphPrivatizer(PropagatedMethod):
    """Contacts are replaced by similar vertices; features by the multi-bit mechanism, labels by k-RR.

    Who is similar is decided by public buckets, made of released labels only; the owner of an edge reports the bucket of its
    contact by k-RR and then any member. With raw edges this is LPGNN.

    Args:
        mechanism: ``bucket``, ``krr`` (every slot is a bucket) or ``mean`` (the noisy mean of the released labels of one's
            contacts; needs a delta).
        edge_rounds: 1, or 2: half of the edge budget again on buckets (or rows) that were inferred from the first round.
    """

    card = card("graph-privatizer")

    mechanism: Literal["bucket", "krr", "mean"] = "bucket"
    edge_rounds: Literal[1, 2] = 1

    def check(self) -> None:
        super().check()
        if self.mechanism == "krr" and self.edge_rounds > 1:
            raise InputError("graph-privatizer: mechanism krr has one round, use edge_rounds=1")

    def rounds_on_lists(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        """At most the promised epsilon for one edge; the first of two rounds may hear one more bucket, 'no label'."""
        share, owned = self.list_budget(promise) / self.edge_rounds, not facts.directed
        if self.mechanism == "krr":
            return (Round("edges", Part.EDGES, BucketResponse(share, facts.nodes, owned=owned), "the public slots"),)
        if self.mechanism == "mean" and not promise.target_delta > 0:
            raise InputError("mechanism mean adds Gaussian noise and needs a delta: say --delta 1e-6")
        delta = promise.target_delta / self.edge_rounds
        unlabelled = facts.nodes > facts.count("train") + facts.count("calibration")
        asked = (("edges", facts.classes + unlabelled, RELEASED), ("edges-2", facts.classes, INFERRED))

        def response(bins: int) -> Randomizer:
            mean = self.mechanism == "mean"
            return NeighbourMean(share, bins, delta) if mean else BucketResponse(share, bins, owned)

        return tuple(Round(name, Part.EDGES, response(bins), heard) for name, bins, heard in asked[: self.edge_rounds])

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        found = super().public_statements(promise)
        if promise.edges is Openness.RAW:
            return found
        return (*found, DEGREES) if self.mechanism == "mean" else (*found, DEGREES, OWNERS)

    def learn_from_lists(
        self, training: PropagatedTraining, server: Server, rows: Any, labels: NoisyLabels
    ) -> ScoresPredictor:
        from graphveil.methods.graph_privatizer.algorithm import learn

        return learn(training, server, self.mechanism, rows, labels)
