"""What is made of a block before it is read many times, kept for later steps where there is room."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from graphveil.graph.blocks import Block

ROOM = 1 << 30  # bytes


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


T = TypeVar("T", bound=Sized)


class Kept(Generic[T]):
    """``make`` of every block, once for each block as far as ``room`` bytes go; what is kept stays in its process."""

    def __init__(self, make: Callable[[Block], T], room: int = ROOM) -> None:
        self._make, self._room = make, room
        self._kept: dict[int, T] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Kept, (self._make, 0)

    def __call__(self, block: Block) -> T:
        ready = self._kept.get(block.slots.start)
        if ready is None:
            ready = self._make(block)
            with self._lock:
                if ready.nbytes <= self._room:
                    self._room -= ready.nbytes
                    self._kept[block.slots.start] = ready
        return ready
