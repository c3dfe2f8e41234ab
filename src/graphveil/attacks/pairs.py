"""The game of link attacks: pairs of nodes, some joined, some not, and two controls that need no model.

============  ====================================================================================================
``balanced``  as many random edges as uniform non-edges; hubs are rare among the non-edges, so degree alone
              reaches an AUC of 0.8 to 0.9
``degree-     as many non-edges as edges, each with the degrees of an edge's two ends (the nearest degrees where
matched``     there is no other such pair): degree alone is at 0.5
``density``   every pair among random nodes, at the graph's own density
============  ====================================================================================================

Tests: ``tests/attacks/test_pairs.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from graphveil.attacks.target import as_graph
from graphveil.errors import InputError
from graphveil.graph import UNLABELLED, Graph

MOST_PAIRS = 5000  # an attack that learns takes all edges, up to so many
PATIENCE = 30  # rounds of redrawing a non-edge with exactly its degrees before the nearest degrees are allowed


class Sampling(StrEnum):
    """How the pairs of the game are drawn."""

    BALANCED = "balanced"
    DEGREE_MATCHED = "degree-matched"
    DENSITY = "density"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Unordered pairs ``(first[i], second[i])`` and whether they are joined."""

    first: np.ndarray
    second: np.ndarray
    joined: np.ndarray
    sampling: Sampling

    def __len__(self) -> int:
        return len(self.first)

    @property
    def nodes(self) -> np.ndarray:
        """Everybody who occurs in a pair."""
        return np.unique(np.concatenate([self.first, self.second]))

    def both_orders(self) -> Pairs:
        """Every pair twice, once in each order, as cases of their own.

        A game that a paper may have played by mistake: whoever knows the answer for one order is asked for the other.
        """
        first, second = np.concatenate([self.first, self.second]), np.concatenate([self.second, self.first])
        return Pairs(first, second, np.tile(self.joined, 2), self.sampling)

    def __str__(self) -> str:
        return f"{int(self.joined.sum())} edges and {int((~self.joined).sum())} non-edges ({self.sampling})"


def sample_pairs(data: Any, sampling: str, count: int, seed: int, among: np.ndarray | None = None) -> Pairs:
    """Draw the game: ``count`` edges and ``count`` non-edges, or for ``density`` all pairs among ``count`` nodes.

    ``among`` is the mask of nodes that may occur (the attacker's); degrees are those of the whole graph.
    """
    try:
        kind = Sampling(sampling)
    except ValueError:
        raise InputError(f"unknown kind of pairs {sampling!r}; known are: {', '.join(Sampling)}") from None
    if count < 1:
        raise InputError(f"the number of nodes or pairs must be at least 1, got {count}")
    coins = np.random.default_rng([0x9A125, seed])
    edges = Edges(as_graph(data), among)
    if kind is Sampling.DENSITY:
        return _all_pairs(edges, count, coins)
    if len(edges.keys) < count:
        raise InputError(f"the graph has {len(edges.keys)} edges, fewer than the {count} asked for: lower --nodes")
    low, high = edges.pairs(np.sort(coins.choice(len(edges.keys), count, replace=False)))
    if kind is Sampling.DEGREE_MATCHED:
        other = _matched(edges, low, high, coins)
    else:
        other = _uniform(edges, count, coins)
    first, second = np.concatenate([low, other[0]]), np.concatenate([high, other[1]])
    swap = coins.random(len(first)) < 0.5  # the order of a pair must not carry anything
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    return Pairs(first, second, np.repeat([True, False], count), kind)


def most_pairs(data: Any) -> int:
    """How many edges, and non-edges, an attack takes that learns from as many as there are."""
    return min(len(Edges(as_graph(data)).keys), MOST_PAIRS)


class Edges:
    """The joined pairs of a graph as sorted numbers ``low * n + high``; joined is whom either list mentions."""

    def __init__(self, graph: Graph, among: np.ndarray | None = None) -> None:
        self.nodes = graph.nodes
        self.keys = np.unique(self.key(*graph.lists.edge_index()))
        low, high = self.pairs(slice(None))
        self.degrees = np.bincount(np.concatenate([low, high]), minlength=self.nodes)
        self.people = np.arange(self.nodes) if among is None else np.flatnonzero(among)
        if among is not None:
            self.keys = self.keys[among[low] & among[high]]
        if not len(self.keys):
            raise InputError("the graph has no edges: there is nothing a link attack could find")

    def pairs(self, chosen: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.divmod(self.keys[chosen], self.nodes)
        return low, high

    def key(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return np.asarray(np.minimum(first, second) * self.nodes + np.maximum(first, second))

    def joined(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        keys = self.key(first, second)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.asarray(self.keys[place] == keys)


def _all_pairs(edges: Edges, count: int, coins: np.random.Generator) -> Pairs:
    if len(edges.people) < count or count < 2:
        raise InputError(f"there are {len(edges.people)} nodes; pairs among {count} of them cannot be drawn")
    chosen = np.sort(coins.choice(edges.people, count, replace=False))
    first, second = np.triu_indices(count, 1)
    low, high = chosen[first], chosen[second]
    joined = edges.joined(low, high)
    if not joined.any():
        raise InputError(f"there is no edge among {count} random nodes: raise --nodes, or use --pairs balanced")
    return Pairs(low, high, joined, Sampling.DENSITY)


def _uniform(edges: Edges, count: int, coins: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """``count`` different uniform non-edges."""
    people = len(edges.people)
    room = people * (people - 1) // 2 - len(edges.keys)
    if room < count:
        raise InputError(f"the graph has only {room} pairs that are not joined, fewer than the {count} asked for")
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        first, second = edges.people[coins.integers(0, people, (2, 2 * (count - len(found)) + 16))]
        fine = (first != second) & ~edges.joined(first, second)
        fresh = np.unique(np.concatenate([found, edges.key(first, second)[fine]]))
        found = fresh if len(fresh) <= count else coins.choice(fresh, count, replace=False)
    low, high = np.divmod(found, edges.nodes)
    return low, high


def _matched(
    edges: Edges, low: np.ndarray, high: np.ndarray, coins: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One non-edge per edge whose ends have the same two degrees; after some tries, degrees next to them in rank."""
    by_degree = edges.people[np.argsort(edges.degrees[edges.people], kind="stable")]
    sorted_degrees = edges.degrees[by_degree]
    ends = np.stack([low, high])
    begin = np.searchsorted(sorted_degrees, edges.degrees[ends], side="left")
    stop = np.searchsorted(sorted_degrees, edges.degrees[ends], side="right")
    keys = np.full(len(low), -1, dtype=np.int64)
    widen, tries = 0, 0
    while (keys < 0).any():
        if widen > 2 * len(by_degree):
            raise InputError("the graph is too dense for as many non-edges of the same degrees: lower --nodes")
        open_ = np.flatnonzero(keys < 0)
        lowest = np.maximum(begin[:, open_] - widen, 0)
        drawn = by_degree[coins.integers(lowest, np.minimum(stop[:, open_] + widen, len(by_degree)))]
        wanted = edges.key(*drawn)
        fine = (drawn[0] != drawn[1]) & ~edges.joined(*drawn) & ~np.isin(wanted, keys)
        _, once = np.unique(wanted, return_index=True)
        fresh = np.zeros(len(open_), dtype=bool)
        fresh[once] = True
        keys[open_[fine & fresh]] = wanted[fine & fresh]
        tries += 1
        widen = 0 if tries < PATIENCE else max(1, 2 * widen)
    first, second = np.divmod(keys, edges.nodes)
    return first, second


def controls(graph: Graph, pairs: Pairs) -> dict[str, np.ndarray]:
    """Scores that need no model: the product of the ends' degrees, and whether their labels are equal (if there are any)."""
    degrees = Edges(graph).degrees.astype(np.float64)
    found = {"degree product": np.log(degrees[pairs.first] + 1) + np.log(degrees[pairs.second] + 1)}
    labels = graph.labels
    if (labels[pairs.nodes] != UNLABELLED).any():
        same = (labels[pairs.first] == labels[pairs.second]) & (labels[pairs.first] != UNLABELLED)
        found["label equality"] = same.astype(np.float64)
    return found
