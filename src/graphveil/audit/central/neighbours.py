"""Neighbouring graphs for every adjacency and relation: the worst cases by name, and random ones.

The test graph contains a star with a hub, leaves, a clique, an isolated node, the only member of a class, and a last index
that is not special otherwise; nodes of every public kind take part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.privacy.noise import Array
from graphveil.privacy.plan import edge_kind
from graphveil.privacy.promise import Adjacency, Level, Promise, Relation

MOST_SHIFTS = 3  # by which everybody's class is exchanged
DRAWN = 4  # exchanges drawn at random


@dataclass(frozen=True)
class Neighbour:
    """A graph that differs from the original by one change of an adjacency."""

    data: Data
    story: str
    record: int | None
    kind: str


def worst_case_graph(seed: int = 0, clique: int = 8) -> tuple[Data, dict[str, int]]:
    """A small undirected graph with every awkward node, and the names of those nodes."""
    rng = np.random.default_rng(seed)
    leaves, ring, features, classes = 10, 12, 6, 3
    star = [(0, leaf) for leaf in range(1, leaves + 1)]
    first = leaves + 1
    members = [(first + i, first + j) for i in range(clique) for j in range(i)]
    start = first + clique
    circle = [(start + i, start + (i + 1) % ring) for i in range(ring)] + [(start, first), (start + 3, 0), (1, 2)]
    isolated, last = start + ring, start + ring + 1
    edges = np.array([*star, *members, *circle, (last, start + 5)]).T
    untidy = np.array([[0, 0, 1, first], [1, 1, 0, first]])  # repeated arcs and a self-loop, which must change nothing
    nodes = last + 1
    x = rng.normal(size=(nodes, features)) + 0.5
    x[start + 7] = 0.0  # a present node without features
    y = rng.integers(0, classes - 1, nodes)
    y[start + 1] = classes - 1  # the only member of the last class
    kinds = rng.permutation(np.arange(nodes) % 5)  # two fifths train, a fifth each calibration, query and in no mask
    kinds[[0, start + 1, first]] = 0
    kinds[[last, isolated]] = [2, 0]
    arcs = np.concatenate([edges, edges[::-1], untidy], axis=1)
    data = undirected(x, y, arcs, classes, train=kinds <= 1, val=kinds == 2, test=kinds == 3)
    names = {
        "hub": 0,
        "leaf": leaves,
        "isolated node": isolated,
        "clique member": first + 1,
        "only member of a class": start + 1,
        "last index": last,
        "node without features": start + 7,
        "node of highest degree": int(np.bincount(edges.ravel()).argmax()),
    }
    return data, names


def undirected(x: Array, y: np.ndarray, arcs: np.ndarray, classes: int, **masks: np.ndarray) -> Data:
    """An undirected graph; ``masks`` are called train, val and test."""
    named = {f"{name}_mask": mask for name, mask in masks.items()}
    tensors = {key: torch.from_numpy(value) for key, value in {"x": x, "edge_index": arcs, "y": y, **named}.items()}
    return Data(**tensors, num_classes=classes, directed=False)


def neighbours(
    data: Data, names: dict[str, int], promise: Promise, seed: int = 0, weaker: Mapping[str, Adjacency] | None = None
) -> Iterator[Neighbour]:
    """The neighbours of ``data`` under ``promise``: one per named node (or edge), and random ones.

    ``weaker``: kinds of records whom the promise covers under another adjacency (``Plan.weaker``).
    """
    rng = np.random.default_rng(seed)
    if promise.adjacency in (Adjacency.EDGE_UNDIRECTED, Adjacency.EDGE_DIRECTED):
        yield from _edge_neighbours(data, names, promise.adjacency is Adjacency.EDGE_UNDIRECTED, rng)
        return
    kind_of = {kind: mask.numpy() for kind, mask in _masks(data).items()}
    kind_of["other"] = ~np.logical_or.reduce(list(kind_of.values()))
    chosen = list(names.items())
    for kind, mask in kind_of.items():  # a random node of every kind
        if mask.any():
            chosen.append((f"random {kind} node", int(rng.choice(np.flatnonzero(mask)))))
    for story, r in chosen:
        kind = _kind(data, r)
        covered = replace(promise, adjacency=(weaker or {}).get(kind, promise.adjacency))
        if promise.relation is Relation.ZERO_OUT:
            yield Neighbour(blanked(data, r, covered, rng), f"{story} left everything blank", r, kind)
        else:
            opposite = replaced(data, r, covered, rng, opposite=True)
            yield Neighbour(opposite, f"{story} turned into its opposite", r, kind)
            yield Neighbour(replaced(data, r, covered, rng, opposite=False), f"{story} replaced", r, kind)
            if covered.adjacency in (Adjacency.NODE, Adjacency.BOUNDED_DEGREE):
                story = f"{story} turned into its opposite and is on nobody's list"
                yield Neighbour(_unlisted(opposite, r), story, r, kind)
            if covered.adjacency is Adjacency.K_NEIGHBOR:  # worse where cut lists take in others instead
                fewer = with_arcs(opposite, data.edge_index.numpy()[:, _kept(data, r, covered, rng)])
                yield Neighbour(fewer, f"{story} turned into its opposite and lost contacts", r, kind)


def everybody_changed(data: Data, promise: Promise) -> Iterator[Data]:
    """The same public facts, and everything that is private exchanged: people of one public kind change places (so nobody's list
    grows), with opposite features and another class, or with signs and classes drawn at random: between two candidates only some
    exchanges turn a choice. At edge level features and labels are public and stay where they are."""
    place = np.arange(data.num_nodes)
    for mask in (*_masks(data).values(), ~torch.stack(list(_masks(data).values())).any(dim=0)):
        kind = np.flatnonzero(mask.numpy())
        place[kind] = np.roll(kind, 1)
    arcs = place[data.edge_index.numpy()]
    if promise.level is Level.EDGE:
        yield with_arcs(data, arcs)
        return
    order, classes = torch.from_numpy(np.argsort(place)), int(data.num_classes)
    for shift in range(1, min(classes, MOST_SHIFTS + 1)):
        yield with_arcs(data, arcs, x=-data.x[order], y=(data.y[order] + shift) % classes)
    coins = torch.Generator().manual_seed(0)
    for _ in range(DRAWN):
        signs = torch.randint(2, (len(order), 1), generator=coins) * 2 - 1
        yield with_arcs(data, arcs, x=signs * data.x[order], y=torch.randint(classes, order.shape, generator=coins))


def _masks(data: Data) -> dict[str, torch.Tensor]:
    return {"train": data.train_mask, "calibration": data.val_mask, "query": data.test_mask}


def _kind(data: Data, r: int) -> str:
    return next((kind for kind, mask in _masks(data).items() if mask[r]), "other")


def _friends(data: Data, r: int) -> np.ndarray:
    sender, receiver = data.edge_index.numpy()
    return np.setdiff1d(receiver[sender == r], [r])


def with_arcs(data: Data, edges: np.ndarray, **changes: Any) -> Data:
    other = data.clone()
    other.edge_index = torch.from_numpy(np.ascontiguousarray(edges))
    other.update(changes)
    return other


def changed_lists(before: Data, after: Data) -> np.ndarray:
    """Whose own contact lists differ."""
    nodes = int(before.num_nodes)
    one, other = (data.edge_index.numpy() for data in (before, after))
    return np.unique(np.setxor1d(one[0] * nodes + one[1], other[0] * nodes + other[1]) // nodes)


def _kept(data: Data, r: int, promise: Promise, rng: np.random.Generator) -> np.ndarray:
    """The arcs that stay when node r goes, as far as the adjacency reaches; k-neighbor takes k random contacts."""
    sender, receiver = data.edge_index.numpy()
    match promise.adjacency:
        case Adjacency.RECORD:
            keep: np.ndarray = sender != r
        case Adjacency.NODE | Adjacency.BOUNDED_DEGREE:
            keep = (sender != r) & (receiver != r)
        case Adjacency.K_NEIGHBOR:
            lost = rng.permutation(_friends(data, r))[: promise.k]
            keep = ~(((sender == r) & np.isin(receiver, lost)) | ((receiver == r) & np.isin(sender, lost)))
        case _:
            raise InputError(f"no neighbours of nodes are known for {promise.adjacency}")
    return keep


def blanked(data: Data, r: int, promise: Promise, rng: np.random.Generator) -> Data:
    """Node r leaves features, label and its edges blank, as far as the adjacency reaches."""
    x, y = data.x.clone(), data.y.clone()
    x[r], y[r] = 0.0, -1
    return with_arcs(data, data.edge_index.numpy()[:, _kept(data, r, promise, rng)], x=x, y=y)


def replaced(data: Data, r: int, promise: Promise, rng: np.random.Generator, opposite: bool) -> Data:
    """Node r becomes another one: opposite features and the same contacts, or everything drawn anew."""
    x, y, arcs = data.x.clone(), data.y.clone(), data.edge_index.numpy()
    x[r] = -x[r] if opposite else torch.from_numpy(rng.normal(size=x.shape[1]))
    y[r] = (int(y[r]) + 1) % int(data.num_classes)
    if opposite:
        return with_arcs(data, arcs, x=x, y=y)
    others, friends = np.setdiff1d(np.arange(data.num_nodes), [r]), _friends(data, r)
    keep = _kept(data, r, promise, rng)
    match promise.adjacency:
        case Adjacency.RECORD:
            contacts = rng.choice(others, size=int(rng.integers(1, len(others))), replace=False)
        case Adjacency.K_NEIGHBOR:
            contacts = rng.permutation(np.setdiff1d(others, friends))[: min(promise.k or 0, len(friends))]
        case _:
            bound = promise.max_degree or len(others)
            free = others[np.bincount(arcs[0][keep], minlength=data.num_nodes)[others] < bound]
            contacts = rng.permutation(free)[:bound]
    new = np.stack([np.full(len(contacts), r), contacts])
    if promise.adjacency is not Adjacency.RECORD:
        new = np.concatenate([new, new[::-1]], axis=1)
    return with_arcs(data, np.concatenate([arcs[:, keep], new], axis=1), x=x, y=y)


def _unlisted(data: Data, r: int) -> Data:
    """Node r, whose list stays, is dropped from everybody else's.

    With r's opposite the worst case for lists cut by the code: r's messages turn round, and every list that had kept r takes in
    another entry.
    """
    arcs = data.edge_index.numpy()
    return with_arcs(data, arcs[:, arcs[1] != r])


def _edge_neighbours(data: Data, names: dict[str, int], both: bool, rng: np.random.Generator) -> Iterator[Neighbour]:
    arcs = data.edge_index.numpy()
    sender, receiver = arcs
    for story, r in names.items():
        friends = _friends(data, r)
        strangers = np.setdiff1d(np.arange(data.num_nodes), [*friends, r])
        if len(friends):
            s = int(rng.choice(friends))
            gone = ((sender == r) & (receiver == s)) | (both & (sender == s) & (receiver == r))
            kind = edge_kind(_kind(data, r), _kind(data, s))
            yield Neighbour(with_arcs(data, arcs[:, ~gone]), f"{story} lost an edge", None, kind)
        s = int(rng.choice(strangers))
        new = np.array([[r, s], [s, r]] if both else [[r], [s]])
        kind = edge_kind(_kind(data, r), _kind(data, s))
        yield Neighbour(with_arcs(data, np.concatenate([arcs, new], axis=1)), f"{story} gained an edge", None, kind)
