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
from graphveil.privacy.plan import edge_kind
from graphveil.privacy.promise import Adjacency, Promise, Relation


@dataclass(frozen=True)
class Neighbour:
    """A graph that differs from the original by one change of an adjacency."""

    data: Data
    story: str
    record: int | None
    kind: str


def worst_case_graph(
    seed: int = 0, clique: int = 8, features: int = 6, classes: int = 3
) -> tuple[Data, dict[str, int]]:
    """A small undirected graph with every awkward node, and the names of those nodes."""
    rng = np.random.default_rng(seed)
    leaves, ring = 10, 12
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
    data = Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(np.concatenate([edges, edges[::-1], untidy], axis=1)),
        y=torch.from_numpy(y),
        train_mask=torch.from_numpy((kinds == 0) | (kinds == 1)),
        val_mask=torch.from_numpy(kinds == 2),
        test_mask=torch.from_numpy(kinds == 3),
    )
    data.num_classes, data.directed = classes, False
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


def neighbours(
    data: Data,
    names: dict[str, int],
    promise: Promise,
    seed: int = 0,
    weaker: Mapping[str, Adjacency] | None = None,
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
            yield Neighbour(
                replaced(data, r, covered, rng, opposite=True), f"{story} turned into its opposite", r, kind
            )
            yield Neighbour(replaced(data, r, covered, rng, opposite=False), f"{story} replaced", r, kind)
            if covered.adjacency in (Adjacency.NODE, Adjacency.BOUNDED_DEGREE):
                story = f"{story} turned into its opposite and is on nobody's list"
                yield Neighbour(_opposite_and_unlisted(data, r), story, r, kind)


def _masks(data: Data) -> dict[str, torch.Tensor]:
    return {"train": data.train_mask, "calibration": data.val_mask, "query": data.test_mask}


def _kind(data: Data, r: int) -> str:
    return next((kind for kind, mask in _masks(data).items() if mask[r]), "other")


def _arcs(data: Data) -> np.ndarray:
    arcs: np.ndarray = data.edge_index.numpy()
    return arcs


def _friends(data: Data, r: int) -> np.ndarray:
    sender, receiver = _arcs(data)
    return np.setdiff1d(receiver[sender == r], [r])


def _with(data: Data, edges: np.ndarray, **changes: Any) -> Data:
    other = data.clone()
    other.edge_index = torch.from_numpy(np.ascontiguousarray(edges))
    other.update(changes)
    return other


def _without_record(data: Data, r: int) -> dict[str, torch.Tensor]:
    x, y = data.x.clone(), data.y.clone()
    x[r], y[r] = 0.0, -1
    return {"x": x, "y": y}


def blanked(data: Data, r: int, promise: Promise, rng: np.random.Generator) -> Data:
    """Node r leaves features, label and its edges blank, as far as the adjacency reaches."""
    sender, receiver = _arcs(data)
    match promise.adjacency:
        case Adjacency.RECORD:
            keep = sender != r
        case Adjacency.NODE | Adjacency.BOUNDED_DEGREE:
            keep = (sender != r) & (receiver != r)
        case Adjacency.K_NEIGHBOR:
            lost = rng.permutation(_friends(data, r))[: promise.k]
            keep = ~(((sender == r) & np.isin(receiver, lost)) | ((receiver == r) & np.isin(sender, lost)))
        case _:
            raise InputError(f"no zero-out neighbours are known for {promise.adjacency}")
    return _with(data, _arcs(data)[:, keep], **_without_record(data, r))


def replaced(data: Data, r: int, promise: Promise, rng: np.random.Generator, opposite: bool) -> Data:
    """Node r becomes another one: opposite features and the same contacts, or everything drawn anew."""
    x, y = data.x.clone(), data.y.clone()
    classes = int(data.num_classes)
    x[r] = -x[r] if opposite else torch.from_numpy(rng.normal(size=x.shape[1]))
    y[r] = (int(y[r]) + 1) % classes
    arcs = _arcs(data)
    if opposite:
        return _with(data, arcs, x=x, y=y)
    sender, receiver = arcs
    others = np.setdiff1d(np.arange(data.num_nodes), [r])
    match promise.adjacency:
        case Adjacency.RECORD:
            contacts = rng.choice(others, size=int(rng.integers(1, len(others))), replace=False)
            new = np.stack([np.full(len(contacts), r), contacts])
            keep = sender != r
        case Adjacency.NODE | Adjacency.BOUNDED_DEGREE:
            keep = (sender != r) & (receiver != r)
            bound = promise.max_degree or len(others)
            free = others[np.bincount(sender[keep], minlength=data.num_nodes)[others] < bound]
            contacts = rng.permutation(free)[:bound]
            new = np.stack([np.full(len(contacts), r), contacts])
            new = np.concatenate([new, new[::-1]], axis=1)
        case Adjacency.K_NEIGHBOR:
            friends = _friends(data, r)
            strangers = np.setdiff1d(others, friends)
            lost = rng.permutation(friends)[: promise.k]
            keep = ~(((sender == r) & np.isin(receiver, lost)) | ((receiver == r) & np.isin(sender, lost)))
            contacts = rng.permutation(strangers)[: len(lost)]
            new = np.stack([np.full(len(contacts), r), contacts])
            new = np.concatenate([new, new[::-1]], axis=1)
        case _:
            raise InputError(f"no replace neighbours are known for {promise.adjacency}")
    return _with(data, np.concatenate([arcs[:, keep], new], axis=1), x=x, y=y)


def _opposite_and_unlisted(data: Data, r: int) -> Data:
    """Node r becomes its opposite, keeps its own list, and is dropped from everybody else's.

    The worst case for lists cut by the code: r's messages turn round, and every list that had kept r takes in another entry.
    """
    x, y = data.x.clone(), data.y.clone()
    x[r], y[r] = -x[r], (int(y[r]) + 1) % int(data.num_classes)
    return _with(data, _arcs(data)[:, _arcs(data)[1] != r], x=x, y=y)


def _edge_neighbours(
    data: Data, names: dict[str, int], undirected: bool, rng: np.random.Generator
) -> Iterator[Neighbour]:
    arcs = _arcs(data)
    sender, receiver = arcs
    for story, r in names.items():
        friends = _friends(data, r)
        strangers = np.setdiff1d(np.arange(data.num_nodes), [*friends, r])
        if len(friends):
            s = int(rng.choice(friends))
            gone = (sender == r) & (receiver == s)
            if undirected:
                gone |= (sender == s) & (receiver == r)
            kind = edge_kind(_kind(data, r), _kind(data, s))
            yield Neighbour(_with(data, arcs[:, ~gone]), f"{story} lost an edge", None, kind)
        s = int(rng.choice(strangers))
        new, kind = np.array([[r], [s]]), edge_kind(_kind(data, r), _kind(data, s))
        if undirected:
            new = np.concatenate([new, new[::-1]], axis=1)
        yield Neighbour(_with(data, np.concatenate([arcs, new], axis=1)), f"{story} gained an edge", None, kind)
