"""Everybody's contact lists, and the sums that travel along them.

Convention of the whole package: ``edge_index[0]`` holds senders ``k`` and ``edge_index[1]`` receivers ``i``, so
``A[i, k] = 1`` means that ``k`` sends to ``i``. The out-list of ``k`` (column ``k`` of ``A``) is its own contact list
and part of its record. Lists are kept exactly as given: symmetrising them here would move an entry of one person's
record into another's and void the ``record`` adjacency.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from graphveil.errors import InputError

GRID = 2.0**-24
"""Spacing of message values: sums of magnitude below 2^29 on this grid are exact in float64 (53 bits)."""

_SLACK = 1.0 - 2.0**-50


class Lists:
    """The 0/1 matrix ``A`` of who sends to whom, one row per receiver: boolean CSR, canonical, without diagonal.

    ``duplicates`` and ``self_loops`` count the arcs that were merged and dropped to get it.
    """

    def __init__(self, matrix: sp.csr_matrix, duplicates: int = 0, self_loops: int = 0) -> None:
        self._matrix = matrix
        self.duplicates = duplicates
        self.self_loops = self_loops

    @classmethod
    def from_edge_index(cls, edge_index: np.ndarray, nodes: int) -> Lists:
        """Coalesce ``edge_index`` of shape ``(2, arcs)`` to 0/1 entries and drop self-loops.

        Repeated arcs would be counted in the degree and in the sum at once and break Lemma M, hence 0/1.
        """
        senders, receivers = np.asarray(edge_index)
        if senders.size and (min(senders.min(), receivers.min()) < 0 or max(senders.max(), receivers.max()) >= nodes):
            raise InputError(f"edge_index names a node outside 0..{nodes - 1}: check the numbering of the nodes")
        loops = senders == receivers
        self_loops = int(np.count_nonzero(loops))
        if self_loops:
            senders, receivers = senders[~loops], receivers[~loops]
        coordinates = (np.ones(senders.size, dtype=bool), (receivers, senders))
        matrix = sp.coo_matrix(coordinates, shape=(nodes, nodes)).tocsr()  # counting sort, then merges duplicates
        matrix.sort_indices()
        return cls(matrix, duplicates=int(senders.size - matrix.nnz), self_loops=self_loops)

    @property
    def matrix(self) -> sp.csr_matrix:
        """``A`` itself; not to be written to."""
        return self._matrix

    @property
    def nodes(self) -> int:
        return int(self._matrix.shape[0])

    @property
    def arcs(self) -> int:
        return int(self._matrix.nnz)

    @cached_property
    def out_degrees(self) -> np.ndarray:
        """Length of everybody's own contact list (int64)."""
        return np.bincount(self._matrix.indices, minlength=self.nodes).astype(np.int64, copy=False)

    @cached_property
    def in_degrees(self) -> np.ndarray:
        """By how many lists everybody is mentioned (int64)."""
        return np.asarray(np.diff(self._matrix.indptr), dtype=np.int64)

    def edge_index(self) -> np.ndarray:
        """The arcs as an int64 array ``(2, arcs)`` of senders and receivers, sorted by receiver, then sender."""
        receivers = np.repeat(np.arange(self.nodes, dtype=np.int64), self.in_degrees)
        return np.stack([self._matrix.indices.astype(np.int64), receivers])

    def aggregate(self, messages: np.ndarray) -> np.ndarray:
        """``A @ messages``: row ``i`` sums the messages of everybody who lists ``i``. Linear in arcs.

        If the messages lie on the grid 2^-24 (:meth:`split_messages`) and the absolute values of each sum stay below
        2^29, every partial sum is a multiple of 2^-24 below 2^29 and thus a float64 without rounding: the result
        is exact and independent of the order of summation, so one record moves it by its own messages and nothing
        else. Rounded sums do not have that property: one message can push a partial sum over a power of two and
        change how all later ones are rounded.
        """
        messages = np.asarray(messages, dtype=np.float64)
        if messages.shape[0] != self.nodes:
            raise InputError(f"{messages.shape[0]} messages for {self.nodes} nodes: give one row per node")
        return _read(self._matrix.indptr, self._matrix.indices, messages)

    @cached_property
    def _own(self) -> tuple[np.ndarray, np.ndarray]:
        """Where everybody's own list starts, and the entries of all."""
        columns = self._matrix.tocsc()
        return columns.indptr, columns.indices

    def of(self, people: np.ndarray) -> OwnLists:
        """The own contact lists of these people; nobody's depends on anybody else's."""
        starts, entries = self._own
        if len(people) == self.nodes:
            return OwnLists(starts, entries, self.nodes)
        people = np.asarray(people)
        lengths = starts[people + 1] - starts[people]
        chosen = np.concatenate([[0], np.cumsum(lengths)])
        where = np.repeat(starts[people] - chosen[:-1], lengths) + np.arange(chosen[-1])
        return OwnLists(chosen.astype(starts.dtype), entries[where], self.nodes)

    def block(self, slots: slice) -> OwnLists:
        """The own contact lists of the people in these slots."""
        starts, entries = self._own
        first, last = starts[slots.start], starts[slots.stop]
        return OwnLists(starts[slots.start : slots.stop + 1] - first, entries[first:last], self.nodes)

    def mass_weights(self, floor: int = 1) -> np.ndarray:
        """:func:`mass_weights` of everybody's own list."""
        return mass_weights(self.out_degrees, floor)

    def split_messages(self, values: np.ndarray, floor: int = 1) -> np.ndarray:
        """``w_k * values[k]`` truncated towards zero to the grid 2^-24.

        Truncation never lengthens a row, and :meth:`aggregate` of the result is exact: the two facts that make the
        sensitivity of the sum equal to that of the formula.
        """
        values = np.asarray(values, dtype=np.float64)
        return on_grid(self.mass_weights(floor)[:, None] * values)

    def capped(self, max_degree: int, rng: np.random.Generator) -> Lists:
        """Keep at most ``max_degree`` entries of everybody's own list, those of smallest random priority.

        The coins are public: ``rng`` yields one key and the priority of the pair ``(k, i)`` is a hash of key, ``k`` and
        ``i``. What is kept of ``k``'s list therefore depends on that list alone, which is what ``record`` needs; a cap
        gives no guarantee for ``node`` on arbitrary graphs (displaced entries: soundness of degree caps).
        """
        if max_degree < 1:
            raise InputError(f"max_degree is {max_degree}: give at least 1")
        key = rng.integers(0, 2**63, dtype=np.uint64)
        senders, receivers = self.edge_index()
        priority = _mix(_mix(senders.astype(np.uint64) ^ key) + receivers.astype(np.uint64))
        order = np.lexsort((receivers, priority, senders))
        starts = np.concatenate([[0], np.cumsum(self.out_degrees)])
        rank = np.arange(self.arcs) - starts[senders[order]]
        kept = np.sort(order[rank < max_degree])
        return self._select(kept)

    def bounded(self, max_degree: int, rng: np.random.Generator) -> Lists:
        """At most ``max_degree`` entries in everybody's list *and* mentions of everybody; mutual contacts stay mutual.

        A pair is kept if its random priority (one per pair, from public coins) is among the ``max_degree`` smallest of both
        people. Who is kept depends on other people's lists: no adjacency but ``bounded-degree`` makes anything of it.
        """
        key = rng.integers(0, 2**63, dtype=np.uint64)
        senders, receivers = self.edge_index()
        low, high = np.minimum(senders, receivers).astype(np.uint64), np.maximum(senders, receivers).astype(np.uint64)
        priority = _mix(_mix(low ^ key) + high)
        kept = np.ones(self.arcs, dtype=bool)
        for people, degrees in ((senders, self.out_degrees), (receivers, self.in_degrees)):
            order = np.lexsort((priority, people))
            starts = np.concatenate([[0], np.cumsum(degrees)])
            kept[order] &= np.arange(self.arcs) - starts[people[order]] < max_degree
        return self._select(np.flatnonzero(kept))

    def turned(self) -> Lists:
        """Every arc the other way round: row ``i`` then holds those whom ``i`` itself lists."""
        matrix = self._matrix.T.tocsr()
        matrix.sort_indices()
        return Lists(matrix)

    def restricted_to(self, receivers: np.ndarray) -> Lists:
        """Only the arcs into the receivers under this (public) boolean mask; degrees count what is left."""
        receivers = np.asarray(receivers)
        if receivers.dtype != bool or receivers.shape != (self.nodes,):
            raise InputError(f"receivers must be a boolean mask of length {self.nodes}")
        return self._select(np.flatnonzero(np.repeat(receivers, self.in_degrees)))

    def _select(self, positions: np.ndarray) -> Lists:
        keep = np.zeros(self.arcs + 1, dtype=np.int64)
        keep[positions + 1] = 1
        indptr = np.cumsum(keep)[self._matrix.indptr].astype(self._matrix.indptr.dtype)
        indices = self._matrix.indices[positions]
        matrix = sp.csr_matrix((np.ones(indices.size, dtype=bool), indices, indptr), shape=self._matrix.shape)
        return Lists(matrix)


class OwnLists:
    """Contact lists of some people: list i has the entries ``entries[starts[i]:starts[i + 1]]``, slots among ``nodes``."""

    def __init__(self, starts: np.ndarray, entries: np.ndarray, nodes: int) -> None:
        self.starts, self.entries, self.nodes = starts, entries, nodes

    @cached_property
    def degrees(self) -> np.ndarray:
        return np.asarray(np.diff(self.starts), dtype=np.int64)

    def read(self, table: np.ndarray) -> np.ndarray:
        """For every list the sum of the rows of ``table`` (one per slot) that it names."""
        return _read(self.starts, self.entries, table)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """For every slot the sum of the ``values`` (one row per list) of the lists that name it; exact on the grid 2^-24."""
        from graphveil.graph.kernels.lines import zeros_on_lines
        from graphveil.graph.kernels.list_sums import spread

        found = zeros_on_lines(self.nodes, values.shape[1])
        spread(self.starts, self.entries, np.ascontiguousarray(values), found)
        return found


def _read(starts: np.ndarray, entries: np.ndarray, table: np.ndarray) -> np.ndarray:
    from graphveil.graph.kernels.lines import on_lines
    from graphveil.graph.kernels.list_sums import read

    found = np.empty((len(starts) - 1, table.shape[1]))
    read(starts, entries, on_lines(table), found)
    return found


def mass_weights(degrees: np.ndarray, floor: int = 1) -> np.ndarray:
    """``w_k = max(d_k, floor)^(-1/2)`` with ``d_k`` the length of ``k``'s own list (Lemma M, mass splitting).

    With rows of norm at most 1, the messages ``w_k h_k`` that ``k`` sends to its ``d_k`` contacts have joint norm
    at most 1 for any degree, so blanking one record moves the aggregate by at most 1. Weights that are no power
    of two are rounded down, so the bound holds for the stored numbers, not only for the formula.
    """
    weights: np.ndarray = 1.0 / np.sqrt(np.maximum(degrees, max(int(floor), 1)))
    exact = np.frexp(weights)[0] == 0.5
    return np.where(exact, weights, weights * _SLACK)


def on_grid(values: np.ndarray) -> np.ndarray:
    """``values`` truncated towards zero to multiples of 2^-24, so that none grows."""
    return np.asarray(np.trunc(values / GRID) * GRID)


def _mix(values: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: a bijection of 64-bit words in which every input bit moves every output bit."""
    with np.errstate(over="ignore"):
        values = values + np.uint64(0x9E3779B97F4A7C15)
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(values ^ (values >> np.uint64(31)))
