"""What the recommended recipe makes of reports: evidence on everybody's class, from public edges or from noisy histograms.

Where features and labels are public as well, the histograms are of classes that features suggest.

Everything here is post-processing. Tests: ``tests/methods/test_local.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil.exchange.server import Server
from graphveil.methods.common.backbone_training import NoisyLabels
from graphveil.methods.common.denoise import HistogramFit, fit_histograms, hop_shares, likelihood_rows, normalised
from graphveil.methods.local.counts import class_likelihoods, shares
from graphveil.methods.local.heads import Evidence
from graphveil.methods.local.own_classes import own_scores
from graphveil.privacy.noise import Array

# shares lie in [-1, 1], log-posteriors in [-10, 0]: brings their weights to one scale for one learning rate
HOP_SCALE = 4.0
FLOOR = -10.0  # of log-posteriors: on dense graphs belief propagation is far too sure of itself
HOMOPHILY = 0.75  # start of the EM: this share of contacts has one's own class


def from_public_edges(
    server: Server, labels: NoisyLabels, edges: np.ndarray, beliefs: Callable[[Array], Array], number: int
) -> Evidence:
    """Likelihoods of the label reports over five hops, and the ``beliefs`` they lead to; out of ``number`` folds."""
    matrix = normalised(edges, server.facts.nodes, self_loops=True)

    def propagated(likelihoods: Array) -> Array:
        last = np.maximum(beliefs(likelihoods), FLOOR)
        return np.concatenate([HOP_SCALE * hop_shares(matrix, likelihoods), last[:, None, :]], axis=1)

    likelihoods = likelihood_rows(labels.reports, labels.channel)
    parts = np.array_split(server.coins.permutation(np.flatnonzero(labels.reports >= 0)), number)
    whole = propagated(likelihoods)
    seen = whole.copy()
    for done, part in enumerate(parts, start=1):
        blind = likelihoods.copy()
        blind[part] = 1 / server.facts.classes
        seen[part] = propagated(blind)[part]
        server.tell("folds", done, len(parts))
    return Evidence(seen, whole, np.zeros((len(whole), 0)))


def from_histograms(server: Server, labels: NoisyLabels, dispersion: float, lengths_public: bool) -> Evidence:
    """One or two rounds of noisy counts: of released labels, then of the classes inferred from the first round."""
    classes, reports = server.facts.classes, labels.reports
    likelihoods = likelihood_rows(reports, labels.channel)
    labelled = float(np.mean(reports >= 0))
    homophily = np.full((classes, classes), (1 - HOMOPHILY) / (classes - 1))
    np.fill_diagonal(homophily, HOMOPHILY)
    start = np.hstack([labelled * homophily @ labels.channel, np.full((classes, 1), 1 - labelled)])
    rounds = [NoisyCounts.heard(server, "histogram", np.where(reports < 0, classes, reports))]
    degrees = list_lengths(server, rounds, lengths_public)
    first = rounds[0].fit(degrees, likelihoods, start, dispersion)
    evidence = [first.log_likelihood]
    if "histogram-2" in server.rounds:
        inferred = (first.log_likelihood + np.log(first.prior) + np.log(likelihoods)).argmax(axis=1)
        rounds.append(NoisyCounts.heard(server, "histogram-2", inferred))
        degrees = list_lengths(server, rounds, lengths_public)
        evidence.append(rounds[1].fit(degrees, likelihoods, homophily, dispersion).log_likelihood)
    total = sum(evidence) + np.log(first.prior)
    stacked = np.stack([part - part.mean(axis=1, keepdims=True) for part in (*evidence, total)], axis=1)
    return Evidence(stacked, stacked, np.hstack([one.standard(degrees) for one in rounds]))


def from_own_classes(server: Server, labels: NoisyLabels, number: int) -> Evidence:
    """What public features say, and one or two rounds of noisy counts of the classes that they say (true ones where known)."""
    known = np.flatnonzero(labels.reports >= 0)
    seen = labels.reports[known]
    own = own_scores(server.raw_rows, known, seen, server.facts.classes, number, server.coins)
    kinds, total, extra = [own], own, []
    for name in (one for one in ("histogram", "histogram-2") if one in server.rounds):
        told = total.argmax(axis=1)
        told[known] = seen
        heard = NoisyCounts.heard(server, name, told)
        histogram: Any = server.rounds[name].randomizer
        likelihood = class_likelihoods(heard.counts, histogram.scale, known, seen, server.facts.classes)
        kinds += [HOP_SCALE * shares(heard.counts, histogram.scale), likelihood]
        total = total + likelihood
        extra.append(heard.standard(np.maximum(heard.counts.sum(axis=1), 0.0)))
    stacked = np.stack([part - part.mean(axis=1, keepdims=True) for part in (*kinds, total)], axis=1)
    return Evidence(stacked, stacked, np.hstack(extra))


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """One round of histograms: a row of noisy counts for every vertex, and the variance of the noise on each count."""

    counts: Array
    noise: float

    @classmethod
    def heard(cls, server: Server, name: str, bins: np.ndarray) -> NoisyCounts:
        """The answers to a round of histograms over the public ``bins`` of everybody."""
        return cls(server.ask(name, bins), float(server.rounds[name].randomizer.variance()))

    def fit(self, degrees: Array, likelihoods: Array, start: Array, dispersion: float) -> HistogramFit:
        return fit_histograms(self.counts, degrees, self.noise, likelihoods, start, dispersion=dispersion)

    def standard(self, degrees: Array) -> Array:
        """Counts about their mean, over the standard deviation of a count in a list of that length."""
        return np.asarray((self.counts - self.counts.mean(axis=0)) / np.sqrt(degrees[:, None] + self.noise))


def list_lengths(server: Server, rounds: Sequence[NoisyCounts], public: bool) -> Array:
    """The lengths of the lists where they are public, else what the noisy counts say."""
    if not public:
        return noisy_degrees(rounds)
    assert server.degrees is not None  # told with the first round
    return server.degrees.astype(np.float64)


def noisy_degrees(rounds: Sequence[NoisyCounts]) -> Array:
    """The lengths of the lists from the sums of the noisy counts alone.

    Every sum is the length plus noise of known variance; sums of several rounds are weighted by precision, the result is
    drawn towards the mean by tau^2/(tau^2 + noise), tau^2 = variance of the sums less the noise, and kept at 0 or above.
    """
    precision = np.array([1 / (one.noise * one.counts.shape[1]) for one in rounds])
    found = sum(share * one.counts.sum(axis=1) for share, one in zip(precision / precision.sum(), rounds, strict=True))
    spread = max(float(found.var()) - 1 / float(precision.sum()), 0.0)
    kept = spread / (spread + 1 / float(precision.sum()))
    return np.asarray(np.maximum(found.mean() + kept * (found - found.mean()), 0.0))
