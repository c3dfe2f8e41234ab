"""LGA-PGNN (IEEE TIFS 2023): piecewise features, augmented neighbourhoods, a private mean layer; LDP-GNN: no augmentation.

Tests: ``tests/methods/test_lga_pgnn.py``.
"""

from __future__ import annotations

from typing import Literal

from graphveil.exchange.randomizers import Piecewise
from graphveil.exchange.randomizers.piecewise import least_noisy_range
from graphveil.methods.card import Card
from graphveil.methods.lga_pgnn.report_gnn import Augmentation, PiecewiseGnn, baseline_card
from graphveil.methods.options import Count
from graphveil.privacy.facts import PublicFacts


class LdpGnn(PiecewiseGnn):
    """The piecewise mechanism on m of d attributes, the mean over neighbours, two graph layers and two dense layers.

    Attributes that are not chosen are sent as 0.

    Args:
        sampled: m, or ``argmin`` (of the variance) or ``paper``: max(1, min(d, floor(epsilon/2.42))).
        lower, upper: the public range of every attribute.
        filled: a public guess of the share of attributes that are not zero; it only chooses m and the middle of the range.
        others: of :class:`ReportGnn`.
    """

    card = baseline_card(
        "ldp-gnn",
        "lga-pgnn without augmentation: piecewise features, mean over neighbours, a graph network",
        "features and label of one vertex (reading=zero)",
        "GNN(mean over N(v) and v of (d/m) piecewise(x, epsilon/m))",
    )

    sampled: Count | Literal["argmin", "paper"] = "argmin"

    def randomizer(self, facts: PublicFacts, budget: float) -> Piecewise:
        lower, upper, second_moment = least_noisy_range(budget, facts.features, self.lower, self.upper, self.filled)
        return Piecewise(budget, facts.features, lower, upper, self.sampled, second_moment)


class LgaPgnn(Augmentation, LdpGnn):
    """LDP-GNN with augmented neighbourhoods for vertices below the median degree.

    The further neighbours are zero vectors, which do as well as generated ones.

    Args:
        augment: generate neighbours by a conditional auto-encoder, as published, instead of zero vectors.
        samples: S, further neighbours of each such vertex (the mean is divided by degree + 1 + S).
        others: as for ``ldp-gnn``.
    """

    card = Card(
        name="lga-pgnn",
        summary="piecewise features, augmented neighbourhoods of low-degree vertices, a private mean layer and a graph network",
        paper="LGA-PGNN (IEEE TIFS 2023)",
        trust="nobody for features and labels; edges are sent in the clear",
        protects="features and label of one vertex (reading=zero); published mode protects nothing",
        public="edges (raw), the range of the attributes, who is labelled",
        formula="GNN((x'_v + sum of x'_u over N(v) + S further rows) / (degree + 1 + S)), x' = (d/m) piecewise(x, epsilon/m)",
        when="to compare with the paper; 'local' is more accurate and needs no features",
    )
