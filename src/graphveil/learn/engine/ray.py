"""Blocks on the workers of a Ray cluster, with the same releases bit for bit.

*Trust.* All machines of the cluster belong to the curator: clean answers travel between them, lie in the object store and may be
spilled to the disks of its machines. Noise, plan, budget and ledger stay in the process that called ``fit``: a query that would
take them along cannot be sent (a noise stream refuses to be copied). Noise meets a clean sum once, there.

*What travels.* A query goes into the object store once, with the tables it closes over (masks, released tables, weights: one
shared read-only copy per machine), and each task is told its number and the slots of its block. Of a graph in a folder the path
travels, with labels and public masks as the curator hands them out (n numbers, one copy per machine); each worker reads features
and lists of its blocks from the files, which must be there on every machine, and keeps up to ``folder.ELSEWHERE`` bytes of
features for the next query. A graph in memory goes into the object store once, block by block. Answers of ``total`` and
``gathered`` come back as they are.

*What a worker holds.* One block with its answer. Messages along lists (``spread``) are sorted by the range of rows that they go
to, ``rows`` receivers each; one task adds up one range for a group of blocks. It holds the sums of that range (before and after:
2 x rows x width numbers) and what the group sends there, and nobody but the curator's process ever holds the sums of all n. At
most ``room`` blocks are under way (``spread``: two groups of ``room``), and the object store holds no more messages than theirs.

*Failures.* A task is a function of the block and the query alone, and its answer is kept under the number of its block. If a
worker dies, Ray repeats the task (up to ``retries`` times, on another worker); the answer is the same and counts once. A task
that is lost more often, or raises an error, stops the fit with one line; what the ledger holds by then is spent.

*Machines.* Sums do not round, but the terms of a record do: all machines need the same versions and the same kind of processor,
or the last digits of a term would tell which of them computed a block.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from graphveil.errors import GraphveilError
from graphveil.graph.blocks import SIZE, Block
from graphveil.learn.engine.base import cut
from graphveil.learn.engine.cluster import joined, processors
from graphveil.learn.engine.messages import Addressed, Sent, added_up

if TYPE_CHECKING:
    from graphveil.graph import Graph

T = TypeVar("T")
PER_PROCESSOR = 2  # blocks under way


@dataclass(eq=False)
class Ray:
    """The cluster at ``address``, or a new one on this machine with so many ``workers`` (default: its processors).

    Args:
        records: of a block, where the graph is in memory.
        rows: of a range of receivers.
        room: blocks under way at a time (default: two per processor).
        retries: how often a task is repeated if its worker dies.
    """

    address: str | None = None
    workers: int | None = None
    records: int = SIZE
    rows: int = 1 << 18
    room: int | None = None
    retries: int = 3
    elsewhere = True
    _ray: Any = field(default=None, init=False, repr=False)
    _tasks: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False)
    _shared: WeakKeyDictionary[Any, Any] = field(default_factory=WeakKeyDictionary, init=False, repr=False)

    @contextmanager
    def started(self) -> Iterator[None]:
        with joined(self.workers or os.cpu_count() or 1, self.address) as ray:
            remote = ray.remote(num_cpus=1, max_retries=self.retries)
            self._ray, self._tasks = ray, {task: remote(task) for task in (_answer, _sorted, _added)}
            try:
                yield
            finally:
                self._ray, self._tasks = None, {}
                self._shared.clear()

    def spans(self, private: Graph) -> tuple[slice, ...]:
        return cut(private, self.records)

    def answers(self, private: Graph, query: Callable[[Block], T]) -> Iterator[tuple[int, T]]:
        """In the order of the blocks: a block starts when the one ``room`` places before it has been taken."""
        shared, asked, room = self._share(private), self._ray.put(query), self._room()
        waiting: deque[tuple[int, Any]] = deque()
        for number, slots in enumerate(self.spans(private)):
            waiting.append((number, self._tasks[_answer].remote(shared, asked, slots)))
            if len(waiting) >= room:
                yield self._done(*waiting.popleft())
        while waiting:
            yield self._done(*waiting.popleft())

    def added(self, private: Graph, sent: Sent) -> np.ndarray:
        """Range by range, group of blocks by group: sums so far plus what the group sends are the next sums so far."""
        shared, asked, room = self._share(private), self._ray.put(sent), self._room()
        firsts = range(0, max(sent.rows, 1), self.rows)
        sizes = [min(self.rows, sent.rows - first) for first in firsts]
        sort = self._tasks[_sorted].options(num_returns=len(sizes))
        sums: list[Any] = [None] * len(sizes)
        spans = self.spans(private)
        for start in range(0, len(spans), room):
            sorted_ = [sort.remote(shared, asked, slots, self.rows) for slots in spans[start : start + room]]
            by_range = zip(*sorted_, strict=True) if len(sizes) > 1 else [sorted_]
            before = sums
            sums = [
                self._tasks[_added].remote(rows, so_far, *parts)
                for rows, so_far, parts in zip(sizes, before, by_range, strict=True)
            ]
            if start:
                self._ray.wait(before, num_returns=len(before), fetch_local=False)
        table: np.ndarray | None = None
        for number, (first, size) in enumerate(zip(firsts, sizes, strict=True)):
            found = self._done(number, sums[number])[1]
            sums[number] = None
            if table is None:
                table = np.empty((sent.rows, found.shape[1]))
            table[first : first + size] = found
        assert table is not None
        return table

    def _room(self) -> int:
        return self.room or PER_PROCESSOR * processors(self._ray)

    def _done(self, number: int, answer: Any) -> tuple[int, Any]:
        errors = self._ray.exceptions
        try:
            return number, self._ray.get(answer)
        except errors.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, Exception):  # what the query raised, without the worker's traceback
                raise cause from None
            lost = " ".join(str(error).split())[:300]
            raise GraphveilError(f"part {number} of a query was lost for good, the run has stopped: {lost}") from None

    def _share(self, private: Graph) -> Any:
        """The graph in the object store, without names; it stays there as long as the graph is here."""
        if private not in self._shared:
            parts = {} if private.on_disk else {"rows": private.rows, "lists": private.lists}
            fetched = {name: self._fetched(private, part) for name, part in parts.items()}
            self._shared[private] = self._ray.put(replace(private, ids=None, **fetched))
        return self._shared[private]

    def _fetched(self, private: Graph, parts: Any) -> Any:
        """Rows or lists in the object store, block by block; several graphs may have the same."""
        if parts not in self._shared:
            stored = {slots.start: self._ray.put(parts.block(slots)) for slots in self.spans(private)}
            self._shared[parts] = Fetched((private.nodes, private.features), stored)
        return self._shared[parts]


@dataclass(frozen=True)
class Fetched:
    """Rows or lists in the object store: a block is fetched by whoever asks for it."""

    shape: tuple[int, int]
    stored: dict[int, Any]

    def block(self, slots: slice) -> Any:
        import ray

        return ray.get(self.stored[slots.start])


def _answer(private: Graph, query: Callable[[Block], T], slots: slice) -> T:
    return query(Block(private, slots))


def _sorted(private: Graph, sent: Sent, slots: slice, size: int) -> Any:
    """The messages of a block by the range they go to; of one range, that alone."""
    found = tuple(sent.by_range(Block(private, slots), size))
    return found if len(found) > 1 else found[0]


def _added(rows: int, before: np.ndarray | None, *parts: Addressed) -> np.ndarray:
    return added_up(rows, parts, before)
