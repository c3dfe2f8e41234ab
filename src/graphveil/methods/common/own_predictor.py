"""The own predictor: softmax regression on a node's own centred unit features.

    m = (sum_i x_i + N) / n,     x'_i = (x_i - m) / ||x_i - m||, and a constant 0.1,
    T full-batch steps on sum_i clip((p_i - y_i) x'_i^T), momentum and one global second moment.

Formal guarantee: unit rows make the mean's sum move by at most 1 (zero-out) or 2 (replace) for any record; each gradient sum
moves by at most ``clip`` or ``2 clip`` for a training record, and ``learn.truncation_slack`` for what is rounded, and not at all
for others: sums are exact (``learn/centred_sums.py``). Everything else is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphveil import learn
from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.graph.unit import truncated, unit_rows
from graphveil.learn import engine
from graphveil.learn.centred_sums import BIAS, FLOOR, LONGEST, CentredSums, Reader, sum_grid, truncation_slack
from graphveil.methods.common.aggregation import payers
from graphveil.methods.common.private_training import full_batch_release, full_batch_slot
from graphveil.methods.previous import Previous
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import KINDS, PublicFacts
from graphveil.privacy.mechanisms import Exact, Gaussian
from graphveil.privacy.plan import Release, Slot, split_mu
from graphveil.privacy.promise import Promise, Relation
from graphveil.progress import Progress

WIDE = 5000  # feature columns above which every coordinate has its own second moment (measured: docs/results/ballot.md)
GROWTH = LONGEST  # intermediate terms of centred rows are at most this much longer than final ones
MEAN_LEMMA = "a record adds one row of norm at most 1 to the sum"


def own_releases(
    facts: PublicFacts, promise: Promise, *, centring: float, steps: int, clip: float
) -> tuple[Release, ...]:
    """The mean (everybody pays the share ``centring`` of mu^2) and the gradient steps (training records pay the rest)."""
    mean_share = centring if facts.features else 0.0
    shares = {"mean": mean_share, "own": 1 - mean_share}
    mu = split_mu(promise, shares) if promise.private else shares
    size, n = (facts.features + 1) * facts.classes, facts.count("train")
    slack = own_slack(facts, promise, clip)
    own = full_batch_release("own", promise, n, size, steps=steps, clip=clip, mu=mu["own"], slack=slack)
    return (mean_release(facts, promise, mu["mean"]), own) if mean_share else (own,)


def mean_release(facts: PublicFacts, promise: Promise, mu: float, kinds: Collection[str] | None = None) -> Release:
    """The noisy sum of the unit rows of everybody (of these ``kinds``), for mu."""
    bound = 2.0 if promise.relation is Relation.REPLACE else 1.0
    bounds = {kind: bound for kind in payers(facts, promise, bound) if kinds is None or kind in kinds}
    mechanism = Gaussian.for_mu(bound, mu, facts.features) if promise.private else Exact()
    return Release("mean", mechanism, bounds, MEAN_LEMMA)


def own_slots(facts: PublicFacts, promise: Promise, *, steps: int, clip: float) -> tuple[Slot, ...]:
    """Mean and gradient steps as adaptive slots, for methods that choose their shares while they run."""
    everybody = payers(facts, promise, 2.0 if promise.relation is Relation.REPLACE else 1.0)
    size = (facts.features + 1) * facts.classes
    own = full_batch_slot(
        "own", promise, {"train": clip}, facts.count("train"), size, steps, own_slack(facts, promise, clip)
    )
    return (Slot("mean", everybody, 1.0, facts.features, MEAN_LEMMA), own) if facts.features else (own,)


def own_slack(facts: PublicFacts, promise: Promise, clip: float) -> float:
    """What rounding adds to the terms of one record, or of two where one replaces the other."""
    slack = truncation_slack(facts.count("train"), facts.features, facts.classes, clip)
    return 2 * slack if promise.relation is Relation.REPLACE else slack


def release_centre(
    curator: Curator, share: float | None = None, of: np.ndarray | None = None, previous: Previous | None = None
) -> np.ndarray:
    """The noisy mean (of the slots in the mask ``of``) if the plan has one, else the origin.

    It is brought back into the unit ball, where every true mean lies. The mean that an earlier run released has a say in it.
    """
    if any(step.name == "mean" for step in curator.plan.steps):
        slots = np.ones(curator.facts.nodes, dtype=bool) if of is None else of
        total = curator.release("mean", lambda private: _sum_of_unit_rows(private, slots), share)
        centre: np.ndarray = total / max(1, slots.sum())
        if previous is not None:
            centre = centre + previous.weight(curator, "mean", KINDS) * (previous.predictor.centre - centre)
        return centre / max(1.0, float(np.linalg.norm(centre)))
    return np.zeros(curator.facts.features)


def learn_own(
    curator: Curator,
    learning_rate: float,
    progress: Progress,
    shares: tuple[float, float] | None = None,
    previous: Previous | None = None,
) -> OwnPredictor:
    """Release the mean if the plan has it, then spend the gradient steps; ``shares`` (mean, steps) if they are slots.

    ``previous``: an earlier run whose predictor is an own predictor, too; its weights are averaged in.
    """
    import torch

    facts = curator.facts
    mean_share, own_share = shares or (None, None)
    centre = release_centre(curator, mean_share, previous=previous)
    weights = np.zeros((facts.classes, facts.features + 1))
    train = curator.masks["train"]
    prepare = lambda private, rows: (private, Reader(private, centre))
    session = curator.gradients("own", prepare, own_share, np.flatnonzero(train))
    records = max(1, facts.count("train"))
    clip = math.inf if session.clip is None else session.clip
    grid = sum_grid(records, min(clip, 2.0))  # without a promise nothing is clipped; a gradient is shorter than 2

    def query(prepared: tuple[Graph, Reader], batch: np.ndarray | None) -> np.ndarray:
        sums, (private, reader) = CentredSums(centre, weights), prepared

        def part(block: Block) -> np.ndarray:
            return sums.gradients(reader.rows(block), np.where(block.masks["train"], block.labels, -1), clip, grid)

        return sums.finished(engine.total(private, part), grid).ravel()

    values, optimizer = torch.from_numpy(weights.reshape(-1)), own_optimizer(facts, learning_rate)
    for step in range(session.total):
        optimizer.step(values, torch.from_numpy(session.step(query)), records)
        progress("own", step + 1, session.total)
    if previous is not None:
        weights += previous.weight(curator, "own", ("train",)) * (previous.predictor.weights - weights)
    return OwnPredictor(centre, weights)


def own_optimizer(facts: PublicFacts, learning_rate: float) -> learn.Optimizer:
    """One second moment for all coordinates, or one each where features are wide."""
    return learn.Adam(learning_rate) if facts.features > WIDE else learn.GlobalMoment(learning_rate)


def centred(graph: Graph, centre: np.ndarray) -> learn.CentredRows:
    """Everybody's own row as the predictor reads it."""
    return learn.CentredRows(unit_rows(graph.rows), centre, floor=FLOOR, bias=BIAS)


def _sum_of_unit_rows(private: Graph, slots: np.ndarray) -> np.ndarray:
    """The sum of unit rows truncated to the grid 2^-24: exact in float64, so one record moves it by its own row alone."""
    import torch

    def part(block: Block) -> np.ndarray:
        taken = torch.from_numpy(slots[block.slots].astype(np.float64))[:, None]
        return truncated(unit_rows(block.rows)).transpose_matmul(taken).numpy().ravel()

    return engine.total(private, part)


@dataclass
class OwnPredictor:
    """Released numbers: the centre (d) and the weights (C x (d + 1))."""

    centre: np.ndarray
    weights: np.ndarray
    slot_arrays = ()

    def logits(self, graph: Graph) -> np.ndarray:
        return engine.gathered(graph, self.scores, np.ones(graph.nodes, dtype=bool))

    def scores(self, block: Block, wanted: np.ndarray | None = None) -> np.ndarray:
        """Logits of the records of a block; zeros where they are not wanted."""
        return CentredSums(self.centre, self.weights).scores(block.rows, wanted)

    def config(self) -> dict[str, Any]:
        return {"kind": "own"}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"centre": self.centre, "weights": self.weights}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> OwnPredictor:
        return cls(arrays["centre"], arrays["weights"])
