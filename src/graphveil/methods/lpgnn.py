"""LPGNN (Sajadmanesh and Gatica-Perez 2021): multi-bit features, randomised labels, public edges; KProp and Drop."""

from __future__ import annotations

from typing import Any, Literal

from graphveil.errors import InputError
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.methods.card import card
from graphveil.methods.common.propagated_method import PropagatedMethod, PublishedPropagatedMethod
from graphveil.methods.common.reporting import Backbone
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness


class Lpgnn(PropagatedMethod):
    """Noisy features are averaged over the public graph (KProp), the loss knows the noise of the labels (Drop).

    p(y|x') = softmax(GNN(KProp(x'))), p(y'|x') = p(y|x') T, and with K_y > 0 both p(y'|x') and the one-hot reports are
    propagated K_y steps more: cross-entropy between softmax(KProp(p')) and argmax KProp(reports). The epoch is kept whose
    forward-corrected loss on the *released* validation labels is least; nothing here sees a clean label.

    Args:
        features: ``reports``, or ``random``: public random numbers in their place, while the promise withholds features; on
            public edges the network learns as much from these (the propagated noise says where in the graph one is).
    """

    card = card("lpgnn")

    backbone: Backbone = "sage"
    features: Literal["reports", "random"] = "reports"

    @property
    def reads_features(self) -> bool:
        return self.features == "reports"

    def rounds(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        found = super().rounds(facts, promise)
        if not self.reads_features and promise.features is not Openness.WITHHELD:
            raise InputError("lpgnn: features=random reads no features: say --features-epsilon withheld")
        return found

    def heard_rows(self, server: Server) -> Any:
        if self.reads_features:
            return super().heard_rows(server)
        return server.coins.standard_normal((server.facts.nodes, self.compress))


class PublishedLpgnn(PublishedPropagatedMethod):
    """Reports and KProp as in sound mode, the Drop loss; the claim needs nothing but public ranges, so the certificate holds."""

    card = Lpgnn.card

    backbone: Backbone = "sage"
