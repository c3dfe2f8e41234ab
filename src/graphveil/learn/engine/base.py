"""What an engine is, and the order in which its answers count.

An engine asks a query of every block, wherever that is done, and says which block an answer is of. Answers are kept by the number
of their block: one that comes a second time (a task that was repeated, or was thought lost) counts once, and one that does not
come stops the query before anything is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from graphveil.errors import GraphveilError
from graphveil.graph.blocks import spans

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.graph.blocks import Block
    from graphveil.learn.engine.messages import Sent

T = TypeVar("T")


class Engine(Protocol):
    """Where queries run. ``elsewhere``: in other processes, so that only what can be sent there takes part."""

    elsewhere: bool

    def started(self) -> AbstractContextManager[Any]:
        """Whatever it needs, from here on and until the end of the context."""

    def spans(self, private: Graph) -> tuple[slice, ...]:
        """The slots of every block."""

    def answers(self, private: Graph, query: Callable[[Block], T]) -> Iterator[tuple[int, T]]:
        """The number of every block and what ``query`` finds there; not to be written to."""

    def added(self, private: Graph, sent: Sent) -> np.ndarray:
        """What every receiver is sent, added up: one row each."""


def cut(private: Graph, records: int) -> tuple[slice, ...]:
    """The blocks of a folder, or of a graph in memory that is cut into blocks of so many records."""
    return private.spans if private.on_disk else spans(private.nodes, records)


def in_order(engine: Engine, private: Graph, query: Callable[[Block], T]) -> Iterator[T]:
    """The answers of all blocks in the order of their slots, each once, whatever the engine delivers."""
    due, waiting = 0, dict[int, T]()
    for number, answer in engine.answers(private, query):
        if number >= due:
            waiting.setdefault(number, answer)
        while due in waiting:
            yield waiting.pop(due)
            due += 1
    if due != (blocks := len(engine.spans(private))):
        raise GraphveilError(f"block {due} of {blocks} was not answered: the query stopped and nothing was released")
