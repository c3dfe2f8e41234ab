"""Roster's queries: each a map over blocks of records and a sum in the curator's process, the same for any cut into blocks."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from graphveil.graph import Graph
from graphveil.learn import engine
from graphveil.learn.engine.kept import ROOM, Kept
from graphveil.learn.grids import coefficient_grid, rounded_weights, row_bits
from graphveil.methods.roster.records import RESERVE, Blocks, Records
from graphveil.methods.roster.summands import shorten
from graphveil.methods.roster.weights import Weights
from graphveil.privacy.noise import Array

if TYPE_CHECKING:
    from graphveil.graph.blocks import Block


class Reader:
    """Makes the records of a block under the mask ``wanted`` ready, and keeps them for later steps where there is room."""

    def __init__(self, wanted: np.ndarray, centre: Array, bits: int, room: int = ROOM) -> None:
        self.wanted, self.bits = wanted, bits
        self._ready = Kept(partial(Records, wanted=wanted, centre=centre, bits=bits), room)

    def __call__(self, block: Block) -> Records:
        return self._ready(block)


class Sums:
    """Sums over the records in these public slots, with lists divided by sqrt(max(d, floor)); ``centre`` is released."""

    def __init__(self, private: Graph, slots: np.ndarray, centre: Array, floor: int, room: int = ROOM) -> None:
        wanted = np.zeros(private.nodes, dtype=bool)
        wanted[slots] = True
        self.private, self.records, self.floor = private, len(slots), floor
        self._reader = Reader(wanted, centre, row_bits(len(slots)), room)

    def at(self, floor: int) -> Sums:
        """The same records with another floor."""
        other = copy(self)
        other.floor = floor
        return other

    def labels(self) -> Array:
        """The sum of all labels."""
        reader = self._reader
        return engine.total(self.private, lambda block: reader(block).labels())

    def probe(self, prior: Array) -> Array:
        """The sums of R x, R a and, in its own slot, R; each divided by sqrt 3."""
        reader, floor, unit = self._reader, self.floor, coefficient_grid(self.records, 1.0)
        features, nodes = self.private.features, self.private.nodes
        total = np.zeros((features + 2 * nodes, self.private.classes))
        for sent in engine.each(self.private, lambda block: reader(block).probe(prior, floor, unit)):
            total[:features] += sent.features
            sent.add_to(total[features : features + nodes], total[features + nodes :])
        return total.ravel()

    def margins(self, probe: tuple[Array, Array, Array], prior: Array, bounds: Array) -> Array:
        """Sums of three clipped leave-one-out margins, and of the mass of the lists."""
        reader, floor = self._reader, self.floor
        read = rounded_weights(probe[0], reader.bits), probe[1], probe[2]
        return engine.total(self.private, lambda block: reader(block).margins(read, prior, bounds, floor))

    def gradient(self, model: Blocks, weights: Weights) -> Blocks:
        """The sum of clipped summands: residuals times features, list and constant, and the label in the own slot."""
        reader, unit = self._reader, coefficient_grid(self.records, weights.clip * weights.scale)
        read = self._read(model, weights, weights.reading)
        total = Blocks.zeros(self.private.features, self.private.nodes, self.private.classes)
        for sent in engine.each(self.private, lambda block: reader(block).gradient(read, weights, unit)):
            total.features += sent.features
            total.bias += sent.bias
            if weights.lists:
                sent.add_to(total.codes, total.codes)
        return total

    def rows(self, model: Blocks, weights: Weights) -> Array:
        """Centred probabilities of every record; zero where there are no features, whatever the list."""
        reader, read = self._reader, self._read(model, weights, weights.row_reading)
        return engine.gathered(self.private, lambda block: reader(block).rows(read, weights), reader.wanted)

    def _read(self, model: Blocks, weights: Weights, most: float) -> Blocks:
        """The model as residuals and rows read it; released numbers, rounded and shortened."""
        features = model.features if weights.features else np.zeros_like(model.features)
        codes = shortened(model.codes, most) if weights.cover and weights.lists else model.codes
        return Blocks(rounded_weights(features, self._reader.bits), codes, model.bias)


def shortened(table: Array, most: float) -> Array:
    """Rows of a released table, shortened to norm ``most`` where they are longer."""
    table = np.ascontiguousarray(table)
    found = np.empty_like(table)
    shorten(table, most * RESERVE, found)
    return found
