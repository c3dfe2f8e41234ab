"""LGA-PGNN and LDP-GNN as published: Algorithm 1 perturbs every attribute with epsilon, neighbours are generated every epoch."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphveil.exchange.randomizers import PerDimension, Piecewise, Rest
from graphveil.methods.card import gaps
from graphveil.methods.common.reporting import ALL_COLUMNS
from graphveil.methods.lga_pgnn import LdpGnn, LgaPgnn
from graphveil.methods.lga_pgnn.kept import Kept
from graphveil.methods.lga_pgnn.report_gnn import PiecewiseGnn
from graphveil.methods.options import Count, NonNegative
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Openness, Part
from graphveil.privacy.noise import Array
from graphveil.privacy.plan import Gap

if TYPE_CHECKING:
    from graphveil.methods.common.backbone_training import Build
    from graphveil.methods.lga_pgnn.private_layer import Neighbours

_, WHOLE_BUDGET_EACH, IN_THE_CLEAR, EDGES, LABELS, _, _ = gaps("ldp-gnn")


class PublishedLdpGnn(PiecewiseGnn):
    """The piecewise mechanism on -1..1, the private layer relu(W mean(x') + b), one graph layer and two dense layers.

    Args:
        reading: ``algorithm`` (Algorithm 1 as printed: every attribute, with epsilon each, so d epsilon in all), ``zero`` (the
            text and the proof: m of d with epsilon/m each, the others 0) or ``raw`` (what small m does in the figures: the others
            are sent as they are; no finite epsilon).
        sampled: m, ``all``, ``paper`` (max(1, min(d, floor(epsilon/2.42)))) or ``argmin`` (of the variance); default: as the
            reading says.
        per_dimension: ``eps_over_m`` or ``eps`` (costs m epsilon); default: as the reading says.
        standardise: whether the averaged columns get mean 0 and deviation 1; the paper does not.
        filled: a public guess of the share of attributes that are not zero; read by ``sampled="argmin"`` only.
    """

    card = LdpGnn.card
    gaps = gaps("ldp-gnn")

    reading: Literal["algorithm", "zero", "raw"] = "algorithm"
    sampled: Count | Literal["argmin", "paper", "all"] | None = None
    per_dimension: Literal["eps_over_m", "eps"] | None = None
    standardise: bool = False
    width: Count = ALL_COLUMNS
    weight_decay: NonNegative = 5e-3
    mode: Literal["published"] = "published"

    @property
    def hops(self) -> int:
        from graphveil.learn.backbones import hops_of

        return 1 + hops_of(self.backbone)

    def randomizer(self, facts: PublicFacts, budget: float) -> Piecewise:
        reach = max(abs(self.lower), abs(self.upper))
        printed = self.reading == "algorithm"
        sampled = self.sampled or ("all" if printed else "paper")
        each = PerDimension(self.per_dimension or ("eps" if printed else "eps_over_m"))
        rest = Rest.ZERO if self.reading == "zero" else Rest.RAW
        return Piecewise(budget, facts.features, -reach, reach, sampled, self.filled, rest, each)

    def claimed(self, promise: Local) -> float | None:
        """The paper counts the features alone."""
        budget = promise.share(Part.FEATURES)
        return budget if math.isfinite(budget) else None

    def known_gaps(self, facts: PublicFacts, promise: Local) -> tuple[Gap, ...]:
        """Those of this reading, and the two of all readings: edges are in the clear, and the claim leaves labels out.

        The others on the card are of the text alone: the density is not drawn as printed (L1), a certificate is for one vertex at
        one holder (L8), and the range is a public option (L9).
        """
        found = (EDGES, LABELS)
        if isinstance(promise.features, Openness):
            return found
        drawn = self.randomizer(facts, promise.share(Part.FEATURES))
        rest = (IN_THE_CLEAR,) if drawn.unbounded else ()
        each = (WHOLE_BUDGET_EACH,) if drawn.m > 1 and drawn.per_dimension is PerDimension.WHOLE else ()
        return each + rest + found

    def prepared(
        self, rows: Any, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None = None
    ) -> tuple[Array, Build]:
        from graphveil.learn.backbones import with_private_layer
        from graphveil.methods.lga_pgnn.augmentation import private_layer
        from graphveil.methods.lga_pgnn.private_layer import PrivateLayer

        columns = kept.columns(rows, self.width, coins)
        if self.standardise:
            columns = kept.standardised("columns", columns)
        layer = partial(PrivateLayer, neighbours=self.neighbours(columns, edges, kept, coins))
        return private_layer(edges, columns), partial(with_private_layer, layer)

    def neighbours(
        self, columns: Array, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None
    ) -> Neighbours | None:
        """Further neighbours of vertices with few; LDP-GNN has none."""
        return None


class PublishedLgaPgnn(PublishedLdpGnn):
    """LDP-GNN with S generated neighbours for every vertex below the median degree, drawn anew in every epoch.

    Args:
        generate: ``encoder`` (eq. 13-14: the mean of the vertex and a sampled neighbour goes through the encoder) or ``prior`` (z
            is drawn from its prior, as local augmentation does it).
        samples: S, how many (the mean is divided by degree + 1 + S).
        augment: false leaves the further neighbours zero vectors.
    """

    card = LgaPgnn.card

    generate: Literal["encoder", "prior"] = "encoder"
    samples: Count = 10
    augment: bool = True

    def neighbours(
        self, columns: Array, edges: np.ndarray, kept: Kept, coins: np.random.Generator | None
    ) -> Neighbours | None:
        from graphveil.methods.lga_pgnn import augmentation
        from graphveil.methods.lga_pgnn.private_layer import Neighbours

        seed, few = kept.seed("augmentation_seed", coins), kept.median_degree(edges, len(columns))
        model = None
        if self.augment:
            model = kept.network(
                "autoencoder",
                lambda: augmentation.train_auto_encoder(columns, edges, seed),
                lambda: augmentation.NeighbourAutoEncoder(columns.shape[1]),
            )
        return Neighbours(model, columns, edges, self.samples, seed, encode=self.generate == "encoder", few=few)
