"""Bugs of saving and prediction: what is written to disk, and what an answer reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from graphveil.files import write_json
from graphveil.methods.base import PrivateMethod
from graphveil.methods.common.own_predictor import OwnPredictor
from graphveil.methods.gap.predictor import GapPredictor
from graphveil.methods.model import Access, Model
from tests.audit.mutants.planting import planted


@contextmanager
def labels_saved_beside_the_model() -> Iterator[None]:
    """A summary of the training labels, for convenience, lies in the folder of the run."""
    fit, save = PrivateMethod.fit, Model.save

    def fitted(self, data, promise, **options):  # type: ignore[no-untyped-def]
        model = fit(self, data, promise, **options)
        model.classes = np.bincount(np.maximum(np.asarray(data.y), 0)).tolist()
        return model

    def saved(self, path):  # type: ignore[no-untyped-def]
        save(self, path)
        write_json(Path(path) / "classes.json", self.classes)

    with patch.object(PrivateMethod, "fit", fitted), patch.object(Model, "save", saved):
        yield


@planted(PrivateMethod, "validated")
def edges_counted_on_the_certificate(original):
    """The true number of edges is told as if it were public."""

    def validated(self, data, on_bad_rows):
        graph = original(self, data, on_bad_rows)
        return replace(graph, notes=(*graph.notes, f"{graph.lists.arcs} entries in all lists"))

    return validated


@planted(OwnPredictor, "logits")
def prediction_normalised_over_everybody(original):
    """Scores are centred by the mean over all who are asked."""

    def logits(self, graph):
        own = original(self, graph)
        return own - own.mean(axis=0)

    return logits


@planted(OwnPredictor, "logits")
def prediction_smoothed_over_contacts(original):
    def logits(self, graph):
        own = original(self, graph)
        return own + 0.1 * graph.lists.aggregate(own)

    return logits


@planted(Model, "_check")
def anybody_may_ask(original):
    """Predictions from private features are given to everybody, unpaid."""
    return lambda self, access: Access(access)


@contextmanager
def prediction_reads_the_edges() -> Iterator[None]:
    """A prediction sums over the true neighbours, without noise."""
    original = GapPredictor.logits

    def logits(self, graph):  # type: ignore[no-untyped-def]
        own = original(self, graph)
        return own + graph.lists.aggregate(own)

    with patch.object(GapPredictor, "logits", logits):
        yield
