"""Balanced clusters in time linear in the edges: breadth-first growth, then rounds of moves to where most contacts are.

A plain stand-in for METIS. Tests: ``tests/graph/test_splits.py``.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

ROUNDS = 10


def balanced_clusters(edge_index: np.ndarray, nodes: int, parts: int, coins: np.random.Generator) -> np.ndarray:
    """The cluster of every node; none has more than one node above the mean."""
    ones = np.ones(edge_index.shape[1], dtype=np.int8)
    arcs = sp.csr_matrix((ones, (edge_index[0], edge_index[1])), shape=(nodes, nodes))
    both = (arcs + arcs.T).tocsr()
    indptr, indices = both.indptr.astype(np.int64), both.indices.astype(np.int64)
    order = _breadth_first(indptr, indices, coins.permutation(nodes))
    most = -(-nodes // parts)
    part = np.empty(nodes, dtype=np.int64)
    part[order] = np.arange(nodes) // most
    for _ in range(ROUNDS):
        if _move(indptr, indices, part, parts, most + 1, coins.permutation(nodes)) == 0:
            break
    return part


@numba.njit(cache=True)
def _breadth_first(indptr: Any, indices: Any, starts: Any) -> Any:  # pragma: no cover
    """All nodes, component by component, in breadth-first order."""
    seen = np.zeros(starts.size, dtype=np.bool_)
    order = np.empty(starts.size, dtype=np.int64)
    head = tail = 0
    for start in starts:
        if seen[start]:
            continue
        seen[start], order[tail] = True, start
        tail += 1
        while head < tail:
            node = order[head]
            head += 1
            for at in range(indptr[node], indptr[node + 1]):
                if not seen[indices[at]]:
                    seen[indices[at]], order[tail] = True, indices[at]
                    tail += 1
    return order


@numba.njit(cache=True)
def _move(indptr: Any, indices: Any, part: Any, parts: int, most: int, order: Any) -> int:  # pragma: no cover
    """One round over all nodes; each goes where most of its contacts are, if there is room. Returns how many went."""
    size = np.bincount(part, minlength=parts)
    moved = 0
    near = np.zeros(parts, dtype=np.int64)
    for node in order:
        near[:] = 0
        for at in range(indptr[node], indptr[node + 1]):
            near[part[indices[at]]] += 1
        own = part[node]
        best = own
        for other in range(parts):
            if near[other] > near[best] and size[other] < most:
                best = other
        if best != own:
            part[node] = best
            size[own] -= 1
            size[best] += 1
            moved += 1
    return moved
