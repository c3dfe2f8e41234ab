"""What the records of one block bring to each of Roster's sums: centred unit features x, own contact lists a, labels y.

The summand of a record reads that record and released numbers, nothing else. Features lie on a grid on which sums are exact
(``learn/grid_rows.py``); what goes along lists, into own slots and into the constants is truncated to the grid 2^-24. So sums are
the same whatever the blocks. A labelled slot without a label adds zero everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import softmax

from graphveil.graph.lists import OwnLists, mass_weights, on_grid
from graphveil.learn.centred_sums import BIAS
from graphveil.learn.grid_rows import DenseGridRows, GridRows, grid_rows, in_fours
from graphveil.methods.common.aggregation import at_most_unit
from graphveil.methods.common.labels import one_hot
from graphveil.methods.roster import summands
from graphveil.methods.roster.weights import Weights
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from graphveil.graph.blocks import Block

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
        return cls.of(np.zeros((features + nodes + 1, classes)), features)

    @classmethod
    def of(cls, table: Array, features: int) -> Blocks:
        """Views of one table."""
        return cls(table[:features], table[features:-1], table[-1:])

    def parts(self) -> tuple[Array, Array, Array]:
        return self.features, self.codes, self.bias

    def scale(self, factor: float) -> None:
        for part in self.parts():
            part *= factor

    def flat(self) -> Array:
        """All numbers in a row; without a copy where they are views of one table."""
        table = self.features.base
        if table is not None and table is self.bias.base and len(table) == sum(map(len, self.parts())):
            return np.asarray(table.reshape(-1))
        return np.concatenate(self.parts()).ravel()


@dataclass(frozen=True, eq=False)
class Sent:
    """What a block adds to a sum: numbers per feature, constants, messages along its lists and into its own slots."""

    features: Array
    bias: Array
    lists: OwnLists
    chosen: np.ndarray
    slots: np.ndarray
    messages: Array
    own: Array

    def add_to(self, codes: Array, own: Array) -> None:
        """Messages are added to the ``codes`` of whom they reach, the others to those of their ``own`` slots."""
        summands.spread_rows(self.lists.starts, self.lists.entries, self.chosen, self.messages, codes)
        summands.add_rows(self.slots, self.own, own)


class Records:
    """The records of a block under the (public) mask ``wanted``, ready to be read; ``centre`` is released."""

    def __init__(self, block: Block, wanted: np.ndarray, centre: Array, bits: int) -> None:
        self.first, self.classes = int(block.slots.start), block.classes
        self.chosen = np.flatnonzero(wanted[block.slots])
        self.x: GridRows = grid_rows(block, self.chosen, centre, bits)
        self.lists = block.lists
        self.degrees = self.lists.degrees[self.chosen]
        labels = block.labels[self.chosen]
        self.targets = np.where((labels >= 0) & (labels < self.classes), labels, -1)
        self.present = block.rows.occupied().numpy()[self.chosen]

    @property
    def nbytes(self) -> int:
        return self.x.nbytes + self.lists.starts.nbytes + self.lists.entries.nbytes + 4 * self.degrees.nbytes

    @property
    def squares(self) -> Array:
        return self.x.squares

    @property
    def known(self) -> Array:
        return np.asarray(self.targets >= 0, dtype=np.float64)

    def share(self, floor: int) -> Array:
        """What an entry of the list weighs, rounded down."""
        return mass_weights(self.degrees, floor)

    def labels(self) -> Array:
        """The sum of all labels."""
        return np.asarray(one_hot(self.targets, self.classes).sum(axis=0))

    def probe(self, prior: Array, floor: int, unit: float) -> Sent:
        """The sums of R x, R a and, in its own slot, R; each divided by sqrt 3."""
        told = self._deviations(prior) * (RESERVE / np.sqrt(np.maximum(self.squares, 1) + 2))[:, None]
        messages = on_grid(self.share(floor)[:, None] * told)
        return self._sent(self.x.sums(told, unit), np.zeros(self.classes), messages, on_grid(told))

    def margins(self, probe: tuple[Array, Array, Array], prior: Array, bounds: Array, floor: int) -> Array:
        """Sums of three clipped leave-one-out margins, and of the mass of the lists."""
        told, (features, codes, slots) = self._deviations(prior), probe
        root, square = math.sqrt(3), np.sum(told**2, axis=1)
        heard = np.stack(
            [
                root * np.sum(told * self._of_features(features), axis=1) - square * self.squares,
                root * np.sum(told * self._of_lists(codes, floor), axis=1)
                - square * (self.share(floor) ** 2 * self.degrees),
                root * np.sum(told * self._of_lists(slots, floor), axis=1),
            ],
            axis=1,
        )
        terms = np.column_stack([np.clip(heard / bounds, -1, 1), np.minimum(np.sqrt(self.degrees) / FULL_LIST, 1)])
        return np.asarray(on_grid(terms * self.known[:, None]).sum(axis=0))

    def gradient(self, model: Blocks, weights: Weights, unit: float) -> Sent:
        """The sum of clipped summands: residuals times features, list and constant, and the label in the own slot."""
        if weights.cover:
            wide = weights.unit**2 * np.maximum(self.squares, 1)  # rounding in the norm of x
        else:
            wide = weights.features**2 * self.squares + weights.lists**2 * (self.degrees > 0) + BIAS**2
        own = len(self.chosen) if weights.slot > 0 else 0
        messages, slots = np.zeros((len(self.chosen), self.classes)), np.zeros((own, self.classes))
        bias = np.zeros(self.classes)
        where = self.lists.starts, self.lists.entries, self.chosen, self.share(weights.floor), self.targets, wide
        read = np.ascontiguousarray(model.codes).ravel(), BIAS * model.bias[0]
        parts = weights.lists, weights.slot, weights.clip * RESERVE, weights.scale
        rest = weights.features, unit
        if isinstance(self.x, DenseGridRows):
            x, total = self.x.values, np.zeros((self.classes, self.x.values.shape[1]))
            read_by = np.ascontiguousarray(model.features.T)
            summands.dense_summands(x, read_by, *rest, total, where, read, parts, (messages, slots, bias))
            return self._sent(total.T, bias, messages, slots)
        rows = self.x.starts, self.x.columns, self.x.values, self.x.scales
        known = in_fours(model.features), self.x.offsets(model.features), self.x.grid
        whole = self.x.nothing(self.classes)
        summands.sparse_summands(rows, known, *rest, whole, where, read, parts, (messages, slots, bias))
        return self._sent(self.x.finished(whole, self.classes, unit), bias, messages, slots)

    def rows(self, model: Blocks, weights: Weights) -> Array:
        """Centred probabilities of every record; zero where there are no features, whatever the list."""
        logits = self._of_features(model.features) if weights.features else np.zeros((len(self.chosen), self.classes))
        if weights.lists:
            logits += self._of_lists(model.codes, weights.floor)
        logits += BIAS * model.bias
        centred = (softmax(logits, axis=1) - 1 / self.classes) / math.sqrt(1 - 1 / self.classes)
        return on_grid(at_most_unit(centred * self.present[:, None]))

    def _sent(self, features: Array, bias: Array, messages: Array, own: Array) -> Sent:
        return Sent(features, bias, self.lists, self.chosen, self.first + self.chosen, messages, own)

    def _deviations(self, prior: Array) -> Array:
        """R: labels minus the prior, shortened to norm 1; zero without a label."""
        return at_most_unit((one_hot(self.targets, self.classes) - prior) * self.known[:, None])

    def _of_features(self, weights: Array) -> Array:
        return self.x.scores(weights)

    def _of_lists(self, codes: Array, floor: int) -> Array:
        found = np.empty((len(self.chosen), self.classes))
        summands.read_rows(self.lists.starts, self.lists.entries, self.chosen, np.ascontiguousarray(codes), found)
        return np.asarray(self.share(floor)[:, None] * found)
