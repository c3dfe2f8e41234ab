"""What a record brings to each of Roster's sums: its centred unit features x, its own contact list a, its label y.

Every method here returns a sum of one summand per record; the summand of a record reads that record and released numbers, nothing
else. Everything is truncated to a grid and added exactly: lists, slots and constants to 2^-24, features as in
``learn/centred_sums.py``. A labelled slot without a label adds zero everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.graph.lists import GRID, mass_weights, on_grid
from graphveil.learn import engine
from graphveil.learn.centred_sums import BIAS, CentredSums, Reader, finished_products, products, squared_norms
from graphveil.methods.common.aggregation import at_most_unit
from graphveil.methods.common.labels import one_hot
from graphveil.methods.roster.summands import residuals, shorten
from graphveil.methods.roster.weights import Weights
from graphveil.privacy.noise import Array

RESERVE = 1 - 1e-10  # norms are computed in float64
FULL_LIST = 8.0  # the root of the number of contacts at which the mass of a list is 1


@dataclass
class Blocks:
    """Numbers per feature, per slot and one row of constants, each with a column per class."""

    features: Array
    codes: Array
    bias: Array

    @classmethod
    def zeros(cls, features: int, nodes: int, classes: int) -> Blocks:
        return cls(np.zeros((features, classes)), np.zeros((nodes, classes)), np.zeros((1, classes)))

    def flat(self) -> Array:
        return np.concatenate([self.features, self.codes, self.bias]).ravel()

    def like(self, flat: Array) -> Blocks:
        """The same blocks with these numbers."""
        table, split = flat.reshape(-1, self.bias.shape[1]), len(self.features)
        return Blocks(table[:split], table[split:-1], table[-1:])


class Records:
    """Those records of a block that are in these public slots, with lists divided by sqrt(max(d, floor)); ``centre`` is released.

    Sums over features are in whole units of ``grid`` and not finished (``learn/centred_sums.py``).
    """

    def __init__(
        self,
        block: Block,
        slots: np.ndarray,
        centre: Array,
        floor: int,
        grid: float = GRID,
        reader: Reader | None = None,
    ) -> None:
        self.x = block.rows if reader is None else reader.rows(block)
        self.block, self.centre, self.grid, self.classes = block, centre, grid, block.classes
        self.taking = np.zeros(len(block), dtype=bool)
        self.taking[
            slots[slice(*np.searchsorted(slots, (block.slots.start, block.slots.stop)))] - block.slots.start
        ] = True
        self.lists, self.degrees = block.lists, block.lists.degrees
        self.share = mass_weights(self.degrees, floor)[:, None]  # what an entry of the list weighs, rounded down
        self.targets = np.where(self.taking, block.labels, -1)
        self.y = one_hot(self.targets, block.classes)
        self.known = np.asarray(self.y.sum(axis=1))

    @cached_property
    def squares(self) -> Array:
        return squared_norms(self.x, self.centre)

    def labels(self) -> Array:
        """The sum of all labels."""
        return np.asarray(self.y.sum(axis=0))

    def probe(self, prior: Array) -> tuple[Array, Array]:
        """The sum of R x, and every R, which goes into the codes of the list and the own slot; each divided by sqrt 3."""
        told = self._deviations(prior) * (RESERVE / np.sqrt(np.maximum(self.squares, 1) + 2))[:, None]
        return products(self.x, self.centre, told, self.grid), told

    def margins(self, probe: tuple[Array, Array, Array], prior: Array, bounds: Array) -> Array:
        """Sums of three clipped leave-one-out margins, and of the mass of the lists."""
        told, (features, codes, slots) = self._deviations(prior), probe
        root, square = math.sqrt(3), np.sum(told**2, axis=1)
        entries = self.share**2 * self.degrees[:, None]
        heard = np.stack(
            [
                root * np.sum(told * self._of_features(features), axis=1) - square * self.squares,
                root * np.sum(told * self._of_lists(codes), axis=1) - square * entries[:, 0],
                root * np.sum(told * self._of_lists(slots), axis=1),
            ],
            axis=1,
        )
        terms = np.column_stack([np.clip(heard / bounds, -1, 1), np.minimum(np.sqrt(self.degrees) / FULL_LIST, 1)])
        return np.asarray(on_grid(terms * self.known[:, None]).sum(axis=0))

    def gradient(self, model: Blocks, weights: Weights, codes: Array) -> Summands:
        """The clipped summands: residuals times features, list and constant, and the label in the own slot.

        ``codes``: those of the model, as residuals may read them.
        """
        residual = self._of_features(model.features, self.taking) if weights.features else np.zeros(self.y.shape)
        if weights.cover:
            wide = weights.unit**2 * np.maximum(self.squares, 1)  # rounding in the norm of x
        else:
            wide = weights.features**2 * self.squares + weights.lists**2 * (self.degrees > 0) + BIAS**2
        factors = np.empty(len(residual))
        where = self.targets, self.lists.starts, self.lists.entries, self.share[:, 0]
        parts = weights.lists, weights.slot, weights.clip * RESERVE, weights.scale
        residuals(residual, *where, codes, BIAS * model.bias[0], wide, *parts, factors)
        told = weights.slot * factors[:, None] * (1 / self.classes - self.y)
        return Summands(
            products(self.x, self.centre, weights.features * residual, self.grid) if weights.features else None,
            on_grid(self.share * (weights.lists * residual)) if weights.lists else None,
            on_grid(told) if weights.lists and weights.slot else None,
            on_grid(BIAS * residual).sum(axis=0, keepdims=True),
        )

    def rows(self, model: Blocks, weights: Weights, codes: Array) -> Array:
        """Centred probabilities of every record that takes part; zero where there are no features, whatever the list."""
        logits = self._logits(model, codes, weights)[self.taking]
        classes, present = logits.shape[1], self.block.rows.occupied().numpy()[self.taking]
        centred = (softmax(logits, axis=1) - 1 / classes) / math.sqrt(1 - 1 / classes)
        return on_grid(at_most_unit(centred * present[:, None]))

    def _deviations(self, prior: Array) -> Array:
        """R: labels minus the prior, shortened to norm 1; zero without a label."""
        return at_most_unit((self.y - prior) * self.known[:, None])

    def _logits(self, model: Blocks, codes: Array, weights: Weights) -> Array:
        """Training-type logits: temperature 1, no other table."""
        logits = self._of_features(model.features) if weights.features else np.zeros(self.y.shape)
        if weights.lists:
            logits += self._of_lists(codes)
        logits += BIAS * model.bias
        return logits

    def _of_features(self, weights: Array, wanted: np.ndarray | None = None) -> Array:
        turned = np.concatenate([weights.T, np.zeros((weights.shape[1], 1))], axis=1)
        return CentredSums(self.centre, turned).scores(self.x, wanted)

    def _of_lists(self, codes: Array) -> Array:
        return np.asarray(self.share * self.lists.read(codes))


class Summands(NamedTuple):
    """Of one block: the sum over features, what every record sends along its list and puts into its own slot, the constants."""

    features: Array | None
    sent: Array | None
    own: Array | None
    bias: Array


def gradient_sum(
    private: Graph,
    slots: np.ndarray,
    centre: Array,
    model: Blocks,
    weights: Weights,
    grid: float,
    reader: Reader | None = None,
) -> Blocks:
    """The sum of all clipped summands of the records in these slots."""
    codes = np.ascontiguousarray(shortened(model.codes, weights.reading) if weights.cover else model.codes)

    def part(block: Block) -> tuple[Block, Summands]:
        return block, Records(block, slots, centre, weights.floor, grid, reader).gradient(model, weights, codes)

    total, features = Blocks.zeros(len(model.features), len(model.codes), codes.shape[1]), None
    for block, found in engine.each(private, part):
        if found.features is not None:
            features = found.features if features is None else features + found.features
        if found.sent is not None:
            block.lists.spread_into(found.sent, total.codes)
        if found.own is not None:
            total.codes[block.slots] += found.own
        total.bias += found.bias
    if features is not None:
        total.features = finished_products(features, centre, grid).T
    return total


def probe_sum(private: Graph, slots: np.ndarray, centre: Array, prior: Array, floor: int, grid: float) -> Array:
    """The sums of R x, R a and, in its own slot, R; each divided by sqrt 3."""
    codes, own, features = np.zeros((private.nodes, len(prior))), np.zeros((private.nodes, len(prior))), None

    def part(block: Block) -> tuple[Block, Array, Array, Array]:
        records = Records(block, slots, centre, floor, grid)
        return block, *records.probe(prior), records.share

    for block, found, told, share in engine.each(private, part):
        features = found if features is None else features + found
        block.lists.spread_into(on_grid(share * told), codes)
        own[block.slots] += on_grid(told)
    assert features is not None
    return np.concatenate([finished_products(features, centre, grid).T, codes, own]).ravel()


def shortened(table: Array, most: float) -> Array:
    """Rows of a released table, shortened to norm ``most`` where they are longer."""
    table = np.ascontiguousarray(table)
    found = np.empty_like(table)
    shorten(table, most * RESERVE, found)
    return found
