"""Bugs of Roster: whose list, label and row a summand reads, and what edge cover rests on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from graphveil.graph import Lists
from graphveil.graph.blocks import Block
from graphveil.methods.roster import bounds, sums
from graphveil.methods.roster.predictor import TEMPERATURE, RosterPredictor
from graphveil.methods.roster.records import Blocks, Records
from graphveil.methods.roster.sums import Sums
from tests.audit.mutants.planting import planted


@planted(Lists, "from_edge_index")
def own_slot_among_the_contacts(original):
    """Everybody is on their own list: the own-slot row is no longer orthogonal to it, and the clip formula is wrong."""

    def with_loops(edge_index, nodes):
        matrix = original(edge_index, nodes)._matrix
        return Lists((matrix + sp.identity(nodes, dtype=bool, format="csr")).tocsr())

    return with_loops


@contextmanager
def validation_labels_outside_the_ledger() -> Iterator[None]:
    """Calibration records take part in every sum, training records alone are charged."""
    with patch.object(bounds, "LABELLED", ("train",)):
        yield


@planted(Records, "margins")
def leave_one_out_term_forgotten(original):
    """The own part of the probe stays in the margin of the features; each term is still clipped."""

    def margins(self, *arguments):
        with patch.object(Records, "squares", 0 * self.squares):
            return original(self, *arguments)

    return margins


@planted(Sums, "gradient")
def query_rows_read_by_labelled_nodes(original):
    """Logits of labelled people read the clean features of their contacts, who do not pay for gradients."""

    def gradient(self, model, weights):
        private, everybody = self.private, np.ones(self.private.nodes, dtype=bool)
        records = Records(Block(private, slice(0, private.nodes)), everybody, np.zeros(private.features), 20)
        codes = model.codes + 3 * records.x.scores(model.features)
        return original(self, Blocks(model.features, codes, model.bias), weights)

    return gradient


@planted(sums, "shortened")
def residuals_read_codes_at_full_length(original):
    return lambda table, most: table


@planted(Records, "share")
def floor_forgotten(original):
    """Lists are divided by the root of their length, however short."""
    return lambda self, floor: original(self, 1)


@planted(Records, "__init__")
def lists_divided_by_the_degrees_of_others(original):
    """How many list a node, instead of how many it lists."""

    def start(self, block, wanted, centre, bits):
        original(self, block, wanted, centre, bits)
        self.degrees = block._graph.lists.in_degrees[self.first + self.chosen]

    return start


@planted(Records, "rows")
def temperature_inside_rows(original):
    """Rows are made of the logits of predictions instead of those of training."""

    def rows(self, model, weights):
        of_lists = self._of_lists
        with patch.object(self, "_of_lists", lambda *read: TEMPERATURE * of_lists(*read)):
            return original(self, model, weights)

    return rows


@planted(RosterPredictor, "logits")
def prediction_reads_who_lists_a_node(original):
    return lambda self, graph: original(self, graph) + graph.lists.aggregate(self.codes)
