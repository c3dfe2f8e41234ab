"""Bugs that were thought of after the checks, by somebody who had not written these."""

from __future__ import annotations

import numpy as np

from graphveil.exchange.client import Client
from graphveil.exchange.randomizers import Contacts, categories
from graphveil.exchange.report import Report
from graphveil.learn import engine
from graphveil.methods import gap
from graphveil.methods.common.aggregation import at_most_unit
from graphveil.privacy.local import Part
from graphveil.privacy.noise import Noise
from tests.audit.mutants.planting import planted


@planted(Noise, "gaussian")
def noise_above_zero(original):
    return lambda self, sigma, shape: np.abs(original(self, sigma, shape))


@planted(Noise, "gaussian")
def noise_cut_at_two_sigma(original):
    def gaussian(self, sigma, shape):
        found = original(self, sigma, shape)
        while (far := np.abs(found) > 2 * sigma).any():
            found[far] = original(self, sigma, int(far.sum()))
        return found

    return gaussian


@planted(Noise, "laplace")
def laplace_noise_above_zero(original):
    return lambda self, scale, shape: np.abs(original(self, scale, shape))


@planted(Noise, "coins")
def larger_batches_than_planned(original):
    return lambda self, rate, size: original(self, min(1.0, 1.3 * rate), size)


@planted(Noise, "positions")
def fewer_flips(original):
    return lambda self, rate, below: original(self, 0.8 * rate, below)


@planted(gap, "aggregate_blocks")
def weights_by_the_lists_of_others(original):
    """How many list a node, instead of how many it lists."""

    def aggregate(private, sent, promise):
        weights = 1 / np.sqrt(np.maximum(private.lists.in_degrees, 1))
        weighted = lambda block: at_most_unit(sent(block)) * weights[block.slots, None]
        return engine.spread(private, weighted, np.ones(private.nodes, dtype=bool), None)

    return aggregate


@planted(categories, "each_contact")
def reports_in_the_order_of_contacts(original):
    def each_contact(records, draw):
        many = isinstance(records, Contacts)
        return Contacts(records.starts, draw(records.targets)) if many else original(records, draw)

    return each_contact


@planted(Client, "_randomize")
def people_without_contacts_keep_their_label(original):
    """Where the lengths of lists are hidden, who reports must not depend on them."""

    def _randomize(self, round, broadcast):
        found = original(self, round, broadcast)
        if round.part is not Part.LABELS or Part.EDGES not in self._records:
            return found
        there = np.isin(found.ids, self.ids[self._records[Part.EDGES].degrees > 0])
        return Report(found.round, found.ids[there], found.values[there], found.holder)

    return _randomize
