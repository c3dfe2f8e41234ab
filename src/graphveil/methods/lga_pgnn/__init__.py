"""LGA-PGNN (IEEE TIFS 2023): piecewise features, augmented neighbourhoods, a private mean layer; LDP-GNN: no augmentation.

Tests: ``tests/methods/test_lga_pgnn.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from graphveil.errors import InputError
from graphveil.exchange.randomizers import PerDimension, Piecewise, Rest
from graphveil.exchange.randomizers.piecewise import least_noisy_range
from graphveil.exchange.server import Server as Session
from graphveil.methods.card import Card
from graphveil.methods.common.backbone_training import dense_columns, standardised
from graphveil.methods.lga_pgnn.report_gnn import ReportGnn, baseline_card
from graphveil.methods.options import Count, NonNegative
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.local import Local, Part
from graphveil.privacy.noise import Array
from graphveil.privacy.plan import Gap

if TYPE_CHECKING:
    import numpy as np

    from graphveil.methods.lga_pgnn.report_gnn import Build

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


class LdpGnn(ReportGnn):
    """The piecewise mechanism on m of d attributes, the mean over neighbours, two graph layers and two dense layers.

    Sound: the attributes that are not chosen are 0 (``reading="zero"``), m is the argmin of the variance. Published: they stay
    in the clear (``reading="raw"``, no finite epsilon), m = max(1, min(d, floor(epsilon/2.42))), values on -1..1 as printed.

    Args:
        reading: ``zero`` or ``raw``; null: zero in sound mode, raw in published mode.
        sampled: m, or ``argmin`` or ``paper``; null: argmin in sound mode, paper in published mode.
        per_dimension: ``eps_over_m``, or ``eps`` as Algorithm 1 is printed (published mode only: costs m epsilon).
        lower, upper: the public range of every attribute.
        filled: a public guess of the share of attributes that are not zero; it only chooses m and the middle of the range.
        backbone: gcn, sage, gat, gatv2, transformer, graphconv, cheb, sgc or tag.
        width: more columns than these are multiplied by a public random matrix (post-processing: speed).
        loss: ``forward`` (knows the noise of the labels) or ``plain``.
        hidden, epochs, learning_rate, weight_decay, dropout: of training.
        mode: ``sound`` or ``published``.
    """

    card = baseline_card(
        "ldp-gnn",
        "lga-pgnn without augmentation: piecewise features, mean over neighbours, a graph network",
        "features and label of one vertex (reading=zero)",
        "GNN(mean over N(v) and v of (d/m) piecewise(x, epsilon/m))",
    )
    gaps = GAPS

    reading: Literal["zero", "raw"] | None = None
    sampled: Count | Literal["argmin", "paper"] | None = None
    per_dimension: Literal["eps_over_m", "eps"] = "eps_over_m"
    lower: NonNegative = 0.0
    upper: NonNegative = 1.0
    filled: NonNegative = 0.05
    mode: Literal["sound", "published"] = "sound"

    def check(self) -> None:
        super().check()
        if self.reading not in (None, *Rest):
            raise InputError(f"{self.name}: reading is {' or '.join(Rest)}, got {self.reading!r}")
        if isinstance(self.sampled, str) and self.sampled not in ("argmin", "paper"):
            raise InputError(f"{self.name}: sampled is a number of attributes, argmin or paper, got {self.sampled!r}")
        if self.per_dimension not in tuple(PerDimension):
            raise InputError(f"{self.name}: per_dimension is {' or '.join(PerDimension)}, got {self.per_dimension!r}")
        if self.mode == "sound" and self.reading == Rest.RAW:
            raise InputError(
                f"{self.name}: reading=raw sends attributes in the clear, so no epsilon holds; it needs --mode published"
            )
        if self.mode == "sound" and self.per_dimension == PerDimension.WHOLE:
            raise InputError(
                f"{self.name}: per_dimension=eps costs m times the epsilon asked for; it needs --mode published"
            )
        if not self.lower < self.upper:
            raise InputError(f"{self.name}: the public range {self.lower:g}..{self.upper:g} is empty")
        if not 0 < self.filled <= 1:
            raise InputError(f"{self.name}: filled is a share above 0 and at most 1, got {self.filled:g}")

    def randomizer(self, facts: PublicFacts, budget: float) -> Piecewise:
        published = self.mode == "published"
        rest = Rest(self.reading) if self.reading else Rest.RAW if published else Rest.ZERO
        sampled = self.sampled or ("paper" if published else "argmin")
        reach = max(abs(self.lower), abs(self.upper))
        found = least_noisy_range(budget, facts.features, self.lower, self.upper, self.filled)
        lower, upper, second_moment = (-reach, reach, self.filled) if published else found
        return Piecewise(
            budget, facts.features, lower, upper, sampled, second_moment, rest, PerDimension(self.per_dimension)
        )

    def public_statements(self, promise: Local) -> tuple[str, ...]:
        span = (
            f"every attribute lies in {self.lower:g}..{self.upper:g}; values outside are clipped before they are sent"
        )
        return (*super().public_statements(promise), span)

    def claimed(self, promise: Local) -> float | None:
        """The paper counts the features alone."""
        budget = promise.share(Part.FEATURES)
        return budget if math.isfinite(budget) else None

    def inputs(self, session: Session) -> Array:
        """Columns of mean 0 (so the factor d/m and the middle of the range do not matter), averaged by the private layer."""
        columns = standardised(dense_columns(self.reported_rows(session), self.width, session.coins))
        return standardised(self.private_layer(session, columns))

    def private_layer(self, session: Session, columns: Array) -> Array:
        from graphveil.methods.lga_pgnn.augmentation import private_layer

        return private_layer(session.raw_edges, columns)

    def network(self) -> Build:
        from graphveil.learn.networks import with_dense_end

        return with_dense_end


class LgaPgnn(LdpGnn):
    """LDP-GNN with augmented neighbourhoods for vertices below the median degree.

    Published: S neighbours generated by a conditional auto-encoder, once. Sound: S zero vectors (``shrink``), which do as well.

    Args:
        augment: whether neighbours are generated; null: in published mode, unless ``shrink`` is given.
        samples: S, generated neighbours of each such vertex.
        shrink: S, zero vectors instead (the mean is divided by degree + 1 + S); null: 10 where nothing is generated.
        reading, sampled, per_dimension, lower, upper, filled: of the piecewise mechanism, as for ``ldp-gnn``.
        backbone, width, loss, hidden, epochs, learning_rate, weight_decay, dropout: of training, as for ``ldp-gnn``.
        mode: ``sound`` or ``published``.
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

    augment: bool | None = None
    samples: Count = 10
    shrink: Count | None = None

    def check(self) -> None:
        super().check()
        if self.augment and self.shrink is not None:
            raise InputError("lga-pgnn: augment and shrink are two ways to fill up a neighbourhood: choose one")

    @property
    def generates(self) -> bool:
        """Whether neighbours are generated, or zero vectors are taken."""
        return self.mode == "published" and self.shrink is None if self.augment is None else self.augment

    def private_layer(self, session: Session, columns: Array) -> Array:
        from graphveil.methods.lga_pgnn import augmentation

        edges: np.ndarray = session.raw_edges
        if not self.generates:
            return augmentation.private_layer(edges, columns, self.shrink or 10)
        seed = int(session.coins.integers(2**31))
        model = augmentation.train_auto_encoder(columns, edges, seed)
        session.tell("auto-encoder", 1, 1)
        low = augmentation.low_degree(edges, len(columns))
        sums = augmentation.generated_sums(model, columns[low], self.samples, seed)
        return augmentation.private_layer(edges, columns, self.samples, sums)
