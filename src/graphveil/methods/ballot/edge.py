"""Ballot at edge level: features and labels are public, only tallies along edges are released.

Edges fall into public classes by the kinds of their ends, and each class feeds one release with the whole budget:

*first tally*  train-train edges: ``S1_i = sum_k A[i, k] e_{y_k}`` at training nodes. An undirected edge moves two rows: sqrt 2.
*ballots*      edges that reach a calibration or query node, in one direction only: training and other nodes send to receivers,
               calibration nodes to query nodes, and of two query nodes the one with the larger public confidence sends
               (ties by number). One row moves by one message of norm at most 1.

The first tally says whether neighbours agree. *Homophilous*: ballots are class votes, coded for their receiver: with
K_i the classes that are plausible for i by its own public prediction, a vote for c in K_i is the corner ``(e_c -
1_K/|K|) / sqrt(1 - 1/|K|)``, a vote outside is 0, so weak votes need only tell plausible classes apart. *Structural*:
training nodes send on their row of the first tally. K_i, directions and codes are functions of public features and of
the first tally, which ballot edges do not enter. The final weights are fitted on public calibration labels. Brute
force: ``tests/methods/test_ballot_edge.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from graphveil.graph import Graph, Lists
from graphveil.methods.ballot.bounds import RECEIVERS
from graphveil.methods.ballot.tally import Poll, codes, whitened
from graphveil.methods.common.aggregation import plain_sum
from graphveil.methods.common.labels import label_rows
from graphveil.methods.common.logistic import cross_entropy, minimise
from graphveil.methods.common.scores import ScoresPredictor
from graphveil.privacy.accounting.loss import gaussian_mu
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import KINDS, PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.noise import Array, scaling_error
from graphveil.privacy.plan import Release, edge_kind
from graphveil.privacy.promise import Adjacency, Promise
from graphveil.progress import Progress

PLAUSIBLE = 0.1  # classes with at least this part of the largest own probability
AUDIBLE = 3.0  # agreement in units of the noise above which all classes are plausible
HETEROPHILY = 0.15
RIDGE, OFFSET_RIDGE = 5.0, 1.0  # of the final weights, in structural mode


def edge_releases(facts: PublicFacts, promise: Promise) -> tuple[Release, ...]:
    """First tally and ballots, each for the whole mu of the edges it reads."""
    if not (facts.count("train") and any(facts.count(kind) for kind in RECEIVERS)):
        return ()
    pairs = {edge_kind(a, b) for a in RECEIVERS for b in KINDS if facts.count(a) and facts.count(b)}
    pairs -= {edge_kind("calibration", "calibration")}
    two_rows = math.sqrt(2) if promise.adjacency is Adjacency.EDGE_UNDIRECTED else 1.0
    receivers = sum(facts.count(kind) for kind in RECEIVERS)
    return (
        _release("first tally", {edge_kind("train", "train"): two_rows}, facts.count("train") * facts.classes, promise),
        _release("ballots", dict.fromkeys(sorted(pairs), 1.0), receivers * facts.classes, promise),
    )


def _release(name: str, bounds: dict[str, float], dimension: int, promise: Promise) -> Release:
    lemma = "an edge of these public classes moves one row per direction in use, by one message of norm at most 1"
    if not promise.private:
        return Release(name, Exact(), bounds, lemma)
    mu = gaussian_mu(promise.epsilon, promise.target_delta) * (1 - 1e-14)
    return Release(name, Gaussian.for_mu(max(bounds.values()), mu, dimension), bounds, lemma)


def learn_edge(curator: Curator, epochs: int, coins: np.random.Generator, progress: Progress) -> ScoresPredictor:
    """Own prediction, first tally, ballots, and weights fitted on public labels."""
    from graphveil.methods.ballot.public_records import public_log_probabilities

    records, masks = curator.open_records(), curator.masks
    z = public_log_probabilities(records, masks, epochs, coins, progress)
    receivers: np.ndarray = np.logical_or.reduce([masks[kind] for kind in RECEIVERS])
    if not curator.plan.steps:
        return ScoresPredictor(z, {"mode": "features"})
    labels = label_rows(records)
    tally = curator.release("first tally", lambda private: first_tally(private, labels, masks["train"]))
    noise = curator.noise_scale("first tally")
    poll = _agreement(Poll.of(tally, noise), records.labels[masks["train"]])
    known = np.flatnonzero(masks["calibration"] & (records.labels >= 0))
    probabilities = softmax(z, axis=1)
    at_calibration, truth = np.searchsorted(np.flatnonzero(receivers), known), records.labels[known]
    logits = z.copy()
    if poll.heterophilous(HETEROPHILY):
        messages = np.zeros((records.nodes, records.classes))
        messages[masks["train"]] = codes(tally)
        kept = 1 - scaling_error(records.nodes)
        sent_on = lambda private: directed_sum(private, messages, masks, probabilities)[receivers] * kept
        table = whitened(curator.release("ballots", sent_on))
        mode, logits[receivers] = "structural", fit_structural(z[receivers], table, at_calibration, truth)
    else:
        mu, plausible = curator.plan.mu, np.ones_like(z, dtype=bool)
        if mu * poll.margin < AUDIBLE:
            plausible = plausible_classes(probabilities)
        votes = label_rows(records, ("train", "calibration"))
        votes = np.where(votes.any(axis=1, keepdims=True), votes, probabilities)
        coded = lambda private: receiver_coded(directed_sum(private, votes, masks, probabilities), plausible)[receivers]
        table = receiver_coded(curator.release("ballots", coded), plausible[receivers])  # on the corners of K_i
        mode, logits[receivers] = "homophilous", fit_votes(z[receivers], table, 1 / mu, at_calibration, truth)
    return ScoresPredictor(logits, {"mode": mode})


def first_tally(private: Graph, votes: Array, train: np.ndarray) -> Array:
    """Label counts of the training neighbours of training nodes."""
    return np.asarray(plain_sum(private.lists.restricted_to(train), votes)[train])


def directed_sum(private: Graph, messages: Array, masks: dict[str, np.ndarray], probabilities: Array) -> Array:
    """Sum of messages along each edge that reaches a receiver, in its one public direction."""
    senders, receivers = private.lists.edge_index()
    rank = np.zeros(private.nodes)
    rank[masks["calibration"]], rank[masks["query"]] = 1.0, 2.0
    confidence = probabilities.max(axis=1)
    surer = (confidence[senders] > confidence[receivers]) | (
        (confidence[senders] == confidence[receivers]) & (senders < receivers)
    )
    among_queries = (rank[senders] == 2) & (rank[receivers] == 2) & surer
    keep = (rank[senders] < rank[receivers]) | among_queries
    return plain_sum(Lists.from_edge_index(np.stack([senders[keep], receivers[keep]]), private.nodes), messages)


def plausible_classes(probabilities: Array) -> Array:
    """K_i: classes with at least a tenth of the largest probability, and always the two most probable."""
    second = np.partition(probabilities, -2, axis=1)[:, -2:].min(axis=1, keepdims=True)
    largest = probabilities.max(axis=1, keepdims=True)
    return np.asarray(probabilities >= np.minimum(second, PLAUSIBLE * largest))


def receiver_coded(tally: Array, plausible: np.ndarray) -> Array:
    """The sum of corners of K_i, which is linear in the votes; every vote has norm at most 1."""
    size = plausible.sum(axis=1, keepdims=True)
    inside = np.where(plausible, tally, 0.0)
    centred = np.where(plausible, inside - inside.sum(axis=1, keepdims=True) / size, 0.0)
    return np.asarray(centred / np.sqrt(1 - 1 / size) * (1 - scaling_error(len(tally))))


def _agreement(poll: Poll, labels: np.ndarray) -> Poll:
    """The margin of the training labels in their own tally; labels are public here."""
    known = labels >= 0
    spread = 1 - float(np.square(poll.priors).sum())
    rows, truth = poll.probe[known], labels[known]
    margin = rows[np.arange(len(truth)), truth] - poll.priors[truth] * rows.sum(axis=1)
    error = poll.noise / math.sqrt(max(len(truth), 1)) / spread
    return replace(poll, margin=float(margin.mean()) / spread, error=error)


def fit_votes(z: Array, evidence: Array, noise: float, known: np.ndarray, labels: np.ndarray) -> Array:
    """``a z + b1 S + b2 S / sqrt(||S||^2 + C noise^2)``: linear evidence, and evidence that does not grow with the degree."""
    length = np.sqrt(np.square(evidence).sum(axis=1, keepdims=True) + evidence.shape[1] * noise**2 + 1e-12)
    channels = np.stack([z, evidence, evidence / length])

    def logits(weights: Array, rows: slice | np.ndarray) -> Array:
        return np.asarray(np.einsum("f,fij->ij", weights, channels[:, rows]))

    def loss(weights: Array) -> tuple[float, np.ndarray]:
        value, error = cross_entropy(logits(weights, known), labels)
        return value, np.einsum("ij,fij->f", error, channels[:, known])

    return logits(minimise(loss, np.array([1.0, 0.0, 0.0])), slice(None))


def fit_structural(z: Array, table: Array, known: np.ndarray, labels: np.ndarray) -> Array:
    """``a z + S U + z_c M / 2 + c`` with S = [table, signed root of table], ridge on U, M, a - 1 and c."""
    classes = z.shape[1]
    features = np.hstack([table, np.sign(table) * np.sqrt(np.abs(table)), (z - z.mean(axis=1, keepdims=True)) / 2])
    width = features.shape[1]
    ridge = np.concatenate([[OFFSET_RIDGE], np.full(width * classes, RIDGE), np.full(classes, OFFSET_RIDGE)])
    start = np.zeros(len(ridge))
    start[0] = 1.0

    def logits(weights: Array, rows: slice | np.ndarray) -> Array:
        matrix = weights[1 : 1 + width * classes].reshape(width, classes)
        return np.asarray(weights[0] * z[rows] + features[rows] @ matrix + weights[1 + width * classes :])

    def loss(weights: Array) -> tuple[float, np.ndarray]:
        value, error = cross_entropy(logits(weights, known), labels)
        slope = np.concatenate([[np.sum(error * z[known])], (features[known].T @ error).ravel(), error.sum(axis=0)])
        away = weights - start
        return value + 0.5 * float(ridge @ away**2), slope + ridge * away

    return logits(minimise(loss, start), slice(None))
