"""Random graphs with known structure: they need no file, and what they hide is known. All are linear in edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch_geometric.data import Data

from graphveil.errors import InputError
from graphveil.graph.formats.npz import both_directions, sorted_unique, undirected_pairs, unique_arcs


def csbm(
    seed: int = 0,
    *,
    nodes: int = 10_000,
    features: int = 200,
    average_degree: float = 10.0,
    phi: float = 0.5,
    arc: float = 3.25,
) -> Data:
    r"""Contextual stochastic block model on the arc of DPDGC (NeurIPS 2023, appendix K; Deshpande et al. 2018).

    Two equal classes :math:`v_i = \pm 1`. Features :math:`b_i = \sqrt{\mu/n}\, v_i u + Z_i/\sqrt{f}` with
    :math:`u \sim N(0, I/f)`; edges are independent with probability :math:`(d + \lambda\sqrt d)/n` inside a class and
    :math:`(d - \lambda\sqrt d)/n` across. With :math:`\xi = n/f`,

    .. math:: \lambda = \sqrt{1+\epsilon}\,\sin(\pi\phi/2), \qquad \mu = \sqrt{\xi(1+\epsilon)}\,\cos(\pi\phi/2)

    so that :math:`\lambda^2 + \mu^2/\xi = 1 + \epsilon` (``arc`` is :math:`\epsilon`): :math:`\phi = 0` puts all
    information into the features, :math:`\phi = 1` into a homophilous and :math:`\phi = -1` into a heterophilous graph.

    The paper's values are the defaults, except ``average_degree``: the paper does not print it.
    """
    if not -1 <= phi <= 1:
        raise InputError(f"csbm: phi is {phi}, give a number from -1 to 1")
    if nodes < 4 or features < 1 or arc <= 0:
        raise InputError("csbm: give at least 4 nodes, 1 feature and a positive arc")
    strength = math.sqrt(1 + arc) * math.sin(math.pi * phi / 2)
    mu = math.sqrt(nodes / features * (1 + arc)) * math.cos(math.pi * phi / 2)
    inside = (average_degree + strength * math.sqrt(average_degree)) / nodes
    across = (average_degree - strength * math.sqrt(average_degree)) / nodes
    if not (0 <= inside <= 1 and 0 <= across <= 1):
        raise InputError(
            f"csbm: average_degree {average_degree}, phi {phi} give edge probabilities {inside:.3g} and {across:.3g}: "
            f"take an average degree between {strength**2:.3g} and the number of nodes"
        )
    rng = np.random.default_rng([seed, 0x6373626D])
    labels = rng.permutation(np.arange(nodes) % 2)
    direction = rng.standard_normal(features) / math.sqrt(features)
    x = rng.standard_normal((nodes, features), dtype=np.float32) / np.float32(math.sqrt(features))
    x += np.float32(math.sqrt(mu / nodes)) * np.outer(2 * labels - 1, direction).astype(np.float32)
    members = [np.flatnonzero(labels == side) for side in (0, 1)]
    edges = np.concatenate(
        [
            *(group[_pairs_inside(rng, group.size, inside)] for group in members),
            np.stack([group[row] for group, row in zip(members, _pairs_across(rng, members, across), strict=True)]),
        ],
        axis=1,
    )
    data = data_of(torch.from_numpy(x), labels, edges, classes=2, name="csbm")
    data.parameters = {"phi": phi, "strength": strength, "mu": mu, "average_degree": average_degree, "arc": arc}
    return data


def powerlaw_sbm(
    seed: int = 0,
    *,
    nodes: int = 10_000,
    features: int = 32,
    classes: int = 5,
    average_degree: float = 10.0,
    exponent: float = 2.5,
    homophily: float = 0.7,
    signal: float = 1.0,
) -> Data:
    """Degree-corrected block model with heavy-tailed degrees (Karrer, Newman 2011): hubs and leaves in one graph.

    Every node gets a weight with tail ``P(w > t) = t^(1 - exponent)`` (at most ``sqrt(n * average weight)``, so that
    edge probabilities stay below 1). An edge picks its first end by weight, stays in that end's class with probability
    ``homophily``, else takes another class, and picks its second end there by weight. Features are a class mean of
    norm ``signal`` plus standard normal noise of expected squared norm 1.
    """
    if not 0 <= homophily <= 1:
        raise InputError(f"powerlaw-sbm: homophily is {homophily}, give a share from 0 to 1")
    if exponent <= 2 or classes < 2 or features < 1 or nodes < 2 * classes or average_degree <= 0:
        raise InputError(
            "powerlaw-sbm: give exponent > 2, at least 2 classes, 1 feature, 2 nodes per class, degree > 0"
        )
    rng = np.random.default_rng([seed, 0x706C6177])
    labels = rng.permutation(np.arange(nodes) % classes)
    weights = powerlaw_weights(rng, nodes, exponent)
    count = rng.poisson(nodes * average_degree / 2)
    first = by_weight(rng, np.arange(nodes), weights, count)
    shift = rng.integers(1, classes, count)
    target = (labels[first] + np.where(rng.random(count) < homophily, 0, shift)) % classes
    second = second_ends(rng, target, labels, weights)
    centres = rng.standard_normal((classes, features))
    centres *= signal / np.linalg.norm(centres, axis=1, keepdims=True)
    x = rng.standard_normal((nodes, features), dtype=np.float32) / np.float32(math.sqrt(features))
    x += centres.astype(np.float32)[labels]
    data = data_of(torch.from_numpy(x), labels, np.stack([first, second]), classes=classes, name="powerlaw-sbm")
    data.parameters = {"exponent": exponent, "homophily": homophily, "average_degree": average_degree, "signal": signal}
    return data


def powerlaw_weights(rng: np.random.Generator, nodes: int, exponent: float) -> np.ndarray:
    """Weights with a heavy tail, cut where the two heaviest nodes would have more than one edge between them."""
    weights = (1 - rng.random(nodes)) ** (1 / (1 - exponent))
    return np.minimum(weights, math.sqrt(nodes * weights.mean()))


def second_ends(rng: np.random.Generator, target: np.ndarray, blocks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """For every edge an end in its ``target`` block, drawn by weight; every block has a member."""
    second = np.empty(target.size, dtype=np.int64)
    by_block, by_target = np.argsort(blocks, kind="stable"), np.argsort(target, kind="stable")
    count = int(blocks.max()) + 1
    members = np.split(by_block, np.cumsum(np.bincount(blocks, minlength=count))[:-1])
    edges = np.split(by_target, np.cumsum(np.bincount(target, minlength=count))[:-1])
    for inside, asked in zip(members, edges, strict=True):
        second[asked] = rng.permutation(by_weight(rng, inside, weights[inside], asked.size))
    return second


def by_weight(rng: np.random.Generator, things: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """``count`` independent draws with chances proportional to ``weights``, in the order of ``things``; linear."""
    return np.repeat(things, rng.multinomial(count, weights / weights.sum()))


def _pairs_inside(rng: np.random.Generator, size: int, probability: float) -> np.ndarray:
    """Every unordered pair of ``size`` things independently with ``probability``: first how many, then which."""

    def draw(count: int) -> np.ndarray:
        first = rng.integers(0, size, count)
        second = rng.integers(0, size - 1, count)
        second += second >= first  # ordered pairs of distinct things; each unordered pair has two of them
        return np.minimum(first, second) * size + np.maximum(first, second)

    count = rng.binomial(size * (size - 1) // 2, probability)
    return np.stack(np.divmod(_distinct(draw, count), size))


def _pairs_across(rng: np.random.Generator, members: list[np.ndarray], probability: float) -> np.ndarray:
    rows, columns = (group.size for group in members)
    count = rng.binomial(rows * columns, probability)
    return np.stack(np.divmod(_distinct(lambda n: rng.integers(0, rows * columns, n), count), columns))


def _distinct(draw: Callable[[int], np.ndarray], count: int) -> np.ndarray:
    """The first ``count`` distinct values of the stream ``draw``: a uniform set, since draws are never in excess."""
    values = sorted_unique(draw(count))
    while values.size < count:
        values = sorted_unique(np.concatenate([values, draw(count - values.size)]))
    return values


def data_of(
    x: torch.Tensor, labels: np.ndarray, edges: np.ndarray, classes: int, name: str, directed: bool = False
) -> Data:
    """A generated graph: distinct edges (or arcs, if it is directed) without self-loops."""
    if directed:
        arcs = unique_arcs(edges[:, edges[0] != edges[1]], labels.size).astype(np.int64)
    else:
        arcs = both_directions(undirected_pairs(edges, labels.size), labels.size)
    data = Data(x=x, y=torch.from_numpy(labels.astype(np.int64)), edge_index=torch.from_numpy(arcs))
    data.num_nodes, data.num_classes, data.directed, data.name = labels.size, classes, directed, name
    return data
