"""What sound DPAR releases: a mean or a table, private rows, and gradients; and the lemmas behind their noise.

A person can move all M rows, but rows are clipped as a whole. gm: one Gaussian of Frobenius sensitivity sqrt(2M) C1, since
non-negative rows of norm C1 are at most sqrt 2 C1 apart. em: rho = M K eps^2/2. Given the rows, a person owns one example and
visits at most s others, so a gradient sum changes in s + 1 examples of which s stay (Lemma G; in full batches 2 s + 1 clips);
with identity rows s = 0. Shares are parts of mu^2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphveil.methods.common.group_training import group_release
from graphveil.methods.common.own_predictor import GROWTH
from graphveil.methods.common.settings import Settings
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import DpGradient, Exact, Gaussian, GumbelTop, Mechanism
from graphveil.privacy.noise import summation_error
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Promise, Relation


@dataclass(frozen=True)
class Ranking(Settings):
    """How rows are chosen in either mode, and the public sizes that follow."""

    select: str
    rows: str
    sources: int
    picks: int
    row_clip: float
    entry_clip: float
    pagerank: str
    teleport: float
    rho: float
    inductive: bool

    def source_count(self, facts: PublicFacts) -> int:
        """M, at most all training slots."""
        return max(1, min(self.sources, facts.count("train")))

    def candidates(self, facts: PublicFacts) -> int:
        """How many slots can be picked: all, or those the inductive training graph consists of."""
        return facts.count("train") + facts.count("calibration") if self.inductive else facts.nodes

    def picks_of(self, facts: PublicFacts) -> int:
        """K, at most all candidates."""
        return min(self.picks, self.candidates(facts))

    def slots(self, masks: Mapping[str, np.ndarray]) -> np.ndarray:
        """The public slots among which PageRank runs, as a mask."""
        inside: np.ndarray = masks["train"] | masks["calibration"] if self.inductive else np.ones_like(masks["train"])
        return inside


def everybody(facts: PublicFacts, bound: float) -> dict[str, float]:
    """The same bound for every kind of record there is."""
    return dict.fromkeys((kind for kind, n in facts.kinds.items() if n), bound)


def row_releases(ranking: Ranking, facts: PublicFacts, promise: Promise, mu: float) -> tuple[Release, ...]:
    """The private choice of rows, for mu."""
    m, k, candidates = ranking.source_count(facts), ranking.picks_of(facts), ranking.candidates(facts)
    if ranking.select == "gm":
        bound = math.sqrt(2 * m) * ranking.row_clip
        lemma = "non-negative rows of norm C1 are at most sqrt 2 C1 apart, whatever happens to the graph; M of them"
        return (Release("pagerank", _gaussian(promise, bound, mu, m * candidates), everybody(facts, bound), lemma),)
    each = mu / math.sqrt(2 if ranking.select == "em1" else 1)
    lemma = "entries lie in [0, C2]; M K choices with range 2 C2/scale each"
    picking: Mechanism = Exact()
    if promise.private:
        picking = GumbelTop(ranking.entry_clip * math.sqrt(m * k) / each, k, m, candidates)
    picks = Release("pagerank", picking, everybody(facts, ranking.entry_clip), lemma)
    if ranking.select == "em0":
        return (picks,)
    bound = math.sqrt(m * k) * ranking.entry_clip
    noise = _gaussian(promise, bound, each, m * k)
    return picks, Release("weights", noise, everybody(facts, bound), "M K entries in [0, C2]")


def table_release(size: int, column_norm: float, facts: PublicFacts, promise: Promise, mu: float) -> Release:
    """``Pi X`` of ``size`` numbers, for mu."""
    bound = column_norm * (2 if promise.relation is Relation.REPLACE else 1) * (1 + 1e-9)
    lemma = "a unit row travels with a column of Pi of norm at most tau"
    return Release("table", _gaussian(promise, bound, mu, size), everybody(facts, bound), lemma)


def row_gradients(m: int, size: int, steps: int, clip: float, promise: Promise, mu: float) -> Release:
    """Gradients of ``size`` numbers on the M rows of a released table, for mu."""
    lemma = "given the table, a source owns one clipped row"
    if not promise.private:
        return Release("gradient", Exact(steps), {"train": clip}, lemma)
    slack = 2 * summation_error(m, clip)
    descent = DpGradient.for_mu(clip, mu, steps, size, promise.relation is Relation.REPLACE, slack)
    return Release("gradient", descent, {"train": clip}, lemma)


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
        everybody(facts, clip),
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
