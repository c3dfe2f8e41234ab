"""The worst edge, and the worst k edges, searched by hill climbing over released numbers; many climbers at once.

*Pair.* Two people with the same features list ``d_i <= d_j`` common contacts, whose codes are all ``u``; one edge between them
comes and goes. Free are the logits z that read no list, the codes v_i and v_j of the two and u: what an adversary would like to
be released. *Star.* A labelled person r vanishes, and with it the entry r on the lists of k labelled people of the same features;
their other contacts, ``more`` of them, have the codes u.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from graphveil.methods.roster.bounds import row_reading_bound
from graphveil.methods.roster.records import Blocks
from graphveil.methods.roster.weights import Weights
from tests.methods.roster_histories import Free, mixed
from tests.methods.roster_witness import World, rows_up_to, softmax


def climb(
    change: Callable[[np.ndarray], np.ndarray], size: int, rng: np.random.Generator, climbers: int = 25, steps: int = 40
) -> tuple[float, np.ndarray]:
    """The largest change found among ``size`` free numbers, and where."""
    free = rng.normal(size=(climbers, size)) * rng.choice([0.1, 1.0, 5.0], (climbers, 1))
    best = change(free)
    for step in range(steps):
        tried = free + rng.normal(size=free.shape) * (rng.random(free.shape) < 0.4) * 3 * 0.97**step
        found = change(tried)
        free[found > best] = tried[found > best]
        best = np.maximum(best, found)
    top = int(np.argmax(best))
    return float(best[top]), free[top : top + 1]


def clipped(z: np.ndarray, goal: np.ndarray, weights: Weights, list_square: float) -> tuple[np.ndarray, np.ndarray]:
    """Residual and own-slot term of every climber, clipped together, in units of the clip; x' is a unit row."""
    residual, slot = softmax(z) - goal, weights.slot * (1 / len(goal) - goal)
    wide = weights.unit**2 if weights.cover else weights.features**2 + weights.lists**2 * list_square + 0.01
    norm = np.sqrt(wide * (residual**2).sum(axis=1) + slot @ slot)[:, None]
    factor = np.minimum(1.0, weights.clip / norm) / weights.clip
    return factor * residual, factor * slot


def length(blocks: dict[str, np.ndarray]) -> np.ndarray:
    return np.sqrt(sum((block**2).sum(axis=1) for block in blocks.values()))


@dataclass(frozen=True)
class Pair:
    """Two people, their degrees without the edge, labels (None: query) and the released weights."""

    degrees: tuple[int, int]
    labels: tuple[int | None, int | None]
    classes: int
    weights: Weights

    def split(self, free: np.ndarray) -> tuple[np.ndarray, ...]:
        """z, v_i, v_j and u of every climber."""
        return tuple(np.split(free, 4, axis=1))

    def change(self, free: np.ndarray, reading: float | None = None, temperature: float = 1.0) -> np.ndarray:
        """By how much the edge moves the gradient sum, in units of the clip, or the rows, for every climber."""
        z, *codes = self.split(free)
        if self.labels == (None, None):
            return self.rows(z, codes, self.weights.row_reading if reading is None else reading, temperature)
        w = self.weights
        v_i, v_j, u = (rows_up_to(code, w.reading if reading is None else reading) for code in codes)
        blocks: dict[str, np.ndarray] = {}
        for name, d, label, other in (
            ("i", self.degrees[0], self.labels[0], v_j),
            ("j", self.degrees[1], self.labels[1], v_i),
        ):
            if label is None:
                continue
            goal = np.eye(self.classes)[label]
            for sign, entries in ((-1, d), (1, d + 1)):
                share = 1 / math.sqrt(max(entries, w.floor))
                z_here = z + share * (d * u + (other if entries > d else 0))
                residual, slot = clipped(z_here, goal, w, entries * share**2)
                parts = {"x": w.features * residual, "bias": 0.1 * residual, f"slot {name}": slot}
                parts |= {f"contact {k}": w.lists * share * residual for k in range(d)}
                if entries > d:
                    parts[f"slot {'j' if name == 'i' else 'i'}"] = w.lists * share * residual
                for place, part in parts.items():
                    blocks[place] = blocks.get(place, 0) + sign * part
        return length(blocks)

    def rows(self, z, codes, reading, temperature):
        v_i, v_j, u = (temperature * rows_up_to(code, reading) for code in codes)
        total = 0.0
        for d, other in ((self.degrees[0], v_j), (self.degrees[1], v_i)):
            without = softmax(z + d * u / math.sqrt(max(d, self.weights.floor)))
            within = softmax(z + (d * u + other) / math.sqrt(max(d + 1, self.weights.floor)))
            total = total + ((within - without) ** 2).sum(axis=1) / (1 - 1 / self.classes)
        return np.sqrt(total)

    def worlds(self, free: np.ndarray) -> tuple[World, World, Free]:
        """The same two people as data, without the edge and with it, and the history that was found."""
        z, v_i, v_j, u = (part[0] for part in self.split(free))
        n = 2 + max(self.degrees)
        arcs = tuple((end, 2 + k) for end, d in enumerate(self.degrees) for k in range(d))
        kinds = tuple("query" if label is None else "train" for label in self.labels) + ("other",) * (n - 2)
        x, y = np.zeros((n, 1)), np.full(n, -1, dtype=np.int64)
        x[:2] = 1.0
        y[:2] = [-1 if label is None else label for label in self.labels]
        apart = World(x, y, arcs, kinds, self.classes)
        together = World(x, y, (*arcs, (0, 1), (1, 0)), kinds, self.classes)
        prior, size = np.full(self.classes, 1 / self.classes), 1 + 2 * n
        model = Blocks(np.zeros((1, self.classes)), np.stack([v_i, v_j, *[u] * (n - 2)]), 10 * z[None])  # bias times .1
        past = Free(np.zeros(1), prior, np.zeros((size, self.classes)), np.ones(3), model, self.weights)
        return apart, together, past


@dataclass(frozen=True)
class Star:
    """k labelled people list r (and ``more`` others); r lists the k."""

    k: int
    more: int
    labels: tuple[int, int]
    classes: int
    weights: Weights

    def change(self, free: np.ndarray) -> np.ndarray:
        """By how much the gradient sum moves, in units of the clip, where r leaves everything blank and the k lists."""
        w, k = self.weights, self.k
        z, v_r, v_l, u = np.split(free, 4, axis=1)
        if w.cover:
            v_r, v_l, u = (rows_up_to(code, w.reading) for code in (v_r, v_l, u))
        goal_r, goal_l = np.eye(self.classes)[list(self.labels)]
        share = 1 / math.sqrt(max(k, w.floor))
        residual, slot = clipped(z + k * share * v_l, goal_r, w, k * share**2)
        blocks = {"x": w.features * residual, "bias": 0.1 * residual, "r": slot}
        leaf = w.lists * share * residual  # in the slot of each of the k
        for sign, entries in ((1, self.more + 1), (-1, self.more)):
            share = 1 / math.sqrt(max(entries, w.floor))
            z_here = z + share * (self.more * u + (v_r if sign > 0 else 0))
            residual, slot = clipped(z_here, goal_l, w, entries * share**2)
            blocks["x"] = blocks["x"] + sign * k * w.features * residual
            blocks["bias"] = blocks["bias"] + sign * k * 0.1 * residual
            leaf = leaf + sign * slot
            for number in range(self.more):
                place = f"contact {number}"
                blocks[place] = blocks.get(place, 0) + sign * k * w.lists * share * residual
            if sign > 0:
                blocks["r"] = blocks["r"] + k * w.lists * share * residual
        return length({**blocks, **{f"leaf {number}": leaf for number in range(k)}})

    def worlds(self, free: np.ndarray) -> tuple[World, World, Free]:
        """With r and without, and the history that was found: r is 0, then the k, then the others."""
        z, v_r, v_l, u = (part[0] for part in np.split(free, 4, axis=1))
        k, n = self.k, 1 + self.k + self.more
        others = range(1 + k, n)
        arcs = [(0, leaf) for leaf in range(1, k + 1)] + [(leaf, 0) for leaf in range(1, k + 1)]
        arcs += [(leaf, other) for leaf in range(1, k + 1) for other in others]
        y = np.array([self.labels[0], *[self.labels[1]] * k, *[-1] * self.more], dtype=np.int64)
        x = np.array([[1.0]] * (1 + k) + [[0.0]] * self.more)
        whole = World(x, y, tuple(arcs), ("train",) * (1 + k) + ("query",) * self.more, self.classes)
        gone = whole.blank(0).without({(leaf, 0) for leaf in range(1, k + 1)})
        codes = np.stack([v_r, *[v_l] * k, *[u] * self.more])
        model = Blocks(np.zeros((1, self.classes)), codes, 10 * z[None])
        prior, probe = np.full(self.classes, 1 / self.classes), np.zeros((1 + 2 * n, self.classes))
        return whole, gone, Free(np.zeros(1), prior, probe, np.ones(3), model, self.weights)


def opposed(temperature: float) -> tuple[Pair, np.ndarray]:
    """Two query people with as many contacts as the floor (2), two classes: codes of contacts are opposed to their own.

    Of the logits that read no list the worst for this temperature.
    """
    pair = Pair((2, 2), (None, None), 2, mixed(1.0, 1.0, 0.0, 0.3, 2))
    assert pair.weights.floor == 2
    v = row_reading_bound(2, 2) * np.array([1.0, -1.0]) / math.sqrt(2)
    tried = [np.concatenate([shift * v, v, v, -v])[None] for shift in np.linspace(-3, 3, 241)]
    return pair, max(tried, key=lambda free: pair.change(free, temperature=temperature)[0])


def edges_chosen_badly() -> Iterator[tuple[World, World, Free]]:
    """Edges and histories that would cost more than one record, were it not for each part of edge cover."""
    for temperature in (1.0, 1.5):
        pair, where = opposed(temperature)
        yield pair.worlds(where)
    calm = np.array([3.0, -3.0])  # without the edge the label is believed ...
    flip = np.array([-100.0, 100.0])  # ... with it not at all
    for mix in ((1.0, 1.0, 0.0, 0.3), (0.0, 1.0, 0.0, 2.0), (1.0, 1.0, 0.7, 4.0)):
        for degree in (0, 2):
            pair = Pair((degree, degree), (0, 0), 2, mixed(*mix, 2))
            yield pair.worlds(np.concatenate([0.4 * calm, flip, flip, -flip])[None])
            yield pair.worlds(np.concatenate([-10 * calm, 0 * flip, 0 * flip, 0 * flip])[None])  # never believed
