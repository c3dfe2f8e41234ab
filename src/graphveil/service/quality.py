"""How good a model is, as far as released labels say: nothing clean is known to a service.

The model is compared with the *reported* labels of the people who were kept for validation. With channel T[c, r] = P(report r |
class c) of k-ary randomised response, agreement with reports is keep a + other (1 - a), a the accuracy: solved for a, it is an
unbiased estimate of the accuracy on their true labels. Scores that would read the reports they are compared with are computed
without them. What remains is that the same people chose the epoch or the head. Tests: ``tests/service/test_service.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphveil.exchange.client import NO_LABEL
from graphveil.exchange.files import Files
from graphveil.exchange.randomizers.categories import LabelResponse
from graphveil.privacy.local import Openness, Part


def figures_of(model: Any, files: Files) -> dict[str, Any]:
    """Agreement with released validation labels, and the accuracy it stands for with its standard error."""
    from graphveil.methods.local_method import split_of_labelled

    chosen = np.flatnonzero(split_of_labelled(files.labelled)["calibration"])
    blind = getattr(model.predictor, "blind_scores", lambda slots: model.predictor.scores[slots])
    guess = blind(chosen).argmax(axis=1)
    if files.promise.labels is Openness.RAW:
        reported, keep, other = files.in_the_clear(Part.LABELS)[chosen], 1.0, 0.0
    else:
        asked = next(round for round in files.rounds.values() if round.part is Part.LABELS)
        told = np.full(len(files.ids), NO_LABEL)
        for report in files.answer(asked, None):
            told[report.ids] = report.values
        response = asked.randomizer
        assert isinstance(response, LabelResponse)
        reported, keep, other = told[chosen], response.keep, response.other
    agreement = float(np.mean(guess == reported))
    drawn_in = (agreement * len(chosen) + 1) / (len(chosen) + 2)  # a share of 0 or 1 is not certain either
    spread = np.sqrt(drawn_in * (1 - drawn_in) / max(len(chosen), 1)) / (keep - other)
    accuracy = (agreement - other) / (keep - other)
    return {
        "people": len(files.ids),
        "validation": len(chosen),
        "agreement": agreement,
        "accuracy": float(min(max(accuracy, 0.0), 1.0)),
        "standard_error": float(spread),
    }
