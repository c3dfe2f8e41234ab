"""What the recommended recipe makes of reports: evidence on everybody's class, from public edges or from noisy histograms.

Where features and labels are public as well, the histograms are of classes that features suggest.

Everything here is post-processing. Tests: ``tests/methods/test_local.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphveil.exchange.server import Server
from graphveil.methods.common.backbone_training import NoisyLabels
from graphveil.methods.common.denoise import likelihood_rows
from graphveil.methods.local.counts import class_likelihoods, shares
from graphveil.methods.local.heads import Evidence
from graphveil.methods.local.own_classes import own_scores
from graphveil.methods.local.sources import HOP_SCALE, Histograms, NoisyCounts, PublicEdges, no_extra, noisy_degrees
from graphveil.privacy.noise import Array

HOMOPHILY = 0.75  # start of the EM: this share of contacts has one's own class


def from_public_edges(server: Server, labels: NoisyLabels, source: PublicEdges, number: int) -> Evidence:
    """Likelihoods of the label reports over five hops, and the beliefs they lead to; out of ``number`` folds."""
    likelihoods = source.likelihoods
    parts = np.array_split(server.coins.permutation(np.flatnonzero(labels.reports >= 0)), number)
    whole = source.propagated(source.edges, likelihoods)
    seen = whole.copy()
    for done, part in enumerate(parts, start=1):
        blind = likelihoods.copy()
        blind[part] = 1 / server.facts.classes
        seen[part] = source.propagated(source.edges, blind)[part]
        server.tell("folds", done, len(parts))
    return Evidence(seen, whole, no_extra(whole))


def from_histograms(server: Server, labels: NoisyLabels, dispersion: float, lengths_public: bool) -> Histograms:
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
    bins = [first.bins]
    if "histogram-2" in server.rounds:
        inferred = (first.log_likelihood + np.log(first.prior) + np.log(likelihoods)).argmax(axis=1)
        rounds.append(NoisyCounts.heard(server, "histogram-2", inferred))
        degrees = list_lengths(server, rounds, lengths_public)
        bins.append(rounds[1].fit(degrees, likelihoods, homophily, dispersion).bins)
    return Histograms(tuple(rounds), tuple(bins), first.prior, server.degrees if lengths_public else None, dispersion)


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


def list_lengths(server: Server, rounds: Sequence[NoisyCounts], public: bool) -> Array:
    """The lengths of the lists where they are public, else what the noisy counts say."""
    if not public:
        return noisy_degrees(rounds)
    assert server.degrees is not None  # told with the first round
    return server.degrees.astype(np.float64)
