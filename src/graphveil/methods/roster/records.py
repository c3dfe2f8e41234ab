"""What a record brings to each of Roster's sums: its centred unit features x, its own contact list a, its label y.

Every method here returns a sum of one summand per record; the summand of a record reads that record and released numbers, nothing
else. List, slot and bias blocks are truncated to the grid 2^-24 and added exactly; the sum over features is in float64, whose
rounding the plan charges. A labelled slot without a label adds zero everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import softmax

from graphveil import learn
from graphveil.graph import Graph
from graphveil.graph.lists import on_grid
from graphveil.graph.unit import unit_rows
from graphveil.learn.centred_sums import BIAS, FLOOR
from graphveil.methods.common.aggregation import at_most_unit
from graphveil.methods.common.labels import one_hot
from graphveil.methods.roster.summands import add_summands, shorten
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
    """The records in these public slots, with lists divided by sqrt(max(d, floor)); ``centre`` is released."""

    def __init__(self, private: Graph, slots: np.ndarray, centre: Array, floor: int) -> None:
        self.slots, self.nodes = slots, private.nodes
        self.x = learn.CentredRows(unit_rows(private.rows).take(slots), centre, floor=FLOOR, bias=0.0)
        self.squares = self.x.squared_norms().numpy()
        self.lists = private.lists.of(slots)
        self.degrees = self.lists.degrees
        self.share = private.lists.mass_weights(floor)[slots][:, None]  # what an entry of the list weighs, rounded down
        self.y = one_hot(private.labels[slots], private.classes)
        self.known = np.asarray(self.y.sum(axis=1))
        self.targets = np.where(self.known > 0, private.labels[slots], -1)
        self.present: Array = private.rows.occupied().numpy()[slots].astype(np.float64)

    def labels(self) -> Array:
        """The sum of all labels."""
        return np.asarray(self.y.sum(axis=0))

    def probe(self, prior: Array) -> Array:
        """The sums of R x, R a and, in its own slot, R; each divided by sqrt 3."""
        told = self._deviations(prior) * (RESERVE / np.sqrt(np.maximum(self.squares, 1) + 2))[:, None]
        features = self.x.transpose_matmul(torch.from_numpy(told)).numpy()[:-1]
        return np.concatenate([features, self._sum_over_lists(told), self._in_own_slots(told)]).ravel()

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

    def gradient(self, model: Blocks, weights: Weights) -> Blocks:
        """The sum of clipped summands: residuals times features, list and constant, and the label in the own slot."""
        codes = shortened(model.codes, weights.reading) if weights.cover else model.codes
        residual = self._of_features(model.features) if weights.features else np.zeros(self.y.shape)
        if weights.cover:
            wide = weights.unit**2 * np.maximum(self.squares, 1)  # rounding in the norm of x
        else:
            wide = weights.features**2 * self.squares + weights.lists**2 * (self.degrees > 0) + BIAS**2
        total = Blocks.zeros(self.x.shape[1] - 1, self.nodes, residual.shape[1])
        where = self.lists.starts, self.lists.entries, self.share[:, 0], self.slots
        parts = weights.lists, weights.slot, weights.clip * RESERVE, weights.scale
        read = np.ascontiguousarray(codes), BIAS * model.bias[0]
        add_summands(residual, self.targets, *where, *read, wide, *parts, total.codes)
        if weights.features:
            total.features = weights.features * self.x.transpose_matmul(torch.from_numpy(residual)).numpy()[:-1]
        total.bias = on_grid(BIAS * residual).sum(axis=0, keepdims=True)
        return total

    def rows(self, model: Blocks, weights: Weights) -> Array:
        """Centred probabilities of every record; zero where there are no features, whatever the list."""
        codes = shortened(model.codes, weights.row_reading) if weights.cover else model.codes
        logits = self._logits(model, codes, weights)
        classes = logits.shape[1]
        centred = (softmax(logits, axis=1) - 1 / classes) / math.sqrt(1 - 1 / classes)
        return on_grid(at_most_unit(centred * self.present[:, None]))

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

    def _of_features(self, weights: Array) -> Array:
        padded = np.concatenate([weights, np.zeros((1, weights.shape[1]))])
        return np.asarray(self.x.matmul(torch.from_numpy(padded)).numpy())

    def _of_lists(self, codes: Array) -> Array:
        return np.asarray(self.share * self.lists.read(codes))

    def _sum_over_lists(self, values: Array) -> Array:
        return self.lists.spread(on_grid(self.share * values))

    def _in_own_slots(self, values: Array) -> Array:
        table = np.zeros((self.nodes, values.shape[1]))
        table[self.slots] = on_grid(values)
        return table


def shortened(table: Array, most: float) -> Array:
    """Rows of a released table, shortened to norm ``most`` where they are longer."""
    table = np.ascontiguousarray(table)
    found = np.empty_like(table)
    shorten(table, most * RESERVE, found)
    return found
