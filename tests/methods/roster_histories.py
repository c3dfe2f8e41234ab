"""Released numbers of Roster as an adversary would have them, and the clean sums of a world given them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from graphveil.graph.blocks import Block
from graphveil.learn.grid_rows import DenseGridRows, SparseGridRows, grid_rows
from graphveil.learn.grids import row_bits
from graphveil.methods.common.own_predictor import _sum_of_unit_rows
from graphveil.methods.roster import Roster
from graphveil.methods.roster.bounds import ROWS_SHARE, SHARES, one_record
from graphveil.methods.roster.records import Blocks
from graphveil.methods.roster.sums import Sums
from graphveil.methods.roster.weights import LEAST_FLOOR, Weights, covered, prior_of
from graphveil.privacy.promise import Relation
from tests.methods.roster_witness import Reading, World

CLIP = Roster().clip
MIXES = (
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.0, 1.0, 0.7),
    (1.0, 1.0, 0.7),
    (1.0, 1.0, 0.0),
    (0.6, 1.0, 0.7),
    (1.0, 0.3, 0.2),
)


@dataclass(frozen=True)
class Free:
    """A history: what was released before each sum is taken."""

    centre: np.ndarray
    prior: np.ndarray
    probe: np.ndarray
    bounds: np.ndarray
    model: Blocks
    weights: Weights

    @property
    def start(self) -> int:
        """The floor of lists in probe and test."""
        return LEAST_FLOOR if self.weights.cover else 1

    def sums(self, world: World) -> dict[str, np.ndarray]:
        """Every clean value that Roster would release of this world, by its own code."""
        graph, width = world.graph, world.x.shape[1]
        first = Sums(graph, world.labelled, self.centre, self.start)
        later = (
            first if self.start == self.weights.floor else Sums(graph, world.labelled, self.centre, self.weights.floor)
        )
        probe = np.split(self.probe, [width, width + len(world.y)])
        asked = Sums(graph, world.asked, self.centre, self.weights.floor)
        return {
            "mean": _sum_of_unit_rows(graph, np.ones(len(world.y), dtype=bool)),
            "prior": first.labels(),
            "probe": first.probe(self.prior),
            "test": first.margins(tuple(probe), self.prior, self.bounds),
            "gradients": later.gradient(self.model, self.weights).flat() / CLIP,  # in units of the clip
            "rows": asked.rows(self.model, self.weights),
        }

    def witnessed(self, world: World) -> dict[str, np.ndarray]:
        """The same from the recipe, record by record; features are read as they lie on their grid."""
        rows = rows_on_grid(world, self.centre)
        first, later = (Reading(world, self.centre, floor, rows) for floor in (self.start, self.weights.floor))
        w, parts = self.weights, (self.model.features, self.model.codes, self.model.bias[0])
        own = {"unit": w.unit, "reading": w.reading} if w.cover else {}
        mix = (w.features, w.lists, w.slot)
        read = [parts[0] * (w.features > 0), parts[1] * (w.lists > 0), parts[2]]
        norms = np.linalg.norm(world.x, axis=1, keepdims=True)
        labelled = world.labelled
        return {
            "mean": (world.x / np.where(norms > 0, norms, 1)).sum(axis=0),
            "prior": sum((first.label(i) for i in labelled), np.zeros(world.classes)),
            "probe": sum((first.probe(i, self.prior).ravel() for i in labelled), np.zeros(self.probe.size)),
            "test": sum((first.margins(i, self.probe, self.prior, self.bounds) for i in labelled), np.zeros(4)),
            "gradients": sum(
                (later.gradient(i, *parts, mix, w.clip, **own).ravel() * w.scale / CLIP for i in labelled),
                np.zeros(self.model.flat().size),
            ),
            "rows": np.array([later.row(i, *read, w.row_reading if w.cover else None) for i in world.asked]).reshape(
                -1, world.classes
            ),
        }


def rows_on_grid(world: World, centre: np.ndarray) -> np.ndarray:
    """The rows as the code reads them, each within a step of what the recipe says; 1/distance steps where rows are sparse."""
    everybody = np.arange(len(world.y))
    bits = row_bits(len(everybody))
    rows = grid_rows(Block(world.graph, slice(0, len(everybody))), everybody, centre, bits)
    plain = Reading(world, centre, 1)
    ideal, step = np.array([plain.features(i) for i in everybody]), np.full((len(everybody), 1), 2.0**-bits)
    if world.sparse:
        assert isinstance(rows, SparseGridRows)
        entries = sp.csr_matrix((rows.values, rows.columns, rows.starts), shape=world.x.shape).toarray()
        found = rows.scales[:, None] * (entries - rows.middle) * 2.0**-bits
        step = step * 4 * math.sqrt(world.x.shape[1]) * rows.scales[:, None]  # s multiplies what is rounded
    else:
        assert isinstance(rows, DenseGridRows)
        found = rows.values.astype(np.float64)
    assert np.all(np.abs(found - ideal) <= 1.001 * step)
    return found


def moved(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, float]:
    """How far each of these sums has moved."""
    return {name: float(np.linalg.norm(after[name] - before[name])) for name in before}


def squared_factor(changes: dict[str, float]) -> float:
    """What changes cost, in units of mu^2 of a record zero-out plan; gradients in units of the clip."""
    shares, records = {**SHARES, "rows": ROWS_SHARE}, {"mean": 1.0, **one_record(Relation.ZERO_OUT, 2)}
    return sum(shares[name] * (change / records[name]) ** 2 for name, change in changes.items())


def mixed(features: float, lists: float, slot: float, mass: float, classes: int, cover: bool = True) -> Weights:
    """Weights of this proportion, as a test that finds so many contacts decides on them."""
    norm = math.sqrt(features**2 + lists**2 + slot**2)
    plain = Weights(features / norm, lists / norm, slot / norm, clip=CLIP)
    return covered(plain, mass, classes) if cover else plain


def weighted(rng: np.random.Generator, classes: int, cover: bool) -> Weights:
    """Weights as the survey may decide, with every kind of floor."""
    features, lists, slot = MIXES[rng.integers(len(MIXES))]
    if rng.random() < 0.5:
        features, lists = rng.random(2) + 1e-3
        slot = 0.7 * lists * rng.integers(2)
    return mixed(features, lists, slot, float(rng.choice([0.3, 1.5, 2.2, 4.0, 9.0])), classes, cover)


def history(rng: np.random.Generator, world: World, cover: bool) -> Free:
    """Released numbers of any size: zero, ordinary, huge, one direction for all slots, centres that hit a record."""
    n, width, classes = len(world.y), world.x.shape[1], world.classes
    centre = rng.normal(size=width)
    centre *= rng.random() / np.linalg.norm(centre)
    if rng.random() < 0.4:
        row = world.x[rng.integers(n)]
        centre = row / np.linalg.norm(row) if row.any() and rng.random() < 0.5 else 0 * centre
    prior = prior_of(rng.normal(size=classes) * rng.choice([1.0, 100.0]), 10)
    scale = rng.choice([0.0, 1.0, 30.0, 1e4])
    probe = rng.normal(size=(width + 2 * n, classes)) * rng.choice([0.0, 1.0, 1e4])
    codes = rng.normal(size=(n, classes))
    if rng.random() < 0.4:  # every slot says the same, or its opposite
        codes = np.outer(rng.choice([-1.0, 1.0], n), rng.normal(size=classes))
    model = Blocks(scale * rng.normal(size=(width, classes)), scale * codes, scale * rng.normal(size=(1, classes)))
    return Free(centre, prior, probe, rng.choice([0.01, 1.0, 50.0], 3), model, weighted(rng, classes, cover))
