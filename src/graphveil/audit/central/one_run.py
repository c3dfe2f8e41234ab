"""One training run as its own audit (Steinke, Nasr and Jagielski 2023): canaries in or out by fair coins, guessed from the model.

m canaries are far from each other (in components of their own, so farther than any number of hops). Each is in by a fair coin.
After one run the auditor scores every canary, guesses "in" for the highest scores and "out" for the lowest, and abstains between.
If the run is (epsilon, delta)-private for each canary, the number of correct ones among r guesses is at most binomial with
success probability e^epsilon/(1 + e^epsilon), up to a term in m delta (their theorem 5.2); an epsilon whose tail
probability is below the allowed error is refuted. The number of guesses is fixed before the run.
Tests: ``tests/audit/test_one_run.py``.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.stats import binom
from torch_geometric.data import Data

from graphveil.audit.central.neighbours import blanked, replaced, undirected, with_arcs
from graphveil.audit.result import Evidence
from graphveil.methods.base import PrivateMethod
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation
from graphveil.statistics.lower_bounds import CONFIDENCE

CANARIES = 300
MOST_DELTA = 1e-7  # the term in m delta must stay below the allowed error
GUESSED = 0.25  # of the canaries, half of them "in", half "out"
FEATURES, CLASSES, CROWD = 384, 3, 60


def tail_probability(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """An upper bound on the probability of so many correct guesses if the run is (epsilon, delta)-private.

    ``P(B >= v) + 2 m delta max_{1<=i<=v} P(v - i <= B < v)/i`` with B ~ Binomial(r, e^epsilon/(1 + e^epsilon)): theorem 5.2,
    as in the authors' implementation.
    """
    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, chance))
    worst = 0.0
    if delta > 0 and correct > 0:
        steps = np.arange(1, correct + 1)
        worst = float(np.max(np.cumsum(binom.pmf(correct - steps, guesses, chance)) / steps))
    return min(1.0, tail + 2 * canaries * delta * worst)


def refuted_epsilon(canaries: int, guesses: int, correct: int, delta: float, confidence: float = CONFIDENCE) -> float:
    """The largest epsilon that so many correct guesses refute; 0 if none."""
    if tail_probability(canaries, guesses, correct, 0.0, delta) > 1 - confidence:
        return 0.0
    low, high = 0.0, 1.0
    while high < 64 and tail_probability(canaries, guesses, correct, high, delta) <= 1 - confidence:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        below = tail_probability(canaries, guesses, correct, middle, delta) <= 1 - confidence
        low, high = (middle, high) if below else (low, middle)
    return low


def one_run_audit(method: PrivateMethod, promise: Promise, seed: int = 0) -> Evidence:
    """One run of the method on a graph with canaries, and what it refutes; delta is lowered to ``MOST_DELTA`` if above."""
    promise = replace(promise, delta=min(promise.target_delta, MOST_DELTA))
    graph, whole, inside = canary_graph(promise, CANARIES, seed)
    assert "train" not in method.plan(PublicFacts.of(whole), promise).weaker  # the kind of all node canaries
    model = method.fit(graph, promise, seed=seed)
    first = CROWD + np.arange(CANARIES)
    # edge canaries are scored by the class of their companion, others by their own label
    wanted = np.ones(CANARIES, dtype=np.int64) if promise.level is Level.EDGE else whole.y.numpy()[first]
    scores = np.log(np.maximum(model.predict_proba(whole).numpy()[first, wanted], 1e-300))
    each = int(GUESSED * CANARIES / 2)
    order = np.argsort(scores, kind="stable")
    correct = int(inside[order[-each:]].sum() + (~inside[order[:each]]).sum())
    epsilon, ceiling = (
        refuted_epsilon(CANARIES, 2 * each, right, promise.target_delta) for right in (correct, 2 * each)
    )
    silent = f", so it is silent about {promise.epsilon:g}" if ceiling < promise.epsilon else ""
    how = (
        f"{correct} of {2 * each} guesses right about {CANARIES} canaries of one run, from the model alone (delta at most "
        f"{MOST_DELTA:g}); if all were right it would refute {ceiling:.3g} and no more{silent}"
    )
    counts = {"canaries": CANARIES, "guesses": 2 * each, "correct": correct, "ceiling": ceiling}
    return Evidence("one run", epsilon, how, CONFIDENCE, details=counts)


def canary_graph(promise: Promise, canaries: int, seed: int) -> tuple[Data, Data, np.ndarray]:
    """A graph with canaries in or out by fair coins, the same graph with all of them, and the coins.

    Slots 0 .. CROWD-1 are an ordinary crowd in pairs; canary i is slot CROWD + i with a companion of its own. Node canaries have
    a random direction as features and a random label; if out they are blank as far as the adjacency reaches (their own record
    under ``record``: the companion still lists them), or their opposite under ``replace``. At edge level a canary is the edge to
    its companion; under ``edge-directed`` the one entry with which the companion sends to it.
    """
    rng = np.random.default_rng([0xCA9A, seed])
    nodes = CROWD + 2 * canaries
    y = rng.integers(0, CLASSES, nodes)
    x = rng.normal(size=(nodes, FEATURES)) / math.sqrt(FEATURES)
    y[CROWD // 2 : CROWD] = y[: CROWD // 2]  # pairs of one class: neighbours are worth listening to
    x[np.arange(CROWD), y[:CROWD]] += 1.0
    first = CROWD + np.arange(canaries)
    companion = first + canaries
    edge_level = promise.level is Level.EDGE
    if edge_level:
        x[first], y[first] = x[first] * 0.05, 0
        y[companion] = 1
        x[companion, 1] += 3.0
    crowd = np.arange(CROWD).reshape(2, -1)
    arcs = np.concatenate([crowd, np.stack([first, companion])], axis=1)
    train = np.arange(nodes) < CROWD
    train[companion if edge_level else first] = True
    calibration = np.zeros(nodes, dtype=bool)
    calibration[: CROWD // 6] = True
    inside = rng.random(canaries) < 0.5
    masks = {"train": train & ~calibration, "val": calibration, "test": ~train & ~calibration}
    whole = undirected(x, y, np.concatenate([arcs, arcs[::-1]], axis=1), CLASSES, **masks)
    return _without(whole, first[~inside], companion[~inside], promise, rng), whole, inside


def _without(whole: Data, out: np.ndarray, companion: np.ndarray, promise: Promise, rng: np.random.Generator) -> Data:
    """The graph without these canaries: each of them is one step to a neighbour of the promise, in a component of its own.

    One training run is private for a canary that is in or out only if the two graphs are neighbours; a second entry or record
    that came or went with the canary would make it a pair, of which the promise says twice epsilon.
    """
    if promise.level is not Level.EDGE:
        for r in out.tolist():
            zero_out = promise.relation is Relation.ZERO_OUT
            whole = blanked(whole, r, promise, rng) if zero_out else replaced(whole, r, promise, rng, opposite=True)
        return whole
    sender, receiver = whole.edge_index.numpy()
    heard = np.isin(sender, companion) & np.isin(receiver, out)  # what the canary's own prediction reads
    told = np.isin(sender, out) & np.isin(receiver, companion)
    gone = heard | told if promise.adjacency is Adjacency.EDGE_UNDIRECTED else heard
    return with_arcs(whole, whole.edge_index.numpy()[:, ~gone])
