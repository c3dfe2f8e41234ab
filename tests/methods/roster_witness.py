"""Roster's sums computed a second time, record by record with dense arrays, from the recipe and not from its code.

A world holds raw arcs (repeated ones and self-loops included); a person's list is the set of the others they name. Summands are
not truncated to any grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from graphveil.graph import DenseRows, Graph, Lists, SparseRows

KINDS = ("train", "calibration", "query", "other")
LABELLED = KINDS[:2]


@dataclass(frozen=True)
class World:
    """Features, labels (-1: none), raw arcs as pairs (who lists, who is listed), public kinds; ``sparse``: as stored."""

    x: np.ndarray
    y: np.ndarray
    arcs: tuple[tuple[int, int], ...]
    kinds: tuple[str, ...]
    classes: int
    sparse: bool = False

    @property
    def graph(self) -> Graph:
        masks = {kind: np.array([k == kind for k in self.kinds]) for kind in KINDS[:3]}
        lists = Lists.from_edge_index(np.array(self.arcs, dtype=np.int64).reshape(-1, 2).T, len(self.y))
        rows = SparseRows(sp.csr_matrix(self.x)) if self.sparse else DenseRows(torch.from_numpy(self.x))
        return Graph(rows, self.y, lists, masks, self.classes)

    @property
    def labelled(self) -> np.ndarray:
        return np.array([i for i, kind in enumerate(self.kinds) if kind in LABELLED], dtype=np.int64)

    @property
    def asked(self) -> np.ndarray:
        return np.array([i for i, kind in enumerate(self.kinds) if kind not in LABELLED], dtype=np.int64)

    def contacts(self, i: int) -> set[int]:
        return {j for k, j in self.arcs if k == i} - {i}

    def blank(self, r: int) -> World:
        """Record r left everything blank."""
        return self.replaced(r, np.zeros(self.x.shape[1]), -1, ())

    def replaced(self, r: int, x: np.ndarray, y: int, contacts: tuple[int, ...]) -> World:
        """Record r is another one."""
        features, labels = self.x.copy(), self.y.copy()
        features[r], labels[r] = x, y
        kept = tuple(arc for arc in self.arcs if arc[0] != r)
        return replace(self, x=features, y=labels, arcs=kept + tuple((r, j) for j in contacts))

    def without(self, gone: set[tuple[int, int]]) -> World:
        """These entries are on nobody's list."""
        return replace(self, arcs=tuple(arc for arc in self.arcs if arc not in gone))


@dataclass(frozen=True)
class Reading:
    """The world as released numbers make it readable: a centre and a floor; ``rows``: x' where it was rounded before."""

    world: World
    centre: np.ndarray
    floor: int
    rows: np.ndarray | None = None

    def features(self, i: int) -> np.ndarray:
        """x'_i: the unit row minus the centre, at most a unit row; zero without features."""
        if self.rows is not None:
            return self.rows[i]
        x = self.world.x[i]
        if not x.any():
            return np.zeros_like(x)
        difference = x / np.linalg.norm(x) - self.centre
        return difference / max(np.linalg.norm(difference), 0.01)

    def contacts(self, i: int) -> np.ndarray:
        """a_i, a row over all slots."""
        row, names = np.zeros(len(self.world.y)), self.world.contacts(i)
        row[list(names)] = 1 / math.sqrt(max(len(names), self.floor))
        return row

    def label(self, i: int) -> np.ndarray:
        y = self.world.y[i]
        return np.eye(self.world.classes)[y] if 0 <= y < self.world.classes else np.zeros(self.world.classes)

    def deviation(self, i: int, prior: np.ndarray) -> np.ndarray:
        if not self.label(i).any():
            return np.zeros(self.world.classes)
        told = self.label(i) - prior
        return told / max(1.0, np.linalg.norm(told))

    def probe(self, i: int, prior: np.ndarray) -> np.ndarray:
        slot = np.eye(len(self.world.y))[i]
        blocks = [np.outer(part, self.deviation(i, prior)) for part in (self.features(i), self.contacts(i), slot)]
        return np.concatenate(blocks) / math.sqrt(3)

    def margins(self, i: int, probe: np.ndarray, prior: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Three clipped margins and the mass; record i's own part of the probe is taken out of the first two."""
        if not self.label(i).any():
            return np.zeros(4)
        width, n = self.world.x.shape[1], len(self.world.y)
        own, told = self.probe(i, prior), self.deviation(i, prior)
        without = math.sqrt(3) * (probe - own)
        heard = [
            told @ (self.features(i) @ without[:width]),
            told @ (self.contacts(i) @ without[width : width + n]),
            told @ (self.contacts(i) @ without[width + n :]),
        ]
        return np.array([*np.clip(np.array(heard) / bounds, -1, 1), min(math.sqrt(len(self.world.contacts(i))) / 8, 1)])

    def logits(self, i, features, codes, bias):
        return self.features(i) @ features + self.contacts(i) @ codes + 0.1 * bias

    def gradient(self, i, features, codes, bias, weights, clip, unit=None, reading=None):
        """The clipped summand of record i; with ``unit`` U and ``reading`` B as edge cover has it."""
        x, a, classes, label = self.features(i), self.contacts(i), self.world.classes, self.label(i)
        of_features, of_lists, of_slot = weights
        if not label.any():
            return np.zeros((len(x) + len(a) + 1, classes))
        read = codes if reading is None else rows_up_to(codes, reading)
        heard = self.logits(i, features * (of_features > 0), read * (of_lists > 0), bias)
        residual = softmax(heard) - label
        slot = np.outer(np.eye(len(a))[i], of_slot * (1 / classes - label))
        whole = np.concatenate(
            [of_features * np.outer(x, residual), of_lists * np.outer(a, residual) + slot, 0.1 * residual[None]]
        )
        norm = np.linalg.norm(whole)
        if unit is not None:
            norm = math.sqrt(unit**2 * residual @ residual + of_slot**2 * (1 - 1 / classes))
        return whole * min(1.0, clip / norm) if norm else whole

    def row(self, i, features, codes, bias, reading=None, temperature=1.0):
        """Centred probabilities; zero without features."""
        classes = self.world.classes
        if not self.world.x[i].any():
            return np.zeros(classes)
        read = codes if reading is None else rows_up_to(codes, reading)
        heard = self.logits(i, features, temperature * read, bias)
        return (softmax(heard) - 1 / classes) / math.sqrt(1 - 1 / classes)


def softmax(z: np.ndarray) -> np.ndarray:
    grown = np.exp(z - z.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def rows_up_to(table: np.ndarray, most: float) -> np.ndarray:
    norms = np.linalg.norm(table, axis=-1, keepdims=True)
    return table * np.minimum(1.0, most / np.maximum(norms, 1e-300))


def random_world(
    rng: np.random.Generator, classes: int | None = None, symmetric: bool | None = None, people: int | None = None
) -> World:
    """Few people: hubs, empty and repeated lists, self-loops, absent slots, missing labels, directed or not."""
    n, width = people or int(rng.integers(3, 9)), int(rng.integers(1, 4))
    classes = classes or int(rng.integers(2, 4))
    matrix = rng.random((n, n)) < rng.choice([0.15, 0.5, 0.9])
    if rng.random() < 0.3:
        matrix[0] = True
    if rng.random() < 0.3:
        matrix[-1] = False
    if symmetric if symmetric is not None else rng.random() < 0.5:
        matrix |= matrix.T
    arcs = [(int(i), int(j)) for i, j in np.argwhere(matrix)]  # the diagonal stays: self-loops
    arcs += [arcs[int(k)] for k in rng.integers(0, max(len(arcs), 1), 3) if arcs]  # repeated
    x = rng.normal(size=(n, width)) * rng.choice([1.0, 1e-3, 1e3], size=(n, 1))
    x[rng.random(n) < 0.15] = 0.0
    y = np.where(rng.random(n) < 0.15, -1, rng.integers(0, classes, n) * int(rng.random() < 0.8))
    kinds = tuple(str(kind) for kind in rng.choice(KINDS, n, p=(0.4, 0.2, 0.25, 0.15)))
    return World(x, y.astype(np.int64), tuple(arcs), kinds, classes)


def sparse_world(rng: np.random.Generator, people: int | None = None) -> World:
    """As :func:`random_world`, with more features, of which most are 0, in sparse rows; classes in fours and others."""
    world = random_world(rng, classes=int(rng.integers(2, 7)), people=people)
    n, width = len(world.y), int(rng.integers(1, 10))
    x = rng.normal(size=(n, width)) * rng.choice([1.0, 1e-3, 1e3], size=(n, 1)) * (rng.random((n, width)) < 0.4)
    return replace(world, x=x, sparse=True)


WORLDS = pytest.mark.parametrize("a_world", [random_world, sparse_world], ids=["dense", "sparse"])
