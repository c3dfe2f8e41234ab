"""LGA-PGNN and LDP-GNN as published: attributes that are not chosen stay in the clear, neighbours are generated."""

from __future__ import annotations

import math
from typing import Literal

from graphveil.exchange.randomizers import PerDimension, Piecewise, Rest
from graphveil.methods.lga_pgnn import LdpGnn, LgaPgnn
from graphveil.methods.lga_pgnn.report_gnn import Augmentation, PiecewiseGnn
from graphveil.methods.options import Count
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Part
from graphveil.privacy.plan import Gap

GAPS = (
    Gap(
        "L1",
        "the printed density (11) has mass below 1 and a ratio of e^(1.5 epsilon); the mechanism it cites is drawn",
        check="ratio",
    ),
    Gap(
        "L2",
        "Algorithm 1 and Lemma 1 give each of m attributes the whole epsilon, m epsilon in all; the text says epsilon/m",
        check="ratio",
    ),
    Gap(
        "L3",
        "the printed results fit only the reading in which attributes that are not chosen are sent as they are "
        "(reading=raw): no finite epsilon, and any delta is at least 1 - m/d; the proof is for reading=zero",
        check="ratio",
    ),
    Gap(
        "L4",
        "edge-level privacy is claimed, but no mechanism touches the edges: they are sent in the clear",
        check="raw",
    ),
    Gap(
        "L5",
        "the paper sends labels in the clear; a label epsilon asked for here is this library's addition",
        check="raw",
    ),
    Gap(
        "L8",
        "the claim is for one vertex at one holder: v vertices cost v epsilon, a second collection again",
        check="unit",
    ),
    Gap(
        "L9", "the range must come from public bounds; scaling by the data's own extremes is not covered", check="range"
    ),
)


class PublishedLdpGnn(PiecewiseGnn):
    """The piecewise mechanism on m of d attributes with values on -1..1 as printed; the others are not randomised.

    Args:
        reading: what becomes of attributes that are not chosen: ``raw`` (the printed results; no finite epsilon) or ``zero``
            (the proof).
        sampled: m, or ``paper`` (max(1, min(d, floor(epsilon/2.42)))) or ``argmin`` (of the variance).
        per_dimension: ``eps_over_m``, or ``eps`` as Algorithm 1 is printed (costs m epsilon).
        filled: a public guess of the share of attributes that are not zero; read by ``sampled="argmin"`` only.
        others: as in sound mode.
    """

    card = LdpGnn.card
    gaps = GAPS

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
    """LDP-GNN with S generated neighbours for every vertex below the median degree, drawn once.

    Args:
        augment: generate neighbours; else take zero vectors.
        samples: S.
        others: as for ``ldp-gnn``.
    """

    card = LgaPgnn.card

    augment: bool = True
