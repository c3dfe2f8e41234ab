"""LGA-PGNN (IEEE TIFS 2023): piecewise features, augmented neighbourhoods, a private mean layer; LDP-GNN: no augmentation.

Tests: ``tests/methods/test_lga_pgnn.py``.
"""

from __future__ import annotations

from typing import Literal

from graphveil.exchange.randomizers import Piecewise
from graphveil.exchange.randomizers.piecewise import least_noisy_range
from graphveil.methods.card import card
from graphveil.methods.lga_pgnn.report_gnn import Augmentation, PiecewiseGnn
from graphveil.methods.options import Count
from graphveil.privacy.facts import PublicFacts


class LdpGnn(PiecewiseGnn):
    """The piecewise mechanism on m of d attributes, the mean over neighbours, two graph layers and two dense layers.

    Attributes that are not chosen are sent as 0.

    Args:
        sampled: m, or ``argmin`` (of the variance) or ``paper``: max(1, min(d, floor(epsilon/2.42))).
        filled: a public guess of the share of attributes that are not zero; it only chooses m and the middle of the range.
    """

    card = card("ldp-gnn")

    sampled: Count | Literal["argmin", "paper"] = "argmin"

    def randomizer(self, facts: PublicFacts, budget: float) -> Piecewise:
        lower, upper, second_moment = least_noisy_range(budget, facts.features, self.lower, self.upper, self.filled)
        return Piecewise(budget, facts.features, lower, upper, self.sampled, second_moment)


class LgaPgnn(Augmentation, LdpGnn):
    """LDP-GNN with augmented neighbourhoods for vertices below the median degree.

    The further neighbours are zero vectors, which do as well as generated ones.
    """

    card = card("lga-pgnn")
