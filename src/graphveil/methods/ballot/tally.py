"""Ballots cast and what the noisy tallies say: messages along contact lists, and post-processing of released tables.

The functions that take ``private`` are queries: they run inside a curator's release and return clean sums on the grid
2^-24. All others read released tables and public numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.learn import engine
from graphveil.learn.engine import Query
from graphveil.methods.ballot.bounds import Bounds
from graphveil.methods.common.aggregation import at_most_unit
from graphveil.methods.common.labels import label_rows
from graphveil.privacy.noise import Array


def ballot_sum(private: Graph, votes: Query, receivers: np.ndarray, floor: int | None) -> Array:
    """``S_i = sum_k A[i, k] max(|out(k) in Q|, floor)^(-1/2) votes_k`` for the receivers i; no floor: weights 1."""
    return engine.spread(private, lambda block: at_most_unit(votes(block)), receivers, floor)


def mass_of(private: Graph, receivers: np.ndarray, bounds: Bounds) -> Array:
    """How much training nodes send to each receiver; under k-neighbor, how many training slots list it."""
    if bounds.k is not None:
        return ballot_sum(private, lambda block: block.masks["train"][:, None].astype(float), receivers, None)
    sending = lambda block: label_rows(block).sum(axis=1, keepdims=True)
    return ballot_sum(private, sending, receivers, bounds.floor)


def centred_votes(block: Block, probabilities: Array) -> Array:
    """``(q - 1/C) / sqrt(1 - 1/C)``: q is the label of training and calibration nodes, the own prediction of others."""
    labels = label_rows(block, ("train", "calibration"))
    q = np.where(labels.any(axis=1, keepdims=True), labels, probabilities)
    return np.asarray(centre(q) * block.present[:, None])


def centre(q: Array) -> Array:
    """Distributions as vectors of norm at most 1 whose entries sum to zero."""
    classes = q.shape[1]
    return np.asarray((q - 1 / classes) / math.sqrt(1 - 1 / classes))


def margins(private: Graph, probe: Array, receivers: np.ndarray, priors: Array, bound: float) -> float:
    """``sum over calibration nodes of clip(S[i, y_i] - pi[y_i] sum_c S[i, c], +-bound) / bound``."""
    chosen = private.masks["calibration"] & (private.labels >= 0)
    labels, table = private.labels[chosen], probe[chosen[receivers]]  # everybody who is asked here is a receiver
    margin = table[np.arange(len(labels)), labels] - priors[labels] * table.sum(axis=1)
    return math.fsum(np.clip(margin / bound, -1.0, 1.0))


@dataclass(frozen=True)
class Poll:
    """What probe and test say about the graph: ballots per receiver, priors, and how much neighbours agree.

    ``margin`` estimates (mass x homophily) of one receiver with standard error ``error``.
    """

    probe: Array
    noise: float
    mass: float
    priors: Array
    margin: float = 0.0
    error: float = math.inf

    @classmethod
    def of(cls, probe: Array, noise: float) -> Poll:
        """Mass and priors of a released probe; the floors keep them positive under any noise."""
        receivers, classes = probe.shape
        mass = max(float(probe.sum(axis=1).mean()), noise * math.sqrt(classes / receivers), 1e-3)
        priors = np.clip(probe.mean(axis=0) / mass, 0.02, 1.0)
        return cls(probe, noise, mass, priors / priors.sum())

    @property
    def bound(self) -> float:
        """Where the test clips one margin."""
        return self.mass + self.noise

    def tested(self, total: float, noise: float, voters: int) -> Poll:
        """With the released sum of margins (in units of ``bound``), which has this noise."""
        spread = 1 - float(np.square(self.priors).sum())
        margin = total * self.bound / (voters * spread)
        error = math.hypot(self.noise / math.sqrt(voters), noise * self.bound / voters) / spread
        return replace(self, margin=margin, error=error)

    def heterophilous(self, threshold: float) -> bool:
        """Whether neighbours agree less than ``threshold``, one standard error included."""
        return (self.margin + self.error) / self.mass < threshold


def variance_of(probe_noise: float, votes_noise: float, classes: int) -> float:
    """The variance of the noise in a table of probe and votes; an infinite noise says that there are none."""
    precisions = [(1 - 1 / classes) / max(probe_noise, 1e-12) ** 2, max(votes_noise, 1e-12) ** -2]
    return 1 / sum(precisions) if any(precisions) else math.inf


def merge(
    poll: Poll, votes: np.ndarray | None, noise: float, then: tuple[Array, Array] | None = None
) -> tuple[Array, float]:
    """Probe and votes as one precision-weighted centred table, and the noise-aware Bayes weight it has before calibration.

    b0 = m / (v sqrt(1 - 1/C)), m the margin less half an error, v the variance of the table around it. ``then``: a table that an
    earlier run released, and the variance of its noise by row.
    """
    classes = poll.probe.shape[1]
    unit = math.sqrt(1 - 1 / classes)
    table, variance = centred_rows(poll.probe) / unit, (poll.noise / unit) ** 2
    if votes is not None:
        ours, theirs = (1.0, 1.0) if noise == 0 else (1 / variance, noise**-2)
        table = (ours * table + theirs * centred_rows(votes)) / (ours + theirs)
        variance = 0.0 if noise == 0 else 1 / (ours + theirs)
    if then is not None and variance > 0:
        earlier, precision = then[0], 1 / then[1][:, None]
        table = (table / variance + precision * earlier) / (1 / variance + precision)
        variance = float(np.mean(1 / (1 / variance + precision)))
    low, high = np.quantile(table, [0.25, 0.75], axis=0)
    spread = float(np.square((high - low) / 1.349).mean())
    margin = max(poll.margin - poll.error / 2, 0.2 * poll.error)
    around = max(spread - margin**2 / classes, variance, spread / 2, 1e-12)
    return table, margin / (around * unit)


def centred_rows(table: Array) -> Array:
    return np.asarray(table - table.mean(axis=1, keepdims=True))


def codes(table: Array) -> Array:
    """Released rows as messages for the next hop: divided by their norm, or by the median norm if that is larger."""
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    return np.asarray(table / np.maximum(np.maximum(norms, np.median(norms)), 1e-12))


def whitened(table: Array) -> Array:
    """The table shifted and turned so that its own covariance is the identity."""
    shifted = table - table.mean(axis=0)
    values, vectors = np.linalg.eigh(shifted.T @ shifted / max(len(table), 1))
    return np.asarray(shifted @ (vectors / np.sqrt(np.maximum(values, 1e-6 * max(values.max(), 1e-12)))))


def square_rooted(table: Array) -> Array:
    """Rows divided by the root of their norm, so that hubs do not dominate the covariance."""
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    return np.asarray(table / np.sqrt(np.maximum(norms, 1e-12)))
