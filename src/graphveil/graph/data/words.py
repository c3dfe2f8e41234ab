"""Features as real ones often are, with a stated strength: bags of words with a heavy tail, or a few numbers.

The *strength* says how much features tell about the class, on a scale without units: an ordinary classifier that sees features
alone reaches the accuracy ``m + strength (1 - m)``, where ``m`` is the share of the largest class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

POPULARITY = 0.8  # exponent of Zipf's law
TYPICAL = 1.5  # log-standard deviation of how much more often a class uses a word
EVENNESS = 8.0  # of people's shares of typical words; towards 0 they say everything about their class or nothing
LENGTHS = 0.4  # log-standard deviation of the number of words of a node
ENTRIES = 300_000  # at most, in the sample on which a strength is measured
PEOPLE = 8_000  # the same
HALVINGS = 7
STEPS = 25  # of conjugate gradients
RIDGE = 1.0

Draw = Callable[[np.random.Generator, np.ndarray, float], sp.csr_matrix]
"""Rows for labels, whose strength grows with a number from 0 to 1."""


@dataclass(frozen=True)
class Vocabulary:
    """Cumulative chances of the words: of anybody, and of every class. A row has about ``words`` draws."""

    common: np.ndarray
    topics: np.ndarray
    words: float

    @classmethod
    def of(cls, rng: np.random.Generator, classes: int, width: int, words: float) -> Vocabulary:
        popular = rng.permutation((np.arange(width) + 3.0) ** -POPULARITY)
        typical = popular * np.exp(TYPICAL * rng.standard_normal((classes, width)))
        return cls(_cumulative(popular[None])[0], _cumulative(typical), words)

    def __call__(self, rng: np.random.Generator, labels: np.ndarray, share: float) -> sp.csr_matrix:
        """One row of 0 and 1 per label; on average ``share`` of its words are from the topic of its class."""
        people = np.arange(labels.size)
        lengths = np.maximum(1, np.rint(self.words * np.exp(LENGTHS * rng.standard_normal(labels.size)))).astype(int)
        typical = rng.binomial(lengths, rng.beta(EVENNESS * share, EVENNESS * (1 - share), labels.size))
        rows = [np.repeat(people, lengths - typical)]
        columns = [np.searchsorted(self.common, rng.random(rows[0].size), side="right")]
        for label, topic in enumerate(self.topics):
            members = people[labels == label]
            rows.append(np.repeat(members, typical[members]))
            columns.append(np.searchsorted(topic, rng.random(rows[-1].size), side="right"))
        found = np.concatenate(rows), np.concatenate(columns)
        shape = labels.size, self.common.size
        x = sp.csr_matrix((np.ones(found[0].size, dtype=np.float32), found), shape=shape)
        x.data[:] = 1  # words that were drawn twice had been added up
        return x


@dataclass(frozen=True)
class Numbers:
    """Class means, and normal noise around them."""

    centres: np.ndarray

    @classmethod
    def of(cls, rng: np.random.Generator, classes: int, width: int) -> Numbers:
        return cls(rng.standard_normal((classes, width)))

    def __call__(self, rng: np.random.Generator, labels: np.ndarray, share: float) -> sp.csr_matrix:
        noise = rng.standard_normal((labels.size, self.centres.shape[1]))
        return sp.csr_matrix((share * self.centres[labels] + (1 - share) * noise).astype(np.float32))


def _cumulative(weights: np.ndarray) -> np.ndarray:
    sums: np.ndarray = np.cumsum(weights, axis=1)
    sums /= sums[:, -1:]  # the last one is 1, so that no draw is beyond it
    return sums


def rows_of_strength(
    rng: np.random.Generator, draw: Draw, seems: np.ndarray, labels: np.ndarray, entries: float, strength: float
) -> sp.csr_matrix:
    """Rows whose strength is the asked one, or the nearest that these features can have; found by bisection on a sample.

    People write as the class they ``seem`` to be of; the strength is about their ``labels``. ``entries``: of a row, about.
    """
    sample = rng.permutation(labels.size)[: int(min(PEOPLE, max(100, ENTRIES / entries)))]
    coins = int(rng.integers(2**62))
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        share = (low + high) / 2
        if feature_strength(draw(np.random.default_rng(coins), seems[sample], share), labels[sample]) < strength:
            low = share
        else:
            high = share
    return draw(rng, seems, (low + high) / 2)


def feature_strength(x: sp.csr_matrix, labels: np.ndarray) -> float:
    """The strength of features: three of four rows teach a ridge classifier, the others test it."""
    norms = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    x = sp.csr_array(sp.diags_array(1 / np.maximum(norms, 1e-12)) @ x)
    taught = np.arange(labels.size) % 4 < 3
    largest = np.bincount(labels).max() / labels.size
    mean = np.asarray(x[taught].mean(axis=0)).ravel()
    classes = np.eye(int(labels.max()) + 1)[labels[taught]]
    prior = classes.mean(axis=0)
    weights = _ridge(x[taught], mean, classes - prior)
    scores = x[~taught] @ weights - mean @ weights + prior
    accuracy = float((scores.argmax(axis=1) == labels[~taught]).mean())
    return float((accuracy - largest) / max(1 - largest, 1e-12))


def _ridge(x: sp.csr_array, mean: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Least squares with a penalty on centred rows, all classes at once, by conjugate gradients."""

    def back(image: np.ndarray) -> np.ndarray:
        found: np.ndarray = x.T @ image - np.outer(mean, image.sum(axis=0))
        return found

    residual = back(targets)
    weights, direction = np.zeros_like(residual), residual.copy()
    size = (residual**2).sum(axis=0)
    for _ in range(STEPS):
        moved = back(x @ direction - mean @ direction) + RIDGE * direction
        step = size / np.maximum((direction * moved).sum(axis=0), 1e-300)
        weights += step * direction
        residual -= step * moved
        size, before = (residual**2).sum(axis=0), size
        direction = residual + size / np.maximum(before, 1e-300) * direction
    return weights
