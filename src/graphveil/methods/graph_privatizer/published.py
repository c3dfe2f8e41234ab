"""GraphPrivatizer as published: the experimenter replaces neighbours with everybody's lists at hand, and LPGNN learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.randomizers.replacement import Metric, NeighbourReplacement, Reading, Strategy
from graphveil.exchange.round import Round
from graphveil.exchange.server import Server
from graphveil.methods.card import gaps
from graphveil.methods.common.propagated_method import PublishedListMethod
from graphveil.methods.graph_privatizer import GraphPrivatizer
from graphveil.methods.options import NonNegative, Range
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import DEGREES, Local, Openness, Part
from graphveil.privacy.plan import Gap

NORMALISERS = "G2"


class PublishedGraphPrivatizer(PublishedListMethod):
    """Contact u of v becomes u' among u's own contacts that are similar to u in the rectified noisy features,

        P(u -> u) = e^eps/(e^eps + d - 1),   P(u -> u') = 1/(e^eps + d - 1),

    where candidates are all such contacts (``strategy="t"``) or the most similar one (``"m"``). This reads other people's
    lists, so no client runs it, and it has no finite epsilon. With raw edges this is LPGNN as published.

    Args:
        reading: ``listening`` (v hears the contacts it reports, which comes nearest to print), ``code`` (the released code: v is
            heard by them) or ``text`` (equations (3) and (4), and v hears the contacts it reports as often as they were drawn, so
            out-degrees stay). Under the first two a true contact that comes later in the list takes back an equal replacement
            (:class:`NeighbourReplacement`).
        metric: ``cosine``, ``euclidean`` (1 - |x - y|/(|x| + |y|): 1 for equal rows, 0.29 for equally long ones that share
            nothing, 0 for opposite ones; no constant, so nothing is learnt from the data) or ``distance`` (the released code's
            Euclidean: |x - y| itself must exceed the threshold, so that the least similar pass; on Cora it is 90 and more).
        alpha, threshold: of the similarity; the paper's alpha = 0 is alpha = 1 in the formula of the released code.
    """

    card = GraphPrivatizer.card
    gaps = gaps("graph-privatizer")
    reads_everybody = True

    reading: Literal["code", "text", "listening"] = "listening"
    strategy: Literal["t", "m"] = "t"
    metric: Literal["cosine", "euclidean", "distance"] = "cosine"
    alpha: Annotated[float, Range(0, 1)] = 0.0
    threshold: NonNegative = 0.0

    def rounds_on_lists(self, facts: PublicFacts, promise: Local) -> tuple[Round, ...]:
        replacement = NeighbourReplacement(
            self.list_budget(promise),
            None,
            Strategy(self.strategy),
            Metric(self.metric),
            self.alpha,
            self.threshold,
            Reading.TEXT if self.reading == "text" else Reading.CODE,
        )
        if promise.features is not Openness.RAW and promise.features is not Openness.WITHHELD:
            bits = self.randomizer(facts, promise.share(Part.FEATURES))
            replacement = replace(replacement, scale=bits.scale, shift=bits.middle)
        return (Round("edges", Part.EDGES, replacement, "the noisy features and other people's lists"),)

    def known_gaps(self, facts: PublicFacts, promise: Local) -> tuple[Gap, ...]:
        """Under ``strategy="m"`` there is one candidate or none (G3), so normalisers do not differ otherwise."""
        found = super().known_gaps(facts, promise)
        return tuple(gap for gap in found if gap.code != NORMALISERS) if self.strategy == "m" else found

    def claimed(self, promise: Local) -> float:
        """Theorem 4.4: the sum of the three; raw edges are not counted."""
        return promise.epsilon

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        found = super().public_statements(promise)
        return found if promise.edges is Openness.RAW else (*found, DEGREES)

    def reported_lists(self, server: Server, rows: Any) -> Contacts:
        return server.ask_everybody("edges", rows)
