"""Blocks on this machine: read and computed in a few threads, handed on in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from graphveil.graph.blocks import SIZE, Block
from graphveil.learn.engine.base import cut, in_order
from graphveil.learn.engine.threads import threads_given

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.learn.engine.messages import Sent

T = TypeVar("T")


@dataclass(frozen=True)
class Local:
    """So many blocks at a time, of so many records where the graph is in memory; kernels let go of the interpreter."""

    threads: int = field(default_factory=threads_given)
    records: int = SIZE
    elsewhere = False

    def started(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def spans(self, private: Graph) -> tuple[slice, ...]:
        return cut(private, self.records)

    def answers(self, private: Graph, query: Callable[[Block], T]) -> Iterator[tuple[int, T]]:
        """In the order of the blocks; at most one block per thread is waited for."""
        blocks = (Block(private, slots) for slots in self.spans(private))
        if self.threads == 1 or len(self.spans(private)) == 1:
            yield from enumerate(map(query, blocks))
            return
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[tuple[int, Future[T]]] = deque()
            for number, block in enumerate(blocks):
                waiting.append((number, pool.submit(query, block)))
                if len(waiting) > self.threads:
                    yield _done(waiting)
            while waiting:
                yield _done(waiting)

    def added(self, private: Graph, sent: Sent) -> np.ndarray:
        """Lists are read in threads and added up here, in one table."""
        from graphveil.graph.kernels.lines import zeros_on_lines
        from graphveil.graph.kernels.list_sums import spread

        table: np.ndarray | None = None
        for starts, rows, values in in_order(self, private, sent.of):
            if table is None:
                table = zeros_on_lines(sent.rows, values.shape[1])
            spread(starts, rows, values, table)
        if table is None:
            raise ValueError("a graph has at least one record")
        return table


def _done(waiting: deque[tuple[int, Future[T]]]) -> tuple[int, T]:
    number, answer = waiting.popleft()
    return number, answer.result()
