"""What sound DPAR releases: a mean or a table, private rows, and gradients; and the lemmas behind their noise.

A person can move all M rows, but rows are clipped as a whole. gm: one Gaussian of Frobenius sensitivity sqrt(2M) C1, since
non-negative rows of norm C1 are at most sqrt 2 C1 apart. em: rho = M K eps^2/2. Given the rows, a person owns one example and
visits at most s others, so a gradient sum changes in s + 1 examples of which s stay (Lemma G; in full batches 2 s + 1 clips);
with identity rows s = 0. Shares are parts of mu^2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.own_predictor import GROWTH
from graphveil.methods.common.private_training import group_release
from graphveil.methods.dpar.rows import shares_of
from graphveil.methods.options import Count, Options, Positive, Share
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian, GumbelTop, Mechanism
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Promise, Relation


class Ranking(Options):
    """How rows are chosen in either mode, and the public sizes that follow.

    Args:
        select: ``gm``, ``em0`` or ``em1``.
        rows: ``private`` (the method), or an ablation: ``identity`` (only the source itself), ``random`` (public coins).
        sources, picks: M and K.
        row_clip, entry_clip: C1 and C2.
        pagerank, teleport, rho: ``ista`` or ``push``, alpha, regularisation (push: threshold).
        inductive: train on the graph among training and calibration nodes only.
    """

    select: Literal["gm", "em0", "em1"] = "gm"
    rows: Literal["private", "identity", "random"] = "private"
    sources: Count = 70
    picks: Count = 2
    row_clip: Positive = 0.01
    entry_clip: Positive = 0.001
    pagerank: Literal["ista", "push"] = "ista"
    teleport: Share = 0.25
    rho: Positive = 1e-4
    inductive: bool = True

    def source_count(self, facts: PublicFacts) -> int:
        """M, at most all training slots."""
        return max(1, min(self.sources, facts.count("train")))

    def candidates(self, facts: PublicFacts) -> int:
        """How many slots can be picked: all, or those the inductive training graph consists of."""
        return facts.count("train") + facts.count("calibration") if self.inductive else facts.nodes

    def picks_of(self, facts: PublicFacts) -> int:
        """K, at most all candidates."""
        return min(self.picks, self.candidates(facts))

    def weights(self, values: np.ndarray) -> np.ndarray:
        """The weights of Pi that noisy values stand for."""
        return shares_of(values)

    @property
    def stopping(self) -> dict[str, Any]:
        """When ISTA stops: by default at the optimum."""
        return {}

    def slots(self, masks: Mapping[str, np.ndarray]) -> np.ndarray:
        """The public slots among which PageRank runs, as a mask."""
        return np.asarray(masks["train"] | masks["calibration"] if self.inductive else np.ones_like(masks["train"]))


def row_releases(ranking: Ranking, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
    """The private choice of rows, for mu."""
    m, k, candidates = ranking.source_count(facts), ranking.picks_of(facts), ranking.candidates(facts)
    if ranking.select == "gm":
        bound = math.sqrt(2 * m) * ranking.row_clip
        lemma = "non-negative rows of norm C1 are at most sqrt 2 C1 apart, whatever happens to the graph; M of them"
        noise = _gaussian(promise, bound, mu, m * candidates)
        return (Release("pagerank", noise, payers(facts, promise, bound), lemma),)
    each = mu / math.sqrt(2 if ranking.select == "em1" else 1)
    lemma = "entries lie in [0, C2]; M K choices with range 2 C2/scale each"
    picking: Mechanism = Exact()
    if promise.private:
        picking = GumbelTop.for_mu(ranking.entry_clip, each, k, m, candidates)
    picks = Release("pagerank", picking, payers(facts, promise, ranking.entry_clip), lemma)
    if ranking.select == "em0":
        return (picks,)
    bound = math.sqrt(m * k) * ranking.entry_clip
    noise = _gaussian(promise, bound, each, m * k)
    return picks, Release("weights", noise, payers(facts, promise, bound), "M K entries in [0, C2]")


def table_release(size: int, column_norm: float, facts: PublicFacts, promise: Promise, mu: float) -> Release:
    """``Pi X`` of ``size`` numbers, for mu."""
    bound = column_norm * (2 if promise.relation is Relation.REPLACE else 1) * (1 + 1e-9)
    lemma = "a unit row travels with a column of Pi of norm at most tau"
    return Release("table", _gaussian(promise, bound, mu, size), payers(facts, promise, bound), lemma)


def visited_gradients(
    entries: int,
    visits: int,
    facts: PublicFacts,
    promise: Promise,
    mu: float,
    *,
    steps: int,
    batch_size: int | None,
    clip: float,
) -> Release:
    """Gradients on all training slots, of which a person visits ``visits`` besides the own; ``entries`` of Pi are private."""
    examples = max(1, facts.count("train"))
    stay = visits + 1 if promise.relation is Relation.REPLACE else visits
    return group_release(
        "gradient",
        promise,
        payers(facts, promise, clip),
        (facts.features + 1) * facts.classes,
        group=(visits + 1, stay),
        # A number of the gradient is a sum over at most this many entries of Pi, of which ``examples`` have the norm of a clip;
        # so examples (entries + 4) <= entries (entries + 2), the roundings of both products and of the centre included.
        records=examples + entries + visits,
        steps=steps,
        rate=min(1.0, (batch_size or examples) / examples),
        clip=clip,
        mu=mu,
        lemma="Lemma G: a person owns one example and visits at most s others",
        growth=GROWTH,
    )


def _gaussian(promise: Promise, bound: float, mu: float, size: int) -> Mechanism:
    return Gaussian.for_mu(bound, mu, size) if promise.private else Exact()
