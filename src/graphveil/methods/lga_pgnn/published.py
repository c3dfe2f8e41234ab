"""LGA-PGNN and LDP-GNN as published: attributes that are not chosen stay in the clear, neighbours are generated."""

from __future__ import annotations

import math
from typing import Literal

from graphveil.exchange.randomizers import PerDimension, Piecewise, Rest
from graphveil.methods.card import gaps
from graphveil.methods.lga_pgnn import LdpGnn, LgaPgnn
from graphveil.methods.lga_pgnn.report_gnn import Augmentation, PiecewiseGnn
from graphveil.methods.options import Count
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Part


class PublishedLdpGnn(PiecewiseGnn):
    """The piecewise mechanism on m of d attributes with values on -1..1 as printed; the others are not randomised.

    Args:
        reading: what becomes of attributes that are not chosen: ``raw`` (the printed results; no finite epsilon) or ``zero``
            (the proof).
        sampled: m, or ``paper`` (max(1, min(d, floor(epsilon/2.42)))) or ``argmin`` (of the variance).
        per_dimension: ``eps_over_m``, or ``eps`` as Algorithm 1 is printed (costs m epsilon).
        filled: a public guess of the share of attributes that are not zero; read by ``sampled="argmin"`` only.
    """

    card = LdpGnn.card
    gaps = gaps("ldp-gnn")

    reading: Literal["raw", "zero"] = "raw"
    sampled: Count | Literal["argmin", "paper"] = "paper"
    per_dimension: Literal["eps_over_m", "eps"] = "eps_over_m"
    mode: Literal["published"] = "published"

    def randomizer(self, facts: PublicFacts, budget: float) -> Piecewise:
        reach = max(abs(self.lower), abs(self.upper))
        rest, each = Rest(self.reading), PerDimension(self.per_dimension)
        return Piecewise(budget, facts.features, -reach, reach, self.sampled, self.filled, rest, each)

    def claimed(self, promise: Local) -> float | None:
        """The paper counts the features alone."""
        budget = promise.share(Part.FEATURES)
        return budget if math.isfinite(budget) else None


class PublishedLgaPgnn(Augmentation, PublishedLdpGnn):
    """LDP-GNN with S generated neighbours for every vertex below the median degree, drawn once."""

    card = LgaPgnn.card

    augment: bool = True
