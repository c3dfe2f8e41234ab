"""Personalised PageRank: local pushes and l1-regularised ISTA.

With P the walk along contact lists (somebody without contacts stays), the vector of source s solves
``p = a e_s + (1 - a) P^T p``. *Push* (Andersen, Chung and Lang 2006) keeps a residual and moves mass only where it exceeds
``threshold * degree``: its cost does not depend on the size of the graph. *ISTA* (Fountoulakis et al. 2019, in DPAR) minimises

    1/2 q^T Q q - a s^T D^-1/2 q + rho a ||D^1/2 q||_1,    Q = I - (1 - a)/2 (I + D^-1/2 A D^-1/2),    p = D^1/2 q

on the undirected graph with self-loops; for rho -> 0 that is the lazy walk's vector, i.e. the ordinary one with teleport
2a/(1 + a). Tests: ``tests/graph/test_pagerank.py``; speed: ``benchmarks/pagerank.py``.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError
from graphveil.graph.lists import Lists

BLOCK = 32  # sources solved together: memory stays at a few dense vectors per source


def walk_matrix(lists: Lists) -> sp.csr_matrix:
    """P, one row per sender: uniform over the own list, or staying put if it is empty."""
    senders, receivers = lists.edge_index()
    nodes = lists.nodes
    alone = np.flatnonzero(lists.out_degrees == 0)
    weights = np.concatenate([1.0 / lists.out_degrees[senders], np.ones(alone.size)])
    coordinates = (np.concatenate([senders, alone]), np.concatenate([receivers, alone]))
    return sp.csr_matrix((weights, coordinates), shape=(nodes, nodes))


def push_rows(lists: Lists, sources: np.ndarray, teleport: float = 0.25, threshold: float = 1e-4) -> sp.csr_matrix:
    """One sparse row per source, below the true one by at most ``threshold * degree`` of residual per node."""
    _check(lists, sources, teleport)
    walk = walk_matrix(lists)
    arguments = (walk.indptr.astype(np.int64), walk.indices.astype(np.int64), np.asarray(sources, dtype=np.int64))
    indptr, indices, values = _push(*arguments, float(teleport), float(threshold))
    return sp.csr_matrix((values, indices, indptr), shape=(len(sources), lists.nodes))


@numba.njit(cache=True)
def _push(indptr, indices, sources, teleport, threshold):  # type: ignore[no-untyped-def]  # pragma: no cover
    nodes = indptr.size - 1
    p, r = np.zeros(nodes), np.zeros(nodes)
    queued = np.zeros(nodes, dtype=np.bool_)
    queue, touched = np.empty(nodes + 1, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    seen = np.zeros(nodes, dtype=np.bool_)
    starts = np.zeros(sources.size + 1, dtype=np.int64)
    columns, values = np.empty(1024, dtype=np.int64), np.empty(1024)
    stored = 0
    for row in range(sources.size):
        source = sources[row]
        head, tail, count = 0, 1, 1
        queue[0], queued[source], r[source], touched[0], seen[source] = source, True, 1.0, source, True
        while head != tail:
            u = queue[head]
            head = head + 1 if head < nodes else 0
            queued[u] = False
            degree = indptr[u + 1] - indptr[u]
            mass = r[u]
            r[u] = 0.0
            if degree == 1 and indices[indptr[u]] == u:  # no contacts: the walk stays for ever
                p[u] += mass
                continue
            p[u] += teleport * mass
            share = (1.0 - teleport) * mass / degree
            for position in range(indptr[u], indptr[u + 1]):
                v = indices[position]
                r[v] += share
                if not seen[v]:
                    seen[v] = True
                    touched[count] = v
                    count += 1
                if not queued[v] and r[v] > threshold * (indptr[v + 1] - indptr[v]):
                    queued[v] = True
                    queue[tail] = v
                    tail = tail + 1 if tail < nodes else 0
        kept = np.sort(touched[:count])
        for v in kept:
            if p[v] > 0.0:
                if stored == columns.size:
                    wider, more = np.empty(2 * stored, dtype=np.int64), np.empty(2 * stored)
                    wider[:stored], more[:stored] = columns, values
                    columns, values = wider, more
                columns[stored], values[stored] = v, p[v]
                stored += 1
            p[v], r[v], seen[v] = 0.0, 0.0, False
        starts[row + 1] = stored
    return starts, columns[:stored], values[:stored]


def ista_rows(
    lists: Lists,
    sources: np.ndarray,
    teleport: float = 0.25,
    rho: float = 1e-4,
    tolerance: float = 1e-4,
    iterations: int = 200,
    gamma: float | None = None,
) -> np.ndarray:
    """One dense row per source by proximal gradient steps of size 1 (Q's eigenvalues lie in [teleport, 1]).

    ``gamma``: stop as the paper's ISTA does, where no gradient exceeds ``(1 + gamma) rho a D^1/2``, instead of at the optimum.
    """
    _check(lists, sources, teleport)
    senders, receivers = lists.edge_index()
    nodes, ones = lists.nodes, np.ones(lists.arcs)
    directed = sp.csr_matrix((ones, (receivers, senders)), shape=(nodes, nodes))
    adjacency = directed.maximum(directed.T) + sp.eye(nodes, format="csr")
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    root = np.sqrt(degrees)
    smooth = sp.diags(1 / root) @ adjacency @ sp.diags(1 / root)
    shrink = (rho * teleport * root)[:, None]
    rows = np.empty((len(sources), nodes))
    for first in range(0, len(sources), BLOCK):
        block = np.asarray(sources)[first : first + BLOCK]
        linear = np.zeros((nodes, block.size))
        linear[block, np.arange(block.size)] = teleport / root[block]
        q = np.zeros_like(linear)
        for _ in range(iterations):
            moved = smooth @ q
            moved += q
            moved *= (1 - teleport) / 2
            moved += linear
            if gamma is not None and float((np.abs(q - moved) - (1 + gamma) * shrink).max()) <= 0:
                break
            moved -= shrink
            np.maximum(moved, 0.0, out=moved)
            q -= moved
            change = float(np.abs(q, out=q).max(initial=0.0))
            q = moved
            if change <= tolerance * rho * teleport:
                break
        rows[first : first + BLOCK] = (root[:, None] * q).T
    return rows


def _check(lists: Lists, sources: np.ndarray, teleport: float) -> None:
    if not 0 < teleport < 1:
        raise InputError(f"the teleport probability must lie strictly between 0 and 1, got {teleport}")
    if len(sources) and (np.min(sources) < 0 or np.max(sources) >= lists.nodes):
        raise InputError(f"a source lies outside 0..{lists.nodes - 1}")
