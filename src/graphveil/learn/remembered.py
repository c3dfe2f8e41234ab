"""Seeded computations that come to the same are made once, while somebody remembers.

Settings of a sweep often end in the same inputs: where a threshold lies above every similarity each list is sent as it is,
whatever the other options say. Inside ``with remembering(memory)`` a result is kept under a digest of everything that its
computation reads, coins included; outside nothing is kept. For seeded research in one process: nothing is written. Tests:
``tests/learn/test_remembered.py``.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class Memory:
    """The results that were asked for last; ``reused`` counts how often one was found."""

    def __init__(self, most: int) -> None:
        self.most, self.reused = most, 0
        self._kept: OrderedDict[bytes, Any] = OrderedDict()

    def result(self, read: Any, compute: Callable[[], T]) -> T:
        key = hashlib.blake2b(pickle.dumps(read)).digest()  # only ever compared, never loaded
        if key in self._kept:
            self.reused += 1
        found: T = self._kept.pop(key) if key in self._kept else compute()
        self._kept[key] = found
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return found


_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)


@contextmanager
def remembering(memory: Memory | None) -> Iterator[None]:
    """Results are kept in this memory; None: none are."""
    token = _memory.set(memory)
    try:
        yield
    finally:
        _memory.reset(token)


def remembered(read: Any, compute: Callable[[], T]) -> T:
    """What ``compute`` gives, if it reads nothing but ``read``: from memory where it is there."""
    memory = _memory.get()
    return compute() if memory is None else memory.result(read, compute)
