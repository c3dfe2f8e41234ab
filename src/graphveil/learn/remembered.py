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
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Memory:
    """The results that were asked for last, as long as what they were computed from fits into ``most`` bytes.

    ``reused`` counts how often one was found; ``notes`` are what else became known of a result, for as long as it lives.
    """

    def __init__(self, most: int) -> None:
        self.most, self.reused = most, 0
        self.notes: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
        self._kept: OrderedDict[bytes, tuple[int, Any]] = OrderedDict()

    def result(self, read: Any, compute: Callable[[], T]) -> T:
        told = pickle.dumps(read)  # only ever compared, never loaded
        key = hashlib.blake2b(told).digest()
        if key in self._kept:
            self.reused += 1
        found: T = self._kept.pop(key)[1] if key in self._kept else compute()
        self._kept[key] = len(told), found
        while sum(size for size, _ in self._kept.values()) > self.most:
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


def notes_on(result: Any) -> dict[str, Any]:
    """What is known of a result that may be remembered: whoever finds out more writes it there."""
    memory = _memory.get()
    return {} if memory is None else memory.notes.setdefault(result, {})
