"""Blocks on this machine: read and computed in a few threads, handed on in their order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.graph.blocks import Block

T = TypeVar("T")


def threads_given() -> int:
    """As many threads as ``OMP_NUM_THREADS`` allows, or as there are processors."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else os.cpu_count() or 1


@dataclass(frozen=True)
class Local:
    """So many blocks at a time; kernels let go of the interpreter while they run."""

    threads: int = field(default_factory=threads_given)

    def each(self, private: Graph, query: Callable[[Block], T]) -> Iterator[T]:
        """What ``query`` finds for every block, in the order of the blocks; at most one block per thread is waited for."""
        if self.threads == 1 or len(private.spans) == 1:
            yield from map(query, private.blocks())
            return
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[Any]] = deque()
            for block in private.blocks():
                waiting.append(pool.submit(query, block))
                if len(waiting) > self.threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
