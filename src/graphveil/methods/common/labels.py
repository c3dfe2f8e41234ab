"""Labels as rows, and labels that training records tell by randomised response."""

from __future__ import annotations

import numpy as np

from graphveil.graph import Graph
from graphveil.graph.blocks import Block
from graphveil.privacy.curator import Curator
from graphveil.privacy.facts import PublicFacts
from graphveil.privacy.mechanisms import Exact, RandomizedResponse
from graphveil.privacy.plan import Release
from graphveil.privacy.promise import Promise


def one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    """Rows of zeros where there is no label."""
    rows = np.zeros((labels.size, classes))
    known = (labels >= 0) & (labels < classes)
    rows[np.flatnonzero(known), labels[known]] = 1.0
    return rows


def label_rows(graph: Graph | Block, kinds: tuple[str, ...] = ("train",)) -> np.ndarray:
    """Labels of the nodes of these kinds as unit rows, zero for everybody else and for nodes without a label."""
    telling = np.logical_or.reduce([graph.masks[kind] for kind in kinds])
    return one_hot(np.where(telling, graph.labels, -1), graph.classes)


def label_release(name: str, facts: PublicFacts, promise: Promise, epsilon: float, lemma: str) -> Release:
    """Randomised training labels; no label is a category of its own."""
    noise = RandomizedResponse(epsilon, facts.classes + 1) if promise.private else Exact()
    return Release(name, noise, {"train": 1.0}, lemma)


def noisy_labels(curator: Curator, name: str) -> np.ndarray:
    """What that release says: -1 where there is no label."""
    train, none = np.flatnonzero(curator.masks["train"]), curator.facts.classes
    query = lambda private: np.where(private.labels[train] < 0, none, private.labels[train])
    labels = np.full(curator.facts.nodes, -1)
    labels[train] = curator.release(name, query)
    return np.where(labels == none, -1, labels)
