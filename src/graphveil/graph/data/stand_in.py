"""Stand-ins: graphs of given sizes that look like real ones, for whoever must not look at the real one yet."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph.data.synthetic import by_weight, data_of, powerlaw_weights, second_ends
from graphveil.graph.data.words import Numbers, Vocabulary, rows_of_strength
from graphveil.graph.graph import MASKS
from graphveil.graph.layout import features_tensor

EXPONENT = 3.0  # of the degrees' tail
CIRCLE = 50  # people, at least
NARROW = 32  # columns: fewer are numbers, more are words


def stand_in(
    seed: int = 0,
    *,
    nodes: int = 2000,
    features: int = 500,
    classes: int = 5,
    mean_degree: float = 8.0,
    homophily: float = 0.7,
    feature_strength: float = 0.6,
    words: float = 30.0,
    circles: float = 0.5,
    misfits: float = 0.5,
    imbalance: float = 0.5,
    directed: bool = False,
    train: int | None = None,
    validation: int | None = None,
    test: int | None = None,
) -> Data:
    """A degree-corrected block model with heavy-tailed degrees, and features of a stated strength.

    Everybody has an edge; the others begin at people drawn by weight (``P(w > t) = t^-2``) and end in a block, by weight as well.

    Args:
        mean_degree: contacts per person.
        homophily: share of the edges inside a class.
        feature_strength: from 0, features say nothing about the class, to 1, they decide it
            (:mod:`graphveil.graph.data.words`).
        words: drawn per person; from 32 columns on, features are bags of words, below that numbers.
        circles: share of the edges that follow circles. A class consists of circles of 50 people or more; inside the class such
            an edge stays in its circle, across classes it goes to one circle that everybody in this one prefers.
        misfits: people who have the features and the contacts of another class, so that no method gets them right: their share is
            this part of the most that homophily and feature strength allow.
        imbalance: class ``c`` (from 1) has a share of the people proportional to ``c^-imbalance``.
        directed: contacts need not be mutual.
        train, validation, test: how many people are in the masks; by default 75/10/15 %.
    """
    counts = _counts(nodes, train, validation, test)
    shares = {"homophily": homophily, "feature_strength": feature_strength, "circles": circles, "misfits": misfits}
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise InputError(f"stand-in: {name} is {value}, give a number from 0 to 1")
    if classes < 2 or features < 0 or nodes < 2 * classes or not (words > 0 and imbalance >= 0):
        raise InputError("stand-in: give 2 classes and 2 nodes per class at least, words > 0 and imbalance >= 0")
    if not 0 < mean_degree < nodes:
        raise InputError(f"stand-in: mean_degree is {mean_degree}, give a positive number below the number of nodes")
    rng = np.random.default_rng([seed, 0x7374616E])
    seems = _classes(rng, nodes, classes, imbalance)
    most = min(1 - math.sqrt(homophily), (1 - feature_strength) * (1 - np.bincount(seems).max() / nodes))
    odd = rng.random(nodes) < misfits * most
    labels = np.where(odd, seems + rng.integers(1, classes, nodes), seems) % classes
    inside = _seeming_homophily(homophily, misfits * most, classes)
    arcs = _edges(rng, seems, mean_degree, inside, circles, directed)
    x = torch.zeros(nodes, 0)
    if features:
        wide = features >= NARROW
        draw = Vocabulary.of(rng, classes, features, words) if wide else Numbers.of(rng, classes, features)
        x = features_tensor(rows_of_strength(rng, draw, seems, labels, words if wide else features, feature_strength))
    data = data_of(x, labels, arcs, classes, "stand-in", directed)
    order = rng.permutation(nodes)
    for name, part in zip(MASKS, np.split(order, np.cumsum(counts))[:3], strict=True):
        data[name] = torch.zeros(nodes, dtype=torch.bool)
        data[name][part] = True
    data.parameters = {**shares, "mean_degree": mean_degree, "words": words, "imbalance": imbalance}
    return data


def _counts(nodes: int, *asked: int | None) -> tuple[int, ...]:
    """The sizes of the masks."""
    if all(count is None for count in asked):
        train, validation = round(0.75 * nodes), round(0.10 * nodes)
        return train, validation, nodes - train - validation
    counts = tuple(count or 0 for count in asked)
    if min(counts) < 0 or sum(counts) > nodes:
        raise InputError(f"stand-in: masks of {counts} people do not fit {nodes} nodes")
    return counts


def _classes(rng: np.random.Generator, nodes: int, classes: int, imbalance: float) -> np.ndarray:
    """Shuffled classes with their shares; two people at least in each."""
    shares = np.arange(1, classes + 1) ** -imbalance
    free = nodes - 2 * classes
    ends = np.rint(np.cumsum(shares) / shares.sum() * free).astype(int)
    return rng.permutation(np.repeat(np.arange(classes), np.diff(ends, prepend=0) + 2))


def _seeming_homophily(homophily: float, odd: float, classes: int) -> float:
    """Share of the edges inside a seeming class with which the labels, of which ``odd`` differ, have this homophily."""
    same = (1 - odd) ** 2 + odd**2 / (classes - 1)
    other = 2 * odd * (1 - odd) / (classes - 1) + odd**2 * (classes - 2) / (classes - 1) ** 2
    return min(1.0, max(0.0, (homophily - other) / (same - other))) if same > other else homophily


def _edges(
    rng: np.random.Generator, labels: np.ndarray, degree: float, homophily: float, circles: float, directed: bool
) -> np.ndarray:
    """Pairs of nodes, or arcs; linear in their number."""
    nodes, classes = labels.size, int(labels.max()) + 1
    weights = powerlaw_weights(rng, nodes, EXPONENT)
    count = max(1, round(nodes * degree / (1 if directed else 2)))
    everybody = rng.permutation(nodes)[:count]
    first = np.concatenate([everybody, by_weight(rng, np.arange(nodes), weights, count - everybody.size)])
    circle, first_circle = _circles(rng, labels, max(CIRCLE, round(4 * degree)))
    stays, follows = rng.random(count) < homophily, rng.random(count) < circles
    mass = np.bincount(labels, weights)
    target, preferred = labels[first].copy(), np.arange(first_circle[-1])
    for label in range(classes):
        others = np.where(np.arange(classes) == label, 0, mass)
        leaving = np.flatnonzero((labels[first] == label) & ~stays)
        target[leaving] = rng.choice(classes, leaving.size, p=others / others.sum())
        own = slice(first_circle[label], first_circle[label + 1])
        liked = rng.choice(classes, own.stop - own.start, p=others / others.sum())
        preferred[own] = rng.integers(first_circle[liked], first_circle[liked + 1])
    second = np.empty(count, dtype=np.int64)
    second[~follows] = second_ends(rng, target[~follows], labels, weights)
    circle_of_end = np.where(stays, circle[first], preferred[circle[first]])
    second[follows] = second_ends(rng, circle_of_end[follows], circle, weights)
    return np.stack([first, second])


def _circles(rng: np.random.Generator, labels: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Everybody's circle, and the number of the first circle of each class (and where the last one ends)."""
    sizes = np.bincount(labels)
    starts = np.concatenate([[0], np.cumsum(np.maximum(1, sizes // size))])
    order = np.argsort(labels, kind="stable")  # labels are shuffled: so is everybody within a class
    place = np.empty_like(labels)
    place[order] = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return starts[labels] + place % np.diff(starts)[labels], starts
