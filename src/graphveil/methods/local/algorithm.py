"""What the recommended recipe makes of reports: evidence on everybody's class, from public edges or from noisy histograms.

Everything here is post-processing. Tests: ``tests/methods/test_local.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphveil.exchange.server import Server
from graphveil.methods.common.backbone_training import NoisyLabels
from graphveil.methods.common.denoise import folds, hop_shares, likelihood_rows, normalised
from graphveil.methods.local.heads import Evidence
from graphveil.methods.local.histograms import NoisyCounts, noisy_degrees
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
    parts = folds(labels.reports >= 0, number, server.coins)
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
    rounds = [heard_counts(server, "histogram", np.where(reports < 0, classes, reports))]
    degrees = list_lengths(server, rounds, lengths_public)
    first = rounds[0].fit(degrees, likelihoods, start, dispersion)
    evidence = [first.log_likelihood]
    if "histogram-2" in server.rounds:
        inferred = (first.log_likelihood + np.log(first.prior) + np.log(likelihoods)).argmax(axis=1)
        rounds.append(heard_counts(server, "histogram-2", inferred))
        degrees = list_lengths(server, rounds, lengths_public)
        evidence.append(rounds[1].fit(degrees, likelihoods, homophily, dispersion).log_likelihood)
    total = sum(evidence) + np.log(first.prior)
    stacked = np.stack([part - part.mean(axis=1, keepdims=True) for part in (*evidence, total)], axis=1)
    return Evidence(stacked, stacked, np.hstack([one.standard(degrees) for one in rounds]))


def heard_counts(server: Server, name: str, bins: np.ndarray) -> NoisyCounts:
    """The answers to a round of histograms over the public ``bins`` of everybody."""
    counts = server.ask(name, bins)
    return NoisyCounts(counts, float(server.rounds[name].randomizer.variance()))


def list_lengths(server: Server, rounds: Sequence[NoisyCounts], public: bool) -> Array:
    """The lengths of the lists where they are public, else what the noisy counts say."""
    if not public:
        return noisy_degrees(rounds)
    assert server.degrees is not None  # told with the first round
    return server.degrees.astype(np.float64)
