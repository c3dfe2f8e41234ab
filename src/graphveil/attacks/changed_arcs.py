"""Exact influence in two-layer networks on arcs, attention included: only what a changed row can reach is computed again.

When the row of v changes, the first layer changes at v and at whoever hears v, and the logits of u change only through those of
them that u hears, or through u itself. So a pair (u, v) has few *items*, hidden rows (v, w) with w in N[u] and N[v], and

    hidden of an item = first layer at w, on all arcs of w, with v's new row in the place of its old one,
    logits of a pair  = second layer at u, on all arcs of u, with its items in the place of the hidden rows they change.

Clean and changed logits are computed on the same items in the same order, so that what does not change does not differ in the
last bit either; pairs without an item are exactly 0. The numbers are those of a forward pass per probe, in the precision of the
network. Test: ``tests/attacks/test_changed_arcs.py`` compares them with one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from graphveil.attacks.target import Perturbation, compared
from graphveil.learn.arcs import Arcs, Said
from graphveil.learn.attention import Gat, Gatv2, Transformer
from graphveil.learn.backbones import TwoLayers
from graphveil.learn.operators import Gcn, GraphSum, Sage

WITH_LOOPS = (Gcn, Gat, Gatv2)  # everybody hears itself; in the others one's own row has a place of its own
BLOCK = 1_000_000  # arcs that are held at once


def runs_on_arcs(network: Any) -> bool:
    """Whether this network's influence can be found here."""
    layers = (network.first, network.second) if isinstance(network, TwoLayers) else ()
    return bool(layers) and all(isinstance(layer, (*WITH_LOOPS, Transformer, GraphSum, Sage)) for layer in layers)


@dataclass(frozen=True, eq=False)
class Block(Arcs):
    """The arcs of some receivers, from a table of rows; ``weights`` of GCN and the mean come from the whole graph."""

    weights: np.ndarray
    table: int

    @property
    def with_loops(self) -> Block:  # type: ignore[override]
        """Itself: it was cut from arcs that had theirs."""
        return self

    def _matrix(self) -> _Product:
        return _Product(sp.csr_matrix((self.weights, self.senders, self.starts), (self.nodes, self.table)))

    gcn = means = sums = property(_matrix)  # type: ignore[assignment]


class _Product:
    """``matrix @ x`` in the precision of x, summed in the order of the arcs; nothing is learned through it."""

    def __init__(self, matrix: sp.csr_matrix) -> None:
        self.matrix = matrix

    def __matmul__(self, x: Tensor) -> Tensor:
        rows = x.contiguous().numpy()
        return torch.from_numpy(self.matrix.astype(rows.dtype) @ rows)


class Heard(NamedTuple):
    """Arcs of some receivers: where each one's begin, whose each is (by position), its sender and its weight."""

    starts: np.ndarray
    whose: np.ndarray
    senders: np.ndarray
    weights: np.ndarray

    def from_table(self, rows: np.ndarray, table: int) -> Block:
        """The same arcs, each from a row of a table."""
        return Block(self.starts, rows, self.weights, table)


class Hearing:
    """Who hears whom in one layer, with the weights that its operator gives to arcs."""

    def __init__(self, operator: Any, arcs: Arcs) -> None:
        self.arcs = arcs.with_loops if isinstance(operator, WITH_LOOPS) else arcs
        degrees = np.diff(self.arcs.starts)
        self.degrees, receivers = degrees, self.arcs.receivers
        root = 1 / np.sqrt(np.maximum(degrees, 1))
        self.weights = np.ones(len(receivers))
        if isinstance(operator, Gcn):
            self.weights = root[receivers] * root[self.arcs.senders]
        elif isinstance(operator, Sage):
            self.weights = 1 / np.maximum(degrees, 1)[receivers]
        self.keys = receivers * self.arcs.nodes + self.arcs.senders  # increasing

    def of(self, receivers: np.ndarray) -> Heard:
        """All arcs of these receivers."""
        counts = self.degrees[receivers]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) + np.repeat(self.arcs.starts[receivers] - starts[:-1], counts)
        whose = np.repeat(np.arange(len(receivers)), counts)
        return Heard(starts, whose, self.arcs.senders[places], self.weights[places])

    def hears(self, receivers: np.ndarray, senders: np.ndarray) -> np.ndarray:
        """Whether ``receivers[i]`` hears ``senders[i]``."""
        return found(self.keys, receivers * self.arcs.nodes + senders)[1]


class ChangedArcs:
    """A network on one graph, and how its answers move when single rows change."""

    def __init__(self, network: Any, x: Tensor, edge_index: np.ndarray) -> None:
        self.first, self.second, self.x, self.nodes = network.first, network.second, x, len(x)
        arcs = Arcs.of(edge_index, self.nodes)
        self.layers = Hearing(self.first, arcs), Hearing(self.second, arcs)
        with torch.no_grad():
            self.said: Said = self.first.sent(x)
            whole = self.layers[0].of(np.arange(self.nodes))
            self.said_next = self._next(
                self.first.heard(self.said, self.said, whole.from_table(whole.senders, self.nodes))
            )

    def influence(
        self, receivers: np.ndarray, probes: np.ndarray, numbers: np.ndarray, change: Perturbation, compare: str
    ) -> np.ndarray:
        """How far the answer for ``receivers[i]`` moves when the row of ``probes[numbers[i]]`` is changed."""
        far = np.zeros(len(receivers))
        items = self._items(receivers, probes, numbers)
        touched = np.flatnonzero(np.isin(numbers, items // self.nodes)) if len(items) else np.zeros(0, dtype=np.int64)
        if not len(touched):
            return far
        rows = torch.from_numpy(change.changed(self.x.numpy(), probes)).to(self.x.dtype)
        with torch.no_grad():
            clean, moved = (
                self._answers(items, receivers[touched], probes, numbers[touched], self.first.sent(asked))
                for asked in (self.x[torch.from_numpy(probes)], rows)
            )
        far[touched] = np.linalg.norm(compared(moved, compare) - compared(clean, compare), axis=1)
        return far

    def _items(self, receivers: np.ndarray, probes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Hidden rows that change and are heard, as (number of the probe) x nodes + w, increasing."""
        arcs = self.layers[1].of(receivers)
        pairs = np.concatenate([arcs.whose, np.arange(len(receivers))])
        between = np.concatenate([arcs.senders, receivers])
        changed = probes[numbers[pairs]]
        reached = (between == changed) | self.layers[0].hears(between, changed)
        return np.unique(numbers[pairs[reached]] * self.nodes + between[reached])

    def _answers(
        self, items: np.ndarray, receivers: np.ndarray, probes: np.ndarray, numbers: np.ndarray, said: Said
    ) -> np.ndarray:
        """Probabilities of the receivers, if ``said`` is what the probes say."""
        which, between = np.divmod(items, self.nodes)
        table = tuple(torch.cat(parts) for parts in zip(self.said, said, strict=True))
        hidden, ends = [], np.cumsum(self.layers[0].degrees[between]) // BLOCK
        for some in np.split(np.arange(len(items)), np.flatnonzero(np.diff(ends)) + 1):
            arcs, probe = self.layers[0].of(between[some]), probes[which[some]]
            row = self.nodes + which[some]  # of the probe, in the table
            own = _taken(table, np.where(between[some] == probe, row, between[some]))
            rows = np.where(arcs.senders == probe[arcs.whose], row[arcs.whose], arcs.senders)
            hidden.append(self.first.heard(table, own, arcs.from_table(rows, len(table[0]))))
        table = tuple(torch.cat(parts) for parts in zip(self.said_next, self._next(torch.cat(hidden)), strict=True))
        arcs = self.layers[1].of(receivers)
        rows = self._replaced(items, numbers[arcs.whose], arcs.senders)
        own = _taken(table, self._replaced(items, numbers, receivers))
        logits = self.second.heard(table, own, arcs.from_table(rows, len(table[0])))
        return torch.softmax(logits, dim=1).double().numpy()

    def _replaced(self, items: np.ndarray, numbers: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """Rows of the second table: of the item where there is one, else of the node."""
        place, there = found(items, numbers * self.nodes + nodes)
        return np.where(there, self.nodes + place, nodes)

    def _next(self, hidden: Tensor) -> Said:
        """What hidden rows say in the second layer."""
        said: Said = self.second.sent(torch.nn.functional.selu(hidden))
        return said


def _taken(said: Said, rows: np.ndarray) -> Said:
    return tuple(part[torch.from_numpy(rows)] for part in said)


def found(increasing: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the wanted keys are, and whether they are there."""
    if not len(increasing):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(increasing, wanted), len(increasing) - 1)
    return place, increasing[place] == wanted
