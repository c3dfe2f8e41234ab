"""Sound GraphPrivatizer: buckets from released labels, one report per owned edge, evidence through the known channel.

The server sees, of every vertex, the reported buckets of its owned contacts. With H[c, b] the share of bucket b among the
contacts of class c and T the channel of the bucket response, a report has law (H T)[c, .]; H is fitted by EM and the
log-likelihood of every class goes to the network, beside de-biased shares. All of it is post-processing.

Which member of a bucket was reported is a coin, so no graph is made of them. It would do harm: a member stands in it because
of its own released label, and a network that reads its label there looks good on released validation labels alone.
Tests: ``tests/methods/test_graph_privatizer.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.server import Server
from graphveil.methods.common.backbone_training import NoisyLabels, dense_columns, standardised
from graphveil.methods.common.denoise import HistogramFit, fit_histograms, likelihood_rows
from graphveil.methods.common.propagated_training import PropagatedTraining
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Array

HOMOPHILY = 0.75  # start of the EM: this share of contacts has one's own class
FLOOR = -10.0  # of log-posteriors


def learn(
    training: PropagatedTraining, server: Server, mechanism: str, rows: Any, labels: NoisyLabels
) -> ScoresPredictor:
    """LPGNN on reported slots; from buckets or means their evidence, beside one's own rows if validation labels prefer that."""
    if mechanism == "krr":
        return training.learn(server, rows, labels, server.ask("edges", np.arange(server.facts.nodes)).arcs)
    evidence = _means(server, labels) if mechanism == "mean" else _buckets(server, labels)
    own = standardised(dense_columns(rows, training.compress, server.coins))
    no_edges = np.zeros((2, 0), dtype=np.int64)
    both = np.column_stack([own, evidence])
    return training.fit(server, {"evidence": (evidence, no_edges), "evidence and rows": (both, no_edges)}, labels)


def _buckets(server: Server, labels: NoisyLabels) -> Array:
    """The evidence of the lists of all rounds."""
    likelihoods = likelihood_rows(labels.reports, labels.channel)
    evidence, found = [], None
    for name in (name for name in server.rounds if server.rounds[name].part is Part.EDGES):
        response: Any = server.rounds[name].randomizer
        if found is None:
            bucket_of = released_bins(labels.reports, response.buckets)
        else:
            bucket_of = (np.log(likelihoods) + found.log_likelihood).argmax(axis=1)
        bucket_of = inhabited(bucket_of, response.buckets)
        lists = server.ask(name, bucket_of)
        counts = bucket_counts(lists, bucket_of, response.buckets)
        found = fit_buckets(counts, response.response.channel, likelihoods)
        keep, other = response.response.keep, response.response.other
        shares = (counts - other * counts.sum(axis=1, keepdims=True)) / (keep - other)
        spread = np.sqrt(np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
        evidence += [_column_scale(found.log_likelihood), standardised(shares / spread)]
    return np.column_stack(evidence)


def _means(server: Server, labels: NoisyLabels) -> Array:
    """Noisy means of one-hot rows of one's contacts: released labels, then the classes inferred from them."""
    assert server.degrees is not None  # public where lists are reported
    likelihoods = likelihood_rows(labels.reports, labels.channel)
    evidence: list[Array] = []
    posterior = None
    for name in (name for name in server.rounds if server.rounds[name].part is Part.EDGES):
        mean: Any = server.rounds[name].randomizer
        bins = released_bins(labels.reports, mean.width) if posterior is None else posterior.argmax(axis=1)
        counts = server.ask(name, np.eye(mean.width)[bins]) * server.degrees[:, None]
        noise = mean.sigma(1) ** 2
        fit = fit_histograms(counts, server.degrees, noise, likelihoods, homophilous(server.facts.classes, mean.width))
        posterior = likelihoods * softmax(fit.log_likelihood, axis=1)
        level = (counts - counts.mean(axis=0)) / np.sqrt(server.degrees[:, None] + noise)
        evidence += [_column_scale(fit.log_likelihood), level]
    return np.column_stack(evidence)


def _column_scale(log_likelihood: Array) -> Array:
    """Log-posteriors under equal priors, not below ``FLOOR``, in columns of scale 1."""
    return standardised(np.maximum(log_softmax(log_likelihood, axis=1), FLOOR))


def released_bins(reports: np.ndarray, bins: int) -> np.ndarray:
    """The bin of every slot: its released label; 'no label' is the last bin if there is one for it."""
    return np.where(reports >= 0, reports, bins - 1)


def inhabited(bucket_of: np.ndarray, buckets: int) -> np.ndarray:
    """The same buckets with a member in each: an empty one takes the lowest slots of the largest (all of this is public)."""
    bucket_of = bucket_of.copy()
    for empty in np.flatnonzero(np.bincount(bucket_of, minlength=buckets) == 0):
        largest = np.bincount(bucket_of, minlength=buckets).argmax()
        bucket_of[np.flatnonzero(bucket_of == largest)[0]] = empty
    return bucket_of


def bucket_counts(lists: Contacts, bucket_of: np.ndarray, buckets: int) -> Array:
    """How often everybody reported each bucket."""
    cells = lists.owners * buckets + bucket_of[lists.targets]
    return np.bincount(cells, minlength=len(lists) * buckets).reshape(len(lists), buckets).astype(np.float64)


def homophilous(classes: int, bins: int) -> Array:
    """The start of EM: a share ``HOMOPHILY`` of contacts has one's own class, the others any bin."""
    shares = np.full((classes, bins), (1 - HOMOPHILY) / bins)
    shares[np.arange(classes), np.arange(classes)] += HOMOPHILY
    return shares


def fit_buckets(counts: Array, channel: Array, likelihoods: Array, steps: int = 8) -> HistogramFit:
    """EM for reports with law (H T)[c, .] given the class c, with the label likelihoods as evidence on c."""
    classes, buckets = likelihoods.shape[1], counts.shape[1]
    shares = homophilous(classes, buckets)
    prior = likelihoods.mean(axis=0)
    for _ in range(steps):
        law = shares @ channel
        posterior = softmax(np.log(likelihoods) + np.log(prior) + counts @ np.log(law).T, axis=1)
        prior = np.maximum(posterior.mean(axis=0), 1e-6)
        weight = (posterior.T @ counts) / law
        shares = np.maximum(shares * (weight @ channel.T), 1e-9)
        shares /= shares.sum(axis=1, keepdims=True)
    return HistogramFit(shares, prior, counts @ np.log(shares @ channel).T)
