"""How a query goes over all records: the three forms that private methods need, each a map over blocks and a reduction.

``total``: a sum of what every record brings. ``gathered``: rows of some records. ``spread``: messages along contact lists, added
up where they arrive. What is added up lies on a grid on which float64 does not round (``lists.GRID``, ``sum_grid``), so the
result is the same whatever the blocks, their order and who computed them; a part that is computed twice counts once: parts are
kept by block. Clean sums are returned to the curator's process, which alone adds noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from graphveil.graph.lists import mass_weights, on_grid
from graphveil.learn.engine.local import Local

if TYPE_CHECKING:
    from graphveil.graph import Graph
    from graphveil.graph.blocks import Block

T = TypeVar("T")
Query = Callable[["Block"], np.ndarray]


def each(private: Graph, query: Callable[[Block], T]) -> Iterator[T]:
    """What ``query`` finds for every block, in the order of slots."""
    return _engine(private).each(private, query)


def total(private: Graph, query: Query) -> np.ndarray:
    """The sum of ``query`` over all blocks; terms must lie on a grid of which the whole sum is a 53-bit multiple."""
    found: np.ndarray | None = None
    for part in each(private, query):
        found = part if found is None else np.add(found, part, out=found)
    if found is None:
        raise ValueError("a graph has at least one record")
    return found


def gathered(private: Graph, query: Query, wanted: np.ndarray) -> np.ndarray:
    """``query`` gives one row for each record of a block under the (public) mask ``wanted``: all of these, by slot."""
    found: np.ndarray | None = None
    done = 0
    for part in each(private, query):
        if found is None:
            found = np.empty((int(np.count_nonzero(wanted)), *part.shape[1:]), dtype=part.dtype)
        found[done : done + len(part)] = part
        done += len(part)
    if found is None or done != len(found):
        raise ValueError(f"{done} rows were gathered of {0 if found is None else len(found)}")
    return found


def spread(private: Graph, messages: Query, receivers: np.ndarray, floor: int | None) -> np.ndarray:
    """``S_i = sum_k A[i, k] w_k messages_k`` for the receivers i under this (public) mask.

    ``w_k = max(|out(k) in receivers|, floor)^(-1/2)`` (Lemma M), or 1 for ``floor=None``; ``messages`` gives one row of norm at
    most 1 for every record of a block. What is sent is truncated towards zero to the grid 2^-24.
    """
    from graphveil.graph.kernels.lines import zeros_on_lines
    from graphveil.graph.kernels.list_sums import placed
    from graphveil.graph.kernels.list_sums import spread as add_along

    place = np.cumsum(receivers, dtype=np.int32) - 1
    place[~receivers] = -1

    def sent(block: Block) -> tuple[np.ndarray, ...]:
        starts, places = placed(block.lists.starts, block.lists.entries, place)
        values = np.asarray(messages(block), dtype=np.float64)
        if floor is not None:
            values = mass_weights(np.diff(starts), floor)[:, None] * values
        return starts, places, np.ascontiguousarray(on_grid(values))

    table: np.ndarray | None = None
    for starts, places, values in each(private, sent):
        if table is None:
            table = zeros_on_lines(int(np.count_nonzero(receivers)), values.shape[1])
        add_along(starts, places, values, table)
    if table is None:
        raise ValueError("a graph has at least one record")
    return table


def _engine(private: Graph) -> Local:
    return Local()
