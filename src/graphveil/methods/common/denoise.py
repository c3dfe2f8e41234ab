"""What a collector does with reports before it trains: all of it is post-processing and costs nothing.

Tests: ``tests/methods/test_denoise.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.special import log_softmax, softmax

from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from torch import Tensor

HOPS = (1, 2, 4, 8, 16)
COLUMNS = 32  # propagated at a time


def normalised(edge_index: np.ndarray, nodes: int, self_loops: bool) -> sp.csr_matrix:
    """D^-1/2 A D^-1/2 of the (symmetrised) public graph; with self-loops this is GCN's matrix."""
    senders, receivers = edge_index
    ones = np.ones(len(senders))
    matrix = sp.coo_matrix((ones, (receivers, senders)), (nodes, nodes)).tocsr()
    matrix = ((matrix + matrix.T) > 0).astype(np.float64)
    if self_loops:
        matrix = matrix + sp.identity(nodes, format="csr")
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    scale = sp.diags(np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1e-300)), 0.0))
    return sp.csr_matrix(scale @ matrix @ scale)


def kprop(matrix: sp.csr_matrix, rows: Array, steps: int) -> Array:
    """``matrix^steps rows``: independent noise is averaged over growing neighbourhoods; few columns at a time, for the cache."""
    found = []
    for start in range(0, rows.shape[1], COLUMNS):
        part = np.ascontiguousarray(rows[:, start : start + COLUMNS])
        for _ in range(steps):
            part = matrix @ part
        found.append(part)
    return np.hstack(found)


def propagated(rows: Array, edge_index: np.ndarray, steps: int) -> Array:
    """KProp of rows over the (symmetrised) public graph, in single precision."""
    return kprop(normalised(edge_index, len(rows), self_loops=False).astype(np.float32), rows, steps)


def likelihood_rows(reports: np.ndarray, channel: Array) -> Array:
    """L[i, c] = P(report_i | class c), scaled to sum 1; 1/k where there is no report (-1)."""
    classes = channel.shape[0]
    there = reports >= 0
    rows = np.full((len(reports), classes), 1.0 / classes)
    rows[there] = channel[:, reports[there]].T
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def hop_shares(matrix: sp.csr_matrix, likelihoods: Array, hops: tuple[int, ...] = HOPS) -> Array:
    """P^h z / P^h c for every hop h, stacked as n x hops x k, with z = L - 1/k and confidence c = max|z| k/(k-1)."""
    classes = likelihoods.shape[1]
    shares = likelihoods - 1.0 / classes
    confidence = np.abs(shares).max(axis=1, keepdims=True) * classes / (classes - 1)
    found, done = [], 0
    for hop in hops:
        shares, confidence = kprop(matrix, shares, hop - done), kprop(matrix, confidence, hop - done)
        done = hop
        known = confidence > 1e-12
        found.append(np.where(known, shares / np.where(known, confidence, 1.0), 0.0))
    return np.stack(found, axis=1)


def belief_propagation(
    edge_index: np.ndarray,
    likelihoods: Array,
    agreement: float = 0.8,
    sweeps: int = 6,
    weight: float = 0.7,
    damping: float = 0.3,
) -> Array:
    """Log-posteriors of a pairwise model in which neighbours share a class with probability ``agreement``.

    Messages m_uv(c) proportional to sum_c' B[c', c] exp(b_u(c') - weight log m_vu(c')), beliefs b = log L + weight sum of
    incoming log m; ``weight`` < 1 discounts evidence that loops count twice, ``damping`` keeps a part of the old message.
    """
    nodes, classes = likelihoods.shape
    senders, receivers = edge_index
    code = senders.astype(np.int64) * nodes + receivers
    order = np.argsort(code, kind="stable")
    code, senders, receivers = code[order], senders[order], receivers[order]
    reverse = np.searchsorted(code, receivers * np.int64(nodes) + senders)
    reverse = np.where(code[np.minimum(reverse, len(code) - 1)] == receivers * np.int64(nodes) + senders, reverse, -1)
    same = np.full((classes, classes), (1 - agreement) / (classes - 1))
    np.fill_diagonal(same, agreement)
    gather = sp.csr_matrix((np.ones(len(senders)), (receivers, np.arange(len(senders)))), (nodes, len(senders)))
    own = np.log(likelihoods)
    messages = np.full((len(senders), classes), -np.log(classes))
    beliefs = own
    for _ in range(sweeps):
        back = np.where((reverse >= 0)[:, None], messages[reverse], 0.0)
        outgoing = softmax(beliefs[senders] - weight * back, axis=1) @ same
        messages = np.log((1 - damping) * outgoing + damping * np.exp(messages))
        beliefs = own + weight * (gather @ messages)
    return np.asarray(log_softmax(beliefs, axis=1))


@dataclass(frozen=True)
class HistogramFit:
    """Class-conditional bins H[c, b], class prior, and the log-likelihood of every vertex's histogram under each class."""

    bins: Array
    prior: Array
    log_likelihood: Array


def histogram_likelihoods(
    counts: Array, degrees: np.ndarray, noise_variance: float, bins: Array, dispersion: float
) -> Array:
    """The log-likelihood of every row of counts, of lists of these lengths, under each class."""
    size = np.maximum(degrees, 0).astype(np.float64)
    return _normal(counts, size, size * (1 + dispersion * np.maximum(size - 1, 0)), noise_variance, bins)


def fit_histograms(
    counts: Array,
    degrees: np.ndarray,
    noise_variance: float,
    likelihoods: Array,
    start: Array,
    steps: int = 6,
    dispersion: float = 0.0,
) -> HistogramFit:
    """EM for h_b = Normal(d H[c, b], d (1 + r (d - 1)) H (1 - H) + noise variance), with the label likelihoods as evidence on c.

    r is the ``dispersion``: 0 if the labels of one's contacts are independent draws, above 0 if they come in groups.
    """
    bins, prior = start, likelihoods.mean(axis=0)
    size = np.maximum(degrees, 0).astype(np.float64)
    grouped = size * (1 + dispersion * np.maximum(size - 1, 0))
    for _ in range(steps):
        score = _normal(counts, size, grouped, noise_variance, bins)
        posterior = softmax(np.log(likelihoods) + np.log(prior) + score, axis=1)
        prior = np.maximum(posterior.mean(axis=0), 1e-6)
        weight = np.maximum(posterior.T @ size, 1e-9)
        bins = np.maximum((posterior.T @ counts) / weight[:, None], 1e-3)
        bins /= bins.sum(axis=1, keepdims=True)
    return HistogramFit(bins, prior, _normal(counts, size, grouped, noise_variance, bins))


def _normal(counts: Array, degrees: Array, grouped: Array, noise_variance: float, bins: Array) -> Array:
    log_likelihood = np.empty((len(counts), len(bins)))
    for c, row in enumerate(bins):
        variance = grouped[:, None] * row * (1 - row) + noise_variance
        error = counts - degrees[:, None] * row
        log_likelihood[:, c] = -0.5 * (np.square(error) / variance + np.log(variance)).sum(axis=1)
    return log_likelihood


def forward_loss(logits: Tensor, channel: Tensor, reports: Tensor) -> Tensor:
    """Mean of -log (softmax(logits) T)[report]: least for the clean posterior, although only noisy labels are seen."""
    noisy = logits.softmax(dim=1) @ channel
    return -noisy.gather(1, reports[:, None]).clamp_min(1e-20).log().mean()
