"""A predictor learned from reports: what was learned, the reports it learned from, and scores for whoever comes later.

Scores are never stored: those of the slots are computed from the kept reports whenever they are asked for, those of newcomers
from the same reports and their own. A newcomer sends what everybody sent, randomised by the same client, and no label.
Tests: ``tests/cli/test_newcomers.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.exchange.files import Files
from graphveil.exchange.randomizers.base import Contacts
from graphveil.exchange.round import Round
from graphveil.graph import Graph
from graphveil.privacy.local import Openness, Part


class ReportsPredictor(ABC):
    """Subclasses score the slots (``slot_scores``) and newcomers (``newcomers``); ``clear_arrays`` were sent in the clear."""

    public = True
    slot_arrays: tuple[str, ...]
    clear_arrays: tuple[str, ...] = ()  # stay with whoever collected them: never in the part of a run that is published

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts

    @abstractmethod
    def slot_scores(self) -> np.ndarray:
        """Logits of every slot."""

    @abstractmethod
    def newcomers(self, files: Files, directed: bool) -> np.ndarray:
        """Logits of those behind the slots, from what they sent; ``directed``: their contacts need not list them."""

    def blind_scores(self, slots: np.ndarray) -> np.ndarray:
        """Logits of some slots, computed without the labels that they reported themselves; a network reads none."""
        return np.asarray(self.scores[slots])

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]: ...

    @abstractmethod
    def config(self) -> dict[str, Any]: ...

    @cached_property
    def scores(self) -> np.ndarray:
        return self.slot_scores()

    def logits(self, graph: Graph) -> np.ndarray:
        return self.scores

    def public_logits(self, nodes: int) -> np.ndarray:
        """Anybody may see them: nothing but reports, and what was declared public, is in them."""
        return self.scores


def sent_values(files: Files, round: Round) -> Any:
    """What every newcomer answered in a round, in the order of their slots; an error if somebody did not."""
    found: list[Any] = []
    order: list[np.ndarray] = []
    for report in files.answer(round, None):
        order.append(report.ids - files.known)
        found.append(report.values)
    place = np.concatenate(order)
    silent = np.setdiff1d(np.arange(len(files.ids) - files.known), place)
    if len(silent):
        raise InputError(f"{files.ids[files.known + silent[0]]!r} sent no good report in round {round.name!r}")
    if isinstance(found[0], Contacts):
        raise InputError(f"round {round.name!r} reports lists of contacts: newcomers cannot be scored by them")
    stacked: Any = sp.vstack(found, format="csr") if sp.issparse(found[0]) else np.concatenate(found)
    return stacked[np.argsort(place, kind="stable")]


def sent_rows(files: Files) -> Any:
    """Every newcomer's features: as reported, or in the clear if that is how they are sent."""
    if files.promise.features is Openness.RAW:
        return files.in_the_clear(Part.FEATURES)[files.known :]
    asked = [round for round in files.rounds.values() if round.part is Part.FEATURES]
    if not asked:
        raise InputError("the model reads features, and these reports have none")
    return sent_values(files, asked[0])


def joined_edges(edges: np.ndarray, files: Files, directed: bool) -> np.ndarray:
    """The public edges and those of the newcomers, who list people the model knows or each other."""
    if files.promise.edges is not Openness.RAW:
        raise InputError("the model reads edges in the clear: newcomers send their contacts so (--edges-epsilon raw)")
    more = files.in_the_clear(Part.EDGES)
    both = more if directed else np.concatenate([more, more[::-1]], axis=1)
    return np.concatenate([edges, np.unique(both, axis=1)], axis=1)
