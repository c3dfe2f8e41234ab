"""Bugs of Roster: whose list, label and row a summand reads, and what edge cover rests on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp

from graphveil.graph import Lists
from graphveil.methods.roster import bounds, records
from graphveil.methods.roster.predictor import TEMPERATURE, RosterPredictor
from graphveil.methods.roster.records import Records
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
        with patch.object(self, "squares", 0 * self.squares):
            return original(self, *arguments)

    return margins


@contextmanager
def query_rows_read_by_labelled_nodes() -> Iterator[None]:
    """Logits of labelled people read the clean features of their contacts, who do not pay for gradients."""
    start, of_features = Records.__init__, Records._of_features

    def remembering(self, private, slots, centre, floor):  # type: ignore[no-untyped-def]
        start(self, private, slots, centre, floor)
        self.whole = private, centre, floor

    def reading(self, weights):  # type: ignore[no-untyped-def]
        found = of_features(self, weights)
        if len(self.slots) == self.nodes or not self.known.any():
            return found
        private, centre, floor = self.whole
        everybody = Records(private, np.arange(self.nodes), centre, floor)
        return found + 3 * self._of_lists(of_features(everybody, weights))

    with patch.object(Records, "__init__", remembering), patch.object(Records, "_of_features", reading):
        yield


@planted(records, "shortened")
def residuals_read_codes_at_full_length(original):
    return lambda table, most: table


@planted(Records, "__init__")
def floor_forgotten(original):
    """Lists are divided by the root of their length, however short."""
    return lambda self, private, slots, centre, floor: original(self, private, slots, centre, 1)


@planted(Records, "rows")
def temperature_inside_rows(original):
    """Rows are made of the logits of predictions instead of those of training."""

    def rows(self, model, weights):
        of_lists = self._of_lists
        with patch.object(self, "_of_lists", lambda codes: TEMPERATURE * of_lists(codes)):
            return original(self, model, weights)

    return rows


@planted(RosterPredictor, "logits")
def prediction_reads_who_lists_a_node(original):
    return lambda self, graph: original(self, graph) + graph.lists.aggregate(self.codes)
